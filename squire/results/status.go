package results

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"pi-cradle/rpc/wire"
	"pi-cradle/squire/gitws"
	"pi-cradle/squire/session"
	"pi-cradle/squire/transcript"
	"pi-cradle/squire/views"
)

// State is what one look says of one delegation.
type State struct {
	Delegation *session.Delegation
	Word       string // starting, running, done, closed, closed without a result, unknown
	Note       string
	Active     time.Time      // when its session file was last written; zero when there is none yet
	Model      string         // provider/id that answered last in it; "" when it can't be told
	Now        gitws.Snapshot // of its checkout
}

// StateOf judges by the records first and by the window second: a close outranks a result, a result a missing window, and a tmux
// that could not be asked is no evidence of anything. It looks at the end of the session file.
func StateOf(d *session.Delegation, seen session.Presence, checkout gitws.Snapshot, now time.Time) State {
	s := State{Delegation: d, Now: checkout}
	if info, err := os.Stat(d.SessionFile); err == nil {
		s.Active = info.ModTime()
		// A hint like the time; a file that can't be read tells nothing.
		s.Model, _ = transcript.LastModel(d.SessionFile)
	}
	if d.Result != nil && d.Result.Model != "" {
		s.Model = d.Result.Model
	}
	switch {
	case d.Closed != nil:
		s.Word, s.Note = "closed", "delegation_close ended it"
		if d.Result != nil {
			s.Note += ", after it had answered (result status: " + d.Result.Status + ")"
		}
	case d.Result != nil:
		s.Word, s.Note = "done", "result status: "+d.Result.Status+"; the result reaches this session as a [delegate] message on its own"
	case d.Gone != nil:
		s.Word, s.Note = "closed without a result", Cause(d)
	case d.Phase == session.Launching:
		s.Word, s.Note = "starting", "its window is being opened"
	case seen == session.Unknown:
		s.Word, s.Note = "unknown", "tmux could not be asked about its window, and no result has arrived"
	case seen == session.Alive:
		s.Word, s.Note = "running", "the window is open and no result has arrived"+lastActive(s.Active, now)
	default:
		s.Word, s.Note = "closed", "its window is no longer there and no result has arrived yet"
	}
	return s
}

func lastActive(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return " (last active " + ago(now.Sub(at)) + ")"
}

func ago(d time.Duration) string {
	minutes := int(d / time.Minute)
	switch {
	case minutes < 1:
		return "just now"
	case minutes < 60:
		return fmt.Sprintf("%d min ago", minutes)
	}
	return fmt.Sprintf("%d h %d min ago", minutes/60, minutes%60)
}

// Status is the answer of delegation_status.
func Status(states []State, home string) wire.ToolCallResult {
	var b strings.Builder
	switch len(states) {
	case 0:
		b.WriteString("No delegations.")
	case 1:
		b.WriteString("1 delegation:")
	default:
		fmt.Fprintf(&b, "%d delegations:", len(states))
	}
	view := wire.View{Tone: "success", Collapsed: []wire.Block{}}
	type entry struct {
		detail
		State    string `json:"state"`
		Note     string `json:"note"`
		Thinking string `json:"thinking"`
		AutoExit bool   `json:"autoExit"`
		WindowID string `json:"windowId,omitempty"`
	}
	entries := []entry{}
	for _, s := range states {
		d := s.Delegation
		b.WriteString("\n\n" + statusBlock(s))
		e := entry{State: s.Word, Note: s.Note, Thinking: d.Thinking, AutoExit: d.AutoExit, WindowID: d.Window.ID}
		e.detail = describe(session.Item{Delegation: d, Outcome: outcome(d)})
		e.Snapshot, _ = json.Marshal(s.Now)
		entries = append(entries, e)
		view.Collapsed = append(view.Collapsed, wire.Block{Line: []wire.Span{
			{Text: views.Line(d.Name), Style: "toolTitle", Bold: true},
			{Text: " (" + views.Line(modelText(d.Model, s.Model)) + ")", Style: "muted"},
			{Text: " — " + s.Word, Style: "toolOutput"},
		}})
	}
	for _, line := range strings.Split(views.Text(shortenHome(b.String(), home)), "\n") {
		view.Expanded = append(view.Expanded, plain(line, "toolOutput"))
	}
	if len(states) == 0 {
		view.Collapsed = view.Expanded
	}
	details, _ := json.Marshal(map[string]any{"delegations": entries})
	return wire.ToolCallResult{Text: b.String(), Details: details, Structured: details, View: view}
}

func outcome(d *session.Delegation) *session.Outcome {
	if d.Result != nil {
		return d.Result
	}
	return &session.Outcome{}
}

func shortenHome(text, home string) string {
	if home == "" || home == "/" {
		return text
	}
	return strings.ReplaceAll(text, strings.TrimSuffix(home, "/")+"/", "~/")
}

func statusBlock(s State) string {
	d := s.Delegation
	thinking := d.Thinking
	if thinking == "" {
		thinking = "pi's default"
	}
	autoExit := "off — the window stays open after the result"
	if d.AutoExit {
		autoExit = "on — the delegate closes its window after a normal completion unless the user took over there"
	}
	session := d.ID
	if !s.Active.IsZero() {
		session = d.SessionFile
	}
	lines := []string{
		fmt.Sprintf("%s %s (%s, thinking %s)", d.ID, d.Agent, modelText(d.Model, s.Model), thinking),
		"  name: " + d.Name,
		"  state: " + s.Word + " — " + s.Note,
		"  window: " + windowText(d),
		"  cwd: " + d.Cwd,
	}
	lines = append(lines, gitws.StatusLines(workspace(d), s.Now)...)
	lines = append(lines, "  auto-exit: "+autoExit, "  session: "+session)
	if d.Result != nil {
		lines = append(lines, "  envelope: "+d.Result.Path)
	}
	return strings.Join(lines, "\n")
}

func windowText(d *session.Delegation) string {
	if d.Window.ID == "" {
		return d.Name + " (not known)"
	}
	text := fmt.Sprintf("%s (%s)", d.Name, d.Window.ID)
	if d.Window.SessionName != "" {
		text += " in tmux session " + d.Window.SessionName
	}
	return text
}

// Started is the answer of a delegate call that opened its window.
func Started(d *session.Delegation, task string, notes []string) wire.ToolCallResult {
	where := d.Name
	if d.Window.SessionName != "" {
		where += " in tmux session " + d.Window.SessionName
	}
	text := fmt.Sprintf("Started %s (%s) as %s, delegation %s. Its answer arrives by itself as one [delegate] message; go on with other work or end your turn.",
		d.Agent, modelText(d.Model, ""), where, d.ID)
	view := wire.View{Tone: "success", Collapsed: []wire.Block{{Line: []wire.Span{
		{Text: "● ", Style: "success"},
		{Text: views.Line(d.Name), Style: "toolTitle", Bold: true},
		{Text: " (" + views.Line(modelText(d.Model, "")) + ")", Style: "muted"},
		{Text: " — started", Style: "success"},
	}}}}
	if d.Window.SessionName != "" {
		head := &view.Collapsed[0]
		head.Line = append(head.Line, wire.Span{Text: " in " + views.Line(d.Window.SessionName), Style: "muted"})
	}
	view.Collapsed = append(view.Collapsed, TaskLine(task))
	for _, note := range notes {
		text += "\n" + note
		view.Collapsed = append(view.Collapsed, plain(views.Line(note), "warning"))
	}
	view.Expanded = append([]wire.Block{view.Collapsed[0]}, view.Collapsed[2:]...)
	for _, line := range strings.Split(views.Text(strings.TrimRight(task, "\n")), "\n") {
		view.Expanded = append(view.Expanded, plain(line, "dim"))
	}
	details, _ := json.Marshal(describe(session.Item{Delegation: d, Outcome: &session.Outcome{Status: "started"}}))
	return wire.ToolCallResult{Text: text, Details: details, Structured: details, View: view}
}

// TaskLine is a task in one row: its first line and how many there are.
func TaskLine(task string) wire.Block {
	task = strings.TrimSpace(task)
	first, _, more := strings.Cut(task, "\n")
	line := []wire.Span{{Text: views.Line(first), Style: "dim"}}
	if more {
		line = append(line, wire.Span{Text: fmt.Sprintf(" (%d lines)", strings.Count(task, "\n")+1), Style: "muted"})
	}
	return wire.Block{Line: line}
}

// Refusal is the row of a call that was refused.
func Refusal(text string) wire.View {
	v := wire.View{Tone: "error"}
	for _, line := range strings.Split(views.Text(text), "\n") {
		v.Collapsed = append(v.Collapsed, plain(line, "error"))
	}
	v.Expanded = v.Collapsed
	return v
}

// Close is what a delegation_close came to.
type Close struct {
	Delegation session.Delegation
	Killed     bool // a window was there and is gone now
	Already    bool // an earlier close is on record
}

// Closed is the answer of delegation_close.
func Closed(c Close) wire.ToolCallResult {
	d := &c.Delegation
	word, text := "absent", fmt.Sprintf("Delegation %s is closed; its window %s was gone already.", d.ID, d.Name)
	switch {
	case c.Already:
		word, text = "already-closed", fmt.Sprintf("Delegation %s was closed before.", d.ID)
	case c.Killed:
		word, text = "killed", fmt.Sprintf("Delegation %s is closed; its window %s was ended.", d.ID, d.Name)
	}
	member := map[string]any{
		"id": d.ID, "sessionId": d.ID, "windowId": d.Window.ID, "windowName": d.Name, "outcome": word, "closed": true, "killed": c.Killed,
	}
	details, _ := json.Marshal(map[string]any{
		"id": d.ID, "windowId": d.Window.ID, "windowName": d.Name, "closed": true, "complete": true,
		"alreadyClosed": c.Already, "killed": c.Killed, "members": []any{member},
	})
	view := wire.View{Tone: "success", Collapsed: []wire.Block{{Line: []wire.Span{
		{Text: "■ ", Style: "muted"},
		{Text: views.Line(d.Name), Style: "toolTitle", Bold: true},
		{Text: " — closed", Style: "muted"},
	}}}}
	view.Expanded = append(view.Collapsed, plain(views.Line(text), "toolOutput"))
	return wire.ToolCallResult{Text: text, Details: details, Structured: details, View: view}
}
