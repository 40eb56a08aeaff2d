package results

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"pi-cradle/rpc/wire"
	"pi-cradle/squire/gitws"
	"pi-cradle/squire/session"
)

var update = os.Getenv("UPDATE_GOLDEN") != ""

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("..", "..", "testdata", "golden", "results", name)
	if update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s differs (UPDATE_GOLDEN=1 rewrites it), %v; got:\n%s", name, err, got)
	}
}

// shown prints a view as text, so that a golden file shows what a person sees.
func shown(v wire.View) string {
	var b strings.Builder
	for _, part := range []struct {
		name   string
		blocks []wire.Block
	}{{"collapsed", v.Collapsed}, {"expanded", v.Expanded}} {
		b.WriteString("== " + part.name + ", " + v.Tone + "\n")
		for _, block := range part.blocks {
			if block.Markdown != "" {
				b.WriteString("[markdown] " + block.Markdown + "\n")
			}
			for _, span := range block.Line {
				b.WriteString(span.Text)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func delegation() *session.Delegation {
	return &session.Delegation{
		ID: "11111111-2222", Agent: "scout", Name: "scout-11111111", Model: "p/m", Thinking: "low", AutoExit: true,
		Cwd: "/home/u/work", SessionDir: "/home/u/s", SessionFile: "/home/u/s/x.jsonl", Request: "req-1",
		Window: session.Window{ID: "@4", Pane: "%4", Name: "scout-11111111"}, Phase: session.Ended,
	}
}

func answered(body string) session.Item {
	d := delegation()
	d.Result = &session.Outcome{Status: "done", Path: "/home/u/mail/cur/1.json", Body: body, Task: "Find it.\nSay where.", TaskPath: "/home/u/mail/sent/1.json"}
	return session.Item{Delegation: d, Outcome: d.Result}
}

func lost(exit *session.Exit) session.Item {
	d := delegation()
	d.Exit, d.Gone = exit, &session.Outcome{Status: "gone"}
	return session.Item{Delegation: d, Outcome: d.Gone}
}

func TestMessages(t *testing.T) {
	failed := answered("The run ended with an error: 401")
	failed.Outcome.Status = "failed"
	for name, items := range map[string][]session.Item{
		"done.txt":   {answered("# Entry points\n\n**main.go** starts `it`.\n\n- a\n- b\n- c\n- d\n")},
		"failed.txt": {failed},
		"gone.txt":   {lost(&session.Exit{Code: 3, Screen: []string{"boom", "at line 1"}})},
		"both.txt":   {lost(nil), answered("second\x1b[31m answer\x07")},
	} {
		m := Message(session.Show{ID: "id", Items: items, Trigger: true}, "/home/u")
		if !m.Trigger || m.ID != "id" || !json.Valid(m.Details) {
			t.Errorf("%s: %+v", name, m)
		}
		golden(t, name, m.Content+"\n\n"+shown(m.View))
	}
}

func TestCauses(t *testing.T) {
	for want, exit := range map[string]*session.Exit{
		"its window is gone and nobody saw how it ended":       nil,
		"pi could not be started: no such file":                {Code: -1, Error: "no such file"},
		"pi was killed by SIGKILL":                             {Code: -1, Signal: "SIGKILL"},
		"its window was closed":                                {Code: -1, Signal: "SIGHUP", Hangup: true},
		"pi ended with exit status 1":                          {Code: 1},
		"pi was closed (exit status 0) before it had answered": {},
	} {
		if got := Cause(lost(exit).Delegation); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	never := lost(nil)
	never.Delegation.Window = session.Window{}
	if got := Cause(never.Delegation); !strings.Contains(got, "was not started") {
		t.Errorf("got %q", got)
	}
}

func TestMessageIsBounded(t *testing.T) {
	var items []session.Item
	for range 12 {
		items = append(items, answered("start "+strings.Repeat("é", 100_000)+" end"))
	}
	m := Message(session.Show{ID: "id", Items: items}, "")
	if len(m.Content) > messageLimit+12*2000 {
		t.Errorf("%d bytes", len(m.Content))
	}
	if strings.Count(m.Content, "start é") != 12 || strings.Count(m.Content, "é end") != 12 {
		t.Error("a start or an end is missing")
	}
}

func TestStatus(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	file := filepath.Join(t.TempDir(), "s.jsonl")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	running := delegation()
	running.Phase, running.SessionFile, running.AutoExit = session.Running, file, false
	if err := os.Chtimes(file, now, now.Add(-125*time.Minute)); err != nil {
		t.Fatal(err)
	}
	closed := delegation()
	closed.Closed = &session.Close{}
	done := answered("x").Delegation
	var states []State
	for _, s := range []struct {
		d    *session.Delegation
		seen session.Presence
	}{
		{running, session.Alive}, {running, session.Unknown}, {running, session.Absent}, {done, session.Unknown}, {closed, session.Absent},
		{lost(&session.Exit{Code: 1}).Delegation, session.Absent},
	} {
		states = append(states, StateOf(s.d, s.seen, gitws.UnsureNow("git is missing"), now))
	}
	text := Status(states, "/home/u").Text
	golden(t, "status.txt", strings.ReplaceAll(text, file, "/home/u/s/x.jsonl")+"\n")
	if got := Status(nil, "").Text; got != "No delegations." {
		t.Errorf("got %q", got)
	}
}

func TestStartedAndClosed(t *testing.T) {
	s := Started(delegation(), "Find it.\nSay where.\n", []string{"a note"})
	golden(t, "started.txt", s.Text+"\n\n"+shown(s.View))
	for name, c := range map[string]Close{"killed": {Killed: true}, "already-closed": {Already: true}, "absent": {}} {
		c.Delegation = *delegation()
		if r := Closed(c); !strings.Contains(string(r.Structured), `"outcome":"`+name+`"`) {
			t.Errorf("%s: %s", name, r.Structured)
		}
	}
}

// What the tools say structurally is what they promise in their output schemas.
func TestStructuredContentMatchesItsSchema(t *testing.T) {
	said := map[string][]wire.ToolCallResult{"delegation_close": {Closed(Close{Delegation: *delegation(), Killed: true})}}
	for _, d := range []*session.Delegation{delegation(), answered("x").Delegation, lost(nil).Delegation} {
		said["delegation_status"] = append(said["delegation_status"], Status([]State{StateOf(d, session.Alive, gitws.UnsureNow("git is missing"), time.Now())}, ""))
	}
	for _, tool := range wire.Tools {
		if (tool.Output == nil) != (said[tool.Name] == nil) {
			t.Errorf("%s: schema and examples differ", tool.Name)
		}
		if tool.Output == nil {
			continue
		}
		c := jsonschema.NewCompiler()
		raw, _ := json.Marshal(tool.Output)
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("tool.json", doc); err != nil {
			t.Fatal(err)
		}
		schema, err := c.Compile("tool.json")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range said[tool.Name] {
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(r.Structured)))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); err != nil {
				t.Errorf("%s: %v", tool.Name, err)
			}
		}
	}
}
