package wire

import "strings"

// Command is a slash command that the host registers as it loads, before the helper has answered.
type Command struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Tool is a tool that the host registers as it loads. Parameters is a JSON Schema, and so is Output, of ToolCallResult.Structured.
type Tool struct {
	Name        string         `json:"name"`
	Label       string         `json:"label"`
	Description string         `json:"description"`
	Snippet     string         `json:"snippet"`
	Parameters  map[string]any `json:"parameters"`
	Output      map[string]any `json:"output,omitempty"`
}

// Commands is every slash command of squire.
var Commands = []Command{
	{Name: "delegate", Description: "Start a delegate in a background tmux window: <agent> [flags] <task>"},
	{Name: "delegate-worktrees", Description: "List the worktrees that were made for delegates of this repository, and remove some"},
	{Name: "auto-exit", Description: "In a delegate: close this window after the next normal completion"},
}

const waitNote = " Its answer comes to you by itself as one [delegate] message: go on with other work or end your turn; never poll or wait for it."

// Tools is every tool of squire, with the description it has before the roster is known.
var Tools = []Tool{
	{
		Name:  "delegate",
		Label: "Delegate",
		Description: "Start a delegate: another agent that works on one task in a background window." + waitNote +
			" A blocking request to it only to wait is polling too; a follow-up with something new to say is fine." +
			" The delegate sees nothing of this conversation, so the task must stand alone." +
			" Set auto_exit to false when you mean to go on talking to it by mail after its answer.",
		Snippet: "Start another agent on a task in the background",
		Parameters: object([]string{"agent", "task"}, map[string]any{
			"agent":    text("Name of the agent"),
			"task":     text("The whole task, complete in itself"),
			"model":    text("provider/model-id, in place of the agent's own"),
			"thinking": text("Thinking level, in place of the agent's own: off, minimal, low, medium, high, xhigh or max"),
			"label":    text("Short name for the window: at most 32 letters, digits, _ or -, beginning with a letter or digit"),
			"cwd":      text("Directory to work in, in place of this session's own; relative to that, or from ~"),
			"worktree": text("Name of a new branch: the delegate works on it in a Git worktree of its own, which starts at the last commit here. Not together with cwd"),

			"worktree_source": text("With worktree: a directory in the checkout to make it of, in place of this session's own"),
			"worktree_base":   text("With worktree: the commit to start at, in place of the last one of the source"),

			"auto_exit": map[string]any{"type": "boolean", "description": "false keeps the delegate's window open after its answer, for a follow-up by mail"},
		}),
	},
	{
		Name:        "delegation_status",
		Label:       "Delegation status",
		Description: "Report the state of the delegations of this session, or of one. Not needed to get results: they arrive by themselves.",
		Snippet:     "Look at the delegations of this session",
		Parameters:  object(nil, map[string]any{"id": text("Delegation id; leave out for all")}),
		Output:      record("delegations", list(delegationOutput)),
	},
	{
		Name:        "delegation_close",
		Label:       "Close delegation",
		Description: "End a delegation: close its window, whether or not it has answered.",
		Snippet:     "End a delegation and close its window",
		Parameters:  object([]string{"id"}, map[string]any{"id": text("Delegation id")}),
		Output:      closeOutput,
	},
}

// What delegation_status says of one delegation, and what delegation_close says it did.
var (
	delegationOutput = record(
		"delegation", word, "agent", word, "name", word, "model", word, "request", word, "status", word, "session", word, "cwd", word,
		"state", word, "note", word, "thinking", word, "autoExit", flag,
		"finishedModel?", word, "envelope?", word, "windowId?", word, "windowSession?", word,
	)
	closeOutput = record(
		"id", word, "windowId?", word, "windowName?", word, "closed", flag, "complete", flag, "alreadyClosed", flag, "killed", flag, "error?", word,
		"members", list(record("id", word, "sessionId", word, "windowId?", word, "windowName?", word, "outcome", word, "closed", flag, "killed", flag, "error?", word)),
	)
	word = map[string]any{"type": "string"}
	flag = map[string]any{"type": "boolean"}
)

func list(items map[string]any) map[string]any {
	return map[string]any{"type": "array", "items": items}
}

// record is an object schema from names and schemas in turn. A name with a question mark may be absent; others may be added later.
func record(pairs ...any) map[string]any {
	properties, required := map[string]any{}, []string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, optional := strings.CutSuffix(pairs[i].(string), "?")
		properties[name] = pairs[i+1]
		if !optional {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

func object(required []string, properties map[string]any) map[string]any {
	if required == nil {
		required = []string{}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func text(description string) map[string]any {
	return map[string]any{"type": "string", "description": description}
}
