package e2e

import (
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

func TestWhatTheUserSees(t *testing.T) {
	e, parent := world(t, testenv.Options{Height: 60})
	parent.Submit("/delegate scout --label seen the task\nHOLD work\nSAY # One\nSAY two\nSAY three\nSAY four\nSAY five\nSAY six\nSAY seven")
	parent.AwaitText("scout-seen")
	parent.AwaitText("1 delegate running")
	e.Model.Await(t, "the task", child("the task"))
	awaitScreen(t, e, e.Tmux.AwaitWindow("scout-seen").Pane, "scout delegate · auto-exit on")

	e.Model.Release("work")
	collapsed := parent.AwaitScreen("the result's row", func(s string) bool { return strings.Contains(s, "✓ scout-seen (fake/child) — done") })
	if !strings.Contains(collapsed, "five") || strings.Contains(collapsed, "six") || strings.Contains(collapsed, "# One") {
		t.Errorf("not the first five lines in plain text on\n%s", collapsed)
	}
	parent.AwaitScreen("the footer without a count", func(s string) bool { return !strings.Contains(s, "1 delegate running") })
	parent.Keys("C-o")
	parent.AwaitScreen("the whole result", func(s string) bool {
		return strings.Contains(s, "seven") && strings.Contains(s, "envelope") && strings.Contains(s, "HOLD work")
	})
	parent.Keys("C-o")
	parent.AwaitScreen("the row in short again", func(s string) bool { return !strings.Contains(s, "seven") })
}

func TestArgumentsAreCompleted(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	e.Agent("writer", "---\ndescription: Writes things down\n---\n")
	parent.Keys("-l", "--", "/delegate sc")
	menu := parent.AwaitScreen("the scout in the menu", func(s string) bool { return strings.Contains(s, "Looks things up") })
	if strings.Contains(menu, "Writes things down") {
		t.Errorf("the menu offers what was not begun:\n%s", menu)
	}
	parent.Keys("Tab")
	parent.Keys("-l", "--", " --thi")
	parent.AwaitScreen("the flag in the menu", func(s string) bool { return strings.Contains(s, "--thinking") })
}
