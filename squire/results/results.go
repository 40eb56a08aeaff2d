// Package results words what a parent is told about its delegates: the text that its model reads and the row that its user
// sees. It is pure: the service gives it everything.
package results

import (
	"encoding/json"
	"fmt"
	"strings"

	"pi-cradle/rpc/wire"
	"pi-cradle/squire/gitws"
	"pi-cradle/squire/session"
	"pi-cradle/squire/views"
)

// Limits in bytes: of a stored answer and quote, and of all answers of one message together.
const (
	BodyLimit    = 32 << 10
	QuoteLimit   = 2 << 10
	messageLimit = 96 << 10
)

// Gap stands in an answer where its middle was cut out.
const Gap = "\n\n[… cut here; the whole answer is in the envelope file named above …]\n\n"

// Message composes one message from its items. home is shortened to ~ on screen only. At least one item is needed.
func Message(show session.Show, home string) wire.SendParams {
	items := show.Items
	limit := min(BodyLimit, messageLimit/len(items))
	var content []string
	var rows []wire.View
	var details []detail
	for _, it := range items {
		body, _ := views.Clip(it.Outcome.Body, limit, Gap)
		// Without this extension pi shows a message's content as it is, so it has to be safe for a terminal too.
		content = append(content, views.Plain(text(it, body)))
		rows = append(rows, row(it, body, home))
		details = append(details, describe(it))
	}
	data, _ := json.Marshal(map[string]any{"results": details})
	return wire.SendParams{ID: show.ID, Content: strings.Join(content, "\n\n"), Details: data, View: join(rows), Trigger: show.Trigger}
}

// Wake is the message that starts a run on results which the conversation holds already. The user does not see it.
func Wake(id string) wire.SendParams {
	return wire.SendParams{
		ID: id, Hidden: true, Trigger: true, Details: json.RawMessage(`{}`),
		Content: "[delegate] The results above arrived just before this session was interrupted. Go on from them.",
	}
}

// detail is what programs read of one item.
type detail struct {
	Delegation string `json:"delegation"`
	Agent      string `json:"agent"`
	Name       string `json:"name"`
	Model      string `json:"model"`
	Finished   string `json:"finishedModel,omitempty"`
	Request    string `json:"request"`
	Status     string `json:"status"`
	Envelope   string `json:"envelope,omitempty"`
	Session    string `json:"session"`
	Cwd        string `json:"cwd"`

	Skipped   []session.Skipped `json:"skipped,omitempty"`
	Workspace json.RawMessage   `json:"workspace,omitempty"`
	Snapshot  json.RawMessage   `json:"workspaceSnapshot,omitempty"`
	Window    string            `json:"windowSession,omitempty"`
}

func describe(it session.Item) detail {
	d := it.Delegation
	return detail{d.ID, d.Agent, d.Name, d.Model, it.Outcome.Model, d.Request, it.Outcome.Status, it.Outcome.Path, d.SessionFile, d.Cwd, d.Skipped, d.Workspace, it.Outcome.Snapshot, d.Window.SessionName}
}

// modelText names the model that a delegation was launched on, and the one it finished on where that is another.
func modelText(launched, finished string) string {
	if launched == "" {
		launched = "pi's default model"
	}
	if finished == "" || finished == launched {
		return launched
	}
	return launched + " → " + finished
}

// text is what the model reads. Its first line and the labels of the others are matched by other programs.
func text(it session.Item, body string) string {
	d, o := it.Delegation, it.Outcome
	var b strings.Builder
	if o.Status == "gone" {
		fmt.Fprintf(&b, "[delegate] %s (%s), delegation %s, closed without a result.\n", d.Agent, modelText(d.Model, o.Model), d.ID)
		fmt.Fprintf(&b, "Cause: %s\n", Cause(d))
	} else {
		fmt.Fprintf(&b, "[delegate] Result from %s (%s), delegation %s, request %s.\n", d.Agent, modelText(d.Model, o.Model), d.ID, d.Request)
		fmt.Fprintf(&b, "Status: %s\n", o.Status)
		if o.Task != "" {
			fmt.Fprintf(&b, "Task, quoted from %s:\n%s\n", o.TaskPath, quote(o.Task))
		}
	}
	fmt.Fprintf(&b, "Working directory: %s\n", d.Cwd)
	for _, line := range checkout(d, o) {
		b.WriteString(line + "\n")
	}
	if o.Path != "" {
		fmt.Fprintf(&b, "Envelope: %s\n", o.Path)
	}
	fmt.Fprintf(&b, "Delegate session: %s\n", sessionName(d))
	if o.Status == "gone" {
		if d.Exit != nil && len(d.Exit.Screen) > 0 {
			fmt.Fprintf(&b, "\nLast lines of its screen:\n%s\n", quote(strings.Join(d.Exit.Screen, "\n")))
		}
		return strings.TrimRight(b.String(), "\n")
	}
	return b.String() + "\n" + body
}

// checkout tells of the directory at launch and when the answer came.
func checkout(d *session.Delegation, o *session.Outcome) []string {
	var at *gitws.Snapshot
	if len(o.Snapshot) > 0 {
		at = new(gitws.Snapshot)
		if json.Unmarshal(o.Snapshot, at) != nil {
			at = nil
		}
	}
	lines := gitws.ResultLines(workspace(d), at)
	if o.Warning != "" {
		lines = append(lines, "Warning: "+o.Warning)
	}
	if d.Kept != "" {
		lines = append(lines, "Worktree: "+d.Kept)
	}
	return lines
}

// workspace reads the record of a delegation's directory; nil for one that has none, or none that can be read.
func workspace(d *session.Delegation) *gitws.Workspace {
	var w *gitws.Workspace
	if len(d.Workspace) == 0 || json.Unmarshal(d.Workspace, &w) != nil {
		return nil
	}
	return w
}

func sessionName(d *session.Delegation) string {
	if d.SessionFile == "" {
		return d.ID
	}
	return d.SessionFile
}

func quote(s string) string {
	return "> " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n> ")
}

// Cause says in one line why a delegate ended without an answer, as far as anybody saw it.
func Cause(d *session.Delegation) string {
	switch e := d.Exit; {
	case d.Window.Name == "" && e == nil:
		return "this session ended while the delegate was being started; it was not started"
	case e == nil && d.Window.Pane == "":
		return "this session ended while the delegate was being started; there is no window of it"
	case e == nil:
		return "its window is gone and nobody saw how it ended"
	case e.Error != "":
		return "pi could not be started: " + e.Error
	case e.Hangup:
		return "its window was closed"
	case e.Signal != "":
		return "pi was killed by " + e.Signal
	case e.Code != 0:
		return fmt.Sprintf("pi ended with exit status %d", e.Code)
	}
	return "pi was closed (exit status 0) before it had answered"
}

// row is what the user sees of one item.
func row(it session.Item, body, home string) wire.View {
	d, o := it.Delegation, it.Outcome
	mark, style, word, tone := "✓", "success", o.Status, "success"
	if o.Status != "done" {
		mark, style, tone = "✗", "error", "error"
	}
	if o.Status == "gone" {
		word = "closed without a result"
	}
	head := wire.Block{Line: []wire.Span{
		{Text: mark + " ", Style: style},
		{Text: views.Line(d.Name), Style: "toolTitle", Bold: true},
		{Text: " (" + views.Line(modelText(d.Model, o.Model)) + ")", Style: "muted"},
		{Text: " — " + views.Line(word), Style: style},
	}}
	v := wire.View{Tone: tone, Collapsed: []wire.Block{head}, Expanded: []wire.Block{head}}
	shown := body
	if o.Status == "gone" {
		shown = Cause(d)
		if d.Exit != nil && len(d.Exit.Screen) > 0 {
			shown += "\n" + strings.Join(d.Exit.Screen, "\n")
		}
	}
	v.Collapsed = append(v.Collapsed, preview(shown)...)
	if o.Status == "gone" {
		for _, line := range strings.Split(views.Text(shown), "\n") {
			v.Expanded = append(v.Expanded, plain(line, "toolOutput"))
		}
	} else {
		v.Expanded = append(v.Expanded, wire.Block{Markdown: views.Text(body)})
	}
	if o.Task != "" {
		v.Expanded = append(v.Expanded, blank, plain("Task:", "muted"))
		for _, line := range strings.Split(views.Text(strings.TrimRight(o.Task, "\n")), "\n") {
			v.Expanded = append(v.Expanded, plain("> "+line, "dim"))
		}
	}
	v.Expanded = append(v.Expanded, blank)
	for _, line := range checkout(d, o) {
		v.Expanded = append(v.Expanded, plain(views.Line(views.Home(line, home)), "dim"))
	}
	for _, f := range facts(d, o, home) {
		v.Expanded = append(v.Expanded, wire.Block{Wrap: true, Line: []wire.Span{
			{Text: f[0] + ": ", Style: "muted"}, {Text: views.Line(f[1]), Style: "dim"},
		}})
	}
	return v
}

var blank = wire.Block{Line: []wire.Span{{Text: ""}}}

func plain(text, style string) wire.Block {
	return wire.Block{Wrap: true, Line: []wire.Span{{Text: text, Style: style}}}
}

func facts(d *session.Delegation, o *session.Outcome, home string) [][2]string {
	out := [][2]string{{"delegation", d.ID}}
	if d.Request != "" {
		out = append(out, [2]string{"request", d.Request})
	}
	out = append(out, [2]string{"directory", views.Home(d.Cwd, home)})
	if o.Path != "" {
		out = append(out, [2]string{"envelope", views.Home(o.Path, home)})
	}
	return append(out, [2]string{"session", views.Home(sessionName(d), home)})
}

const previewLines = 5

// preview is the first lines of an answer without their Markdown dress.
func preview(body string) []wire.Block {
	var lines []string
	more := 0
	for _, line := range strings.Split(views.Text(body), "\n") {
		line = strings.TrimSpace(undress(line))
		if line == "" {
			continue
		}
		if len(lines) == previewLines {
			more++
			continue
		}
		lines = append(lines, line)
	}
	var out []wire.Block
	for _, line := range lines {
		out = append(out, wire.Block{Line: []wire.Span{{Text: line, Style: "toolOutput"}}})
	}
	if more > 0 {
		word := "lines"
		if more == 1 {
			word = "line"
		}
		out = append(out, wire.Block{Line: []wire.Span{{Text: fmt.Sprintf("… %d more %s", more, word), Style: "muted"}}})
	}
	return out
}

var dress = strings.NewReplacer("**", "", "__", "", "`", "")

func undress(line string) string {
	trimmed := strings.TrimLeft(line, " ")
	if rest := strings.TrimLeft(trimmed, "#"); rest != trimmed && (rest == "" || rest[0] == ' ') {
		line = rest
	}
	return dress.Replace(line)
}

// join puts several rows under one another. The tone is the worst of them.
func join(all []wire.View) wire.View {
	out := all[0]
	for _, v := range all[1:] {
		if v.Tone == "error" {
			out.Tone = "error"
		}
		out.Collapsed = append(append(out.Collapsed, blank), v.Collapsed...)
		out.Expanded = append(append(out.Expanded, blank), v.Expanded...)
	}
	return out
}
