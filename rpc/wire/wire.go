// Package wire is what the extension and the helper say to each other: method names, parameters, results, error codes, and the
// view structs. It holds structs and nothing else; wire.gen.ts is written from it (see rpc/tsgen), so the Go side is the one
// source of truth. Stored records never travel as these types, and these types are never stored.
//
// Every field that is not marked omitempty is always present. Times are milliseconds since the epoch.
package wire

import "encoding/json"

//go:generate go run pi-cradle/rpc/tsgen

// Methods the extension (the host) calls on the helper. "Ordered" ones are handled one after another in the order in which
// they were sent; "concurrent" ones may take long and never hold anything up. Notifications have no answer.
const (
	Initialize      = "initialize"       // ordered, always first
	SessionStart    = "session.start"    // ordered
	SessionShutdown = "session.shutdown" // ordered; the helper has let go of the session when it answers
	RunPrepare      = "run.prepare"      // ordered: a run is about to start (before_agent_start)
	RunSettled      = "run.settled"      // ordered: pi is idle again (agent_settled)
	InputSeen       = "input.seen"       // ordered notification: the user typed, or an RPC client sent, a prompt
	MailStaged      = "mail.staged"      // ordered notification: an envelope lies in the session's inbound folder
	MailInbound     = "mail.inbound"     // ordered: an envelope that could not be staged
	CommandRun      = "command.run"      // concurrent
	CommandComplete = "command.complete" // concurrent
	ToolCall        = "tool.call"        // concurrent
	Cancel          = "cancel"           // notification that overtakes the queue, both directions
)

// Methods the helper calls on the host.
const (
	HostNotify  = "host.notify"  // notification: a line for the user
	HostStatus  = "host.status"  // notification: the footer entry of a key
	HostClaims  = "host.claims"  // notification: which mail this session takes from now on
	HostTool    = "host.tool"    // notification: a tool's new description
	HostSend    = "host.send"    // put a message of ours into the conversation; answered once it is there
	HostPrompt  = "host.prompt"  // submit a user prompt
	HostExit    = "host.exit"    // end pi as /quit does
	HostEmit    = "host.emit"    // emit on pi's event bus; the payload afterwards is the answer
	HostEntries = "host.entries" // which messages and prompts of ours the session holds
	HostModels  = "host.models"  // the model registry
	HostTools   = "host.tools"   // the session's tools
	HostDialog  = "host.dialog"  // ask the user

	HostTrustLook = "host.trust.look" // what is known of trust in a directory
	HostTrustSave = "host.trust.save" // change pi's saved decisions
)

// Error codes beyond JSON-RPC's own.
const (
	CodeVersion   = -32001 // the two sides are of different versions
	CodeTooLarge  = -32002 // a frame was larger than MaxFrame
	CodeRefused   = -32003 // the user's request can't be done; the message is meant for a person, Data holds hints
	CodeNoSession = -32004 // no session is started
	CodeStale     = -32005 // host: the session this is meant for is gone (reload, new, resume, fork)
	CodeCancelled = -32800 // the caller cancelled
)

// MaxFrame is the largest line either side accepts, in bytes without the newline. Larger things travel as file paths.
const MaxFrame = 8 << 20

// RefusedData is the data of a CodeRefused error.
type RefusedData struct {
	Hints []string `json:"hints"`
}

// CancelParams names the call to give up. The call is still answered, with CodeCancelled or with its result.
type CancelParams struct {
	ID json.RawMessage `json:"id" ts:"number | string"`
}

// Empty is the result of calls that have nothing to say.
type Empty struct{}

// InitializeParams opens a connection.
type InitializeParams struct {
	Version string `json:"version"`
}

// InitializeResult answers it. Binary is the helper's own path, for the text of a version mismatch.
type InitializeResult struct {
	Version string `json:"version"`
	Binary  string `json:"binary"`
}

// SessionStartParams tells the helper which pi session it now serves.
type SessionStartParams struct {
	SessionID   string    `json:"sessionId"`
	SessionFile string    `json:"sessionFile"` // "" when the session is not saved
	SessionDir  string    `json:"sessionDir"`  // "" when the session is not saved
	Cwd         string    `json:"cwd"`
	Name        string    `json:"name"`   // "" when unnamed
	Reason      string    `json:"reason"` // startup, reload, new, resume, fork
	Again       bool      `json:"again"`  // only the helper is new: it ended while pi went on with this session
	Mode        string    `json:"mode"`   // tui, rpc, json, print
	HasUI       bool      `json:"hasUI"`
	Trusted     bool      `json:"trusted"` // pi's answer for this session's project
	AgentDir    string    `json:"agentDir"`
	PiVersion   string    `json:"piVersion"`
	PiCommand   []string  `json:"piCommand"` // argv that starts this same pi again, without arguments
	Shim        string    `json:"shim"`      // the extension's own file, to be loaded by delegates too
	Model       *ModelRef `json:"model,omitempty"`
	Thinking    string    `json:"thinking"`
}

// ModelRef names a model of pi's registry.
type ModelRef struct {
	Provider string `json:"provider"`
	ID       string `json:"id"`
}

// SessionStartResult is what the session needs before its first event.
type SessionStartResult struct {
	Role   string       `json:"role"` // root or delegate
	Claims Claims       `json:"claims"`
	Inbox  string       `json:"inbox"` // the folder into which claimed envelopes are staged
	Tools  []ToolUpdate `json:"tools"`
	Active []string     `json:"active"` // which of our tools the model may use in this session

	// Identity is the payload of squire:identity, which the host emits frozen while pi is still in session_start.
	Identity json.RawMessage `json:"identity" ts:"unknown"`
}

// Claims says which mail of a message:* provider this session takes over. They are data: the host compares, and decides nothing.
type Claims struct {
	Requests map[string]string `json:"requests"` // request id to the address whose reply is awaited
	Parent   string            `json:"parent"`   // address whose requests are tasks, "" for none
}

// ToolUpdate replaces a tool's description.
type ToolUpdate struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// SessionShutdownParams ends a session in this pi process.
type SessionShutdownParams struct {
	Reason string `json:"reason"` // quit, reload, new, resume, fork
}

// RunPrepareParams says what the coming run can do.
type RunPrepareParams struct {
	Delegating bool `json:"delegating"` // the delegate tool is declared to the model
}

// RunPrepareResult holds the system-prompt sections of the coming run. Keys not named stay out.
type RunPrepareResult struct {
	Sections map[string]string `json:"sections"`
}

// RunSettledParams tells how a run ended.
type RunSettledParams struct {
	Aborted    bool     `json:"aborted"`        // the user stopped it
	StopReason string   `json:"stopReason"`     // of the last assistant message: stop, length, error, aborted, toolUse; "" when there is none
	Text       string   `json:"text"`           // its text; "" when in TextPath
	TextPath   string   `json:"textPath"`       // a private file with the text when it is too large for a frame; the helper deletes it
	Error      string   `json:"error"`          // its error text
	Model      ModelRef `json:"model"`          // what answered
	Holds      string   `json:"holds"`          // completion holds of other extensions: none, waiting, malformed
	Hold       string   `json:"hold,omitempty"` // which one, for the user
}

// InputSeenParams says where a prompt came from.
type InputSeenParams struct {
	Source string `json:"source"` // interactive, rpc
}

// MailStagedParams names the staged file. The helper reads the whole folder anyway; the name is for the log.
type MailStagedParams struct {
	File string `json:"file"`
}

// Inbound is one claimed envelope, as a message:* provider hands it over and as it lies in the inbound folder. The envelopes are
// kept as the provider wrote them.
type Inbound struct {
	Envelope json.RawMessage  `json:"envelope" ts:"unknown"`
	Path     string           `json:"path"`
	Requests []InboundRequest `json:"requests"`
}

// InboundRequest is the sender's own copy of a request that a reply answers.
type InboundRequest struct {
	Envelope json.RawMessage `json:"envelope" ts:"unknown"`
	Path     string          `json:"path"`
}

// CommandRunParams runs a slash command. Args is what stands after the name, byte for byte.
type CommandRunParams struct {
	Command string `json:"command"`
	Args    string `json:"args"`
}

// CommandCompleteParams asks for completions of a command's arguments.
type CommandCompleteParams struct {
	Command string `json:"command"`
	Prefix  string `json:"prefix"`
}

// CommandCompleteResult lists them; each Value replaces the whole argument text.
type CommandCompleteResult struct {
	Items []Completion `json:"items"`
}

// Completion is one row of pi's completion menu.
type Completion struct {
	Value       string `json:"value"`
	Label       string `json:"label"`
	Description string `json:"description"`
}

// ToolCallParams is one call by the model.
type ToolCallParams struct {
	Tool   string          `json:"tool"`
	CallID string          `json:"callId"`
	Params json.RawMessage `json:"params" ts:"unknown"`
}

// ToolCallResult is what the model reads, what programs read, and how the row looks.
type ToolCallResult struct {
	Text       string          `json:"text"`
	Details    json.RawMessage `json:"details" ts:"unknown"`
	Structured json.RawMessage `json:"structured,omitempty" ts:"unknown"`
	IsError    bool            `json:"isError"`
	View       View            `json:"view"`
}

// NotifyParams is one notice. Level is info, warning or error.
type NotifyParams struct {
	Level string `json:"level"`
	Text  string `json:"text"`
}

// StatusParams sets the footer entry of Key; an empty Text clears it.
type StatusParams struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

// SendParams is a message of ours. The host keeps ID in the message's details (details.id), and answers only once the message
// is part of the conversation, or can no longer become it:
//
//   - pi is idle: sent at once, with a run when Trigger is set. Answered at message_start, or at once when there is no run.
//   - pi is busy: held by the host, never put into pi's queue (Escape drops that without a word). It goes in at the next
//     completed turn_end or agent_before_settle, as a custom_message draft with continue set to Trigger.
//   - the run ends first: after a stop by the user it is added without a run, since that user wants quiet; after a provider
//     error it is sent as if pi had been idle.
//   - the session is gone, or pi threw: an error. The helper sends it again in its own time, under the same ID.
type SendParams struct {
	ID      string          `json:"id"`
	Content string          `json:"content"` // what the model reads
	Details json.RawMessage `json:"details" ts:"Record<string, unknown>"`
	View    View            `json:"view"`
	Trigger bool            `json:"trigger"`
	Hidden  bool            `json:"hidden"` // the user does not see it
}

// PromptParams submits text as the user's prompt. Nothing in it is expanded.
type PromptParams struct {
	Text string `json:"text"`
}

// EmitParams emits on pi's event bus. Freeze names a field of the payload that listeners can't change, "*" means all of it.
type EmitParams struct {
	Channel string          `json:"channel"`
	Payload json.RawMessage `json:"payload" ts:"unknown"`
	Freeze  string          `json:"freeze"`
}

// EmitResult is the payload after every listener's synchronous part has run.
type EmitResult struct {
	Payload json.RawMessage `json:"payload" ts:"unknown"`
}

// EntriesParams asks which of these the session holds: messages by SendParams.ID, prompts by a text they begin with.
type EntriesParams struct {
	Messages []string `json:"messages"`
	Prompts  []string `json:"prompts"`
}

// EntriesResult lists those found.
type EntriesResult struct {
	Messages []string `json:"messages"`
	Prompts  []string `json:"prompts"`
}

// ModelsParams asks for the models with credentials, or for all.
type ModelsParams struct {
	All bool `json:"all"`
}

// ModelsResult lists them, with the session's own model and level as they are now.
type ModelsResult struct {
	Models   []Model   `json:"models"`
	Current  *ModelRef `json:"current,omitempty"`
	Thinking string    `json:"thinking"`
}

// Model is one entry of pi's registry.
type Model struct {
	Provider  string   `json:"provider"`
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Available bool     `json:"available"` // credentials are configured
	Thinking  []string `json:"thinking"`  // supported levels, in pi's order
}

// ToolsResult lists the session's tools by name.
type ToolsResult struct {
	Active    []string `json:"active"`    // declared to the model
	Available []string `json:"available"` // those and the ones reachable through codemode or tool_search
}

// DialogParams asks the user. Kind is select, confirm, input or editor. A terminal shows a select's Details beside its rows and,
// with Filter, narrows the rows to what is typed; elsewhere they are shown as "option — detail".
type DialogParams struct {
	Kind    string   `json:"kind"`
	Title   string   `json:"title"`
	Message string   `json:"message"` // confirm's text, or input's placeholder
	Options []string `json:"options"` // select's rows
	Details []string `json:"details,omitempty"`
	Filter  bool     `json:"filter,omitempty"`
	Prefill string   `json:"prefill"` // editor's text, or the row at which a select begins
}

// DialogResult is the answer. OK is false when the user cancelled or said no; a cancelled editor still gives its text.
type DialogResult struct {
	OK    bool   `json:"ok"`
	Value string `json:"value"`
}

// TrustLookParams asks for what decides about trust in Dir. Key is the directory whose saved decision counts there.
type TrustLookParams struct {
	Dir string `json:"dir"`
	Key string `json:"key"`
}

// TrustLookResult answers it, from pi's trust store and the directory as they are now.
type TrustLookResult struct {
	Saved     *bool `json:"saved,omitempty"` // the decision saved for Key or, nearest first, a folder above it
	Protected bool  `json:"protected"`       // there is something for Dir that pi loads only with trust
}

// TrustSaveParams changes pi's trust store, all at once. The host saves nothing when the call was cancelled before.
type TrustSaveParams struct {
	Updates []TrustUpdate `json:"updates"`
}

// TrustUpdate is one change. A null Decision removes what is saved for exactly this path.
type TrustUpdate struct {
	Path     string `json:"path"`
	Decision *bool  `json:"decision"`
}
