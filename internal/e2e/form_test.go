package e2e

import (
	"fmt"
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

// shows waits for a screen with all of the texts, whatever its line breaks.
func shows(p *testenv.Pi, texts ...string) string {
	p.Env.T.Helper()
	return p.AwaitScreen(strings.Join(texts, ", "), func(s string) bool {
		for _, text := range texts {
			if !strings.Contains(joined(s), text) {
				return false
			}
		}
		return true
	})
}

// The form, typed by keys in a wide and in a narrow terminal.
func TestForm(t *testing.T) {
	for _, width := range []int{80, 40} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			e := testenv.New(t, testenv.Options{Width: width, Height: 40})
			sixAgents(e)
			parent := e.Start(testenv.PiOptions{})
			look := func(texts ...string) {
				t.Helper()
				screen := shows(parent, texts...)
				t.Logf("%v:\n%s", texts, screen)
				for line := range strings.Lines(screen) {
					if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > width {
						t.Errorf("a line of %d columns: %q", n, line)
					}
				}
			}
			parent.Submit("/delegate")
			look("Delegate to which agent?", "→ recon", "scout", "silent", "worker")
			parent.Keys("Down", "Enter")
			look("Task for scout")
			e.Tmux.Paste(parent.Pane, "look at\nSAY the answer")
			look("SAY the answer")
			parent.Keys("Enter")
			look("Short name for its window")
			e.Tmux.Paste(parent.Pane, "a:b")
			parent.Keys("Enter")
			look(`label "a:b" is not allowed`)
			e.Tmux.Paste(parent.Pane, "first")
			parent.Keys("Enter")
			look("Start scout", "→ Start", "Model: fake/child", "Thinking: off", "Auto-exit: on", "Working directory:", "Worktree: none")
			parent.Keys("Down", "Enter")
			look("Model", "→ fake/child", "fake/other", "fake/parent")
			e.Tmux.Paste(parent.Pane, "oth")
			look("→ fake/other")
			parent.Keys("Enter")
			look("→ Model: fake/other")
			parent.Keys("Down", "Enter")
			look("Thinking", "→ off", "high")
			parent.Keys("Down", "Enter")
			look("→ Thinking: minimal")
			parent.Keys("Down", "Enter")
			look("→ Auto-exit: off")
			parent.Keys("Enter")
			look("→ Auto-exit: on")
			parent.Keys("Up", "Up", "Up", "Enter")
			r := e.Model.AwaitAnswered(t, "the task", func(r testenv.Request) bool { return r.Model == "other" && r.Said("user", "look at") })
			if r.Effort != "minimal" {
				t.Errorf("thinking is %q", r.Effort)
			}
			look("started in window scout-first")
			e.Model.AwaitAnswered(t, "the result", told("the answer"))
			e.Tmux.AwaitNoWindow("scout-first")
		})
	}
}

// Leaving the form anywhere starts nothing, and what was written is there again the next time.
func TestFormCancelled(t *testing.T) {
	for name, pi := range map[string]func(testenv.T) testenv.PiVersion{"newest": testenv.Newest, "oldest": testenv.Oldest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testenv.New(t, testenv.Options{Pi: pi(t)})
			e.Scout()
			parent := e.Start(testenv.PiOptions{})
			escape := func() {
				t.Helper()
				parent.Keys("Escape")
				parent.AwaitScreen("the input line", func(s string) bool { return !strings.Contains(s, "cancel") })
			}
			parent.Submit("/delegate")
			shows(parent, "Delegate to which agent?")
			escape()
			parent.Submit("/delegate")
			shows(parent, "Delegate to which agent?")
			parent.Keys("Enter")
			shows(parent, "Task for scout")
			e.Tmux.Paste(parent.Pane, "a long task that took a while to write")
			shows(parent, "a while to write")
			escape()
			parent.Submit("/delegate")
			shows(parent, "Delegate to which agent?")
			parent.Keys("Enter")
			shows(parent, "Task for scout", "a long task that took a while to write")
			parent.Keys("Enter")
			shows(parent, "Short name for its window")
			escape()
			parent.Submit("/delegate")
			shows(parent, "Delegate to which agent?")
			parent.Keys("Enter")
			shows(parent, "a long task that took a while to write")
			parent.Keys("Enter")
			shows(parent, "Short name for its window")
			parent.Keys("Enter")
			shows(parent, "→ Start", "Worktree: none")
			escape()
			refused(t, e, parent)
			parent.Submit("/delegate")
			shows(parent, "Delegate to which agent?")
			parent.Keys("Enter")
			shows(parent, "a long task that took a while to write")
			parent.Keys("Enter")
			shows(parent, "Short name for its window")
			parent.Keys("Enter")
			shows(parent, "→ Start")
			parent.Keys("Enter")
			e.Model.AwaitAnswered(t, "the task", child("a long task that took a while to write"))
			e.Tmux.AwaitNoWindow("scout-")
			parent.Submit("/delegate")
			shows(parent, "Delegate to which agent?")
			parent.Keys("Enter")
			screen := shows(parent, "Task for scout")
			if strings.Contains(after(screen, "Task for scout"), "a long task") {
				t.Error("a task that was started is offered again")
			}
			escape()
		})
	}
}

// The same through the dialogs of RPC mode.
func TestFormOverRPC(t *testing.T) {
	t.Parallel()
	e := testenv.New(t, testenv.Options{})
	e.Scout()
	rpc := e.StartRPC()
	rpc.Send(map[string]any{"type": "prompt", "id": "form", "message": "/delegate"})
	asked := map[string]bool{}
	answer := func(method, title, value string) {
		t.Helper()
		ev := rpc.Await("the dialog "+title, func(ev testenv.Event) bool {
			return ev.Type == "extension_ui_request" && (ev.Method == "select" || ev.Method == "input" || ev.Method == "editor") && !asked[ev.ID]
		})
		asked[ev.ID] = true
		if ev.Method != method || !strings.Contains(string(ev.Raw), title) {
			t.Fatalf("got %s", ev.Raw)
		}
		rpc.Send(map[string]any{"type": "extension_ui_response", "id": ev.ID, "value": value})
	}
	answer("select", "Delegate to which agent?", "scout — Looks things up")
	answer("editor", "Task for scout", "the task\nSAY the answer")
	answer("input", "Short name for its window", "by-rpc")
	answer("select", "Start scout", "Auto-exit: on")
	answer("select", "Auto-exit: off", "Start")
	e.Model.AwaitAnswered(t, "the result", told("the answer"))
	if len(e.Tmux.Named("scout-by-rpc")) != 1 {
		t.Error("the window did not stay open")
	}
}
