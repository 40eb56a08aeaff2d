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
