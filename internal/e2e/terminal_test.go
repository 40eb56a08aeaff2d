package e2e

import (
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

// hostileConf is a tmux.conf in which little is as by default.
const hostileConf = `
set -g base-index 7
setw -g pane-base-index 3
set -g renumber-windows on
setw -g automatic-rename on
set -g allow-rename on
setw -g remain-on-exit on
set -g default-command "exit 1"
set -g update-environment ""
set -g default-terminal "screen"
set -g set-titles on
setw -g monitor-activity on
set -g word-separators ""
set-hook -g after-new-window 'rename-session -t main main'
set-environment -g PI_DELEGATE_PARENT stranger
set-environment -g PI_DELEGATE_DEPTH 9
`

func TestTerminals(t *testing.T) {
	cases := map[string]struct {
		options testenv.Options
		shell   string // a default-shell
	}{
		"hostile configuration": {options: testenv.Options{TmuxConf: hostileConf}},
		"empty environment":     {options: testenv.Options{CleanServer: true}},
		"socket with a space":   {options: testenv.Options{Socket: "a b,c 1.sock"}},
		"shell eats stdin":      {shell: "cat >/dev/null"},
		"shell refuses -c":      {shell: `echo "no: $1" >&2; exit 2`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testenv.New(t, c.options)
			e.Scout()
			if c.shell != "" {
				e.FakeTool("shell", c.shell)
				e.Tmux.Run("set-option", "-g", "default-shell", e.BinDir+"/shell")
			}
			parent := e.Start(testenv.PiOptions{})
			focus := e.Tmux.Focus()
			parent.Submit("/delegate scout --label odd the task\nHOLD work\nSAY the answer")
			e.Model.Await(t, "the task", child("the task"))
			window := e.Tmux.AwaitWindow("scout-odd")
			e.Model.Release("work")
			e.Model.Await(t, "the result", told("the answer"))
			testenv.Await(t, "the end of the delegate", func() bool {
				for _, w := range e.Tmux.Windows() {
					if w.ID == window.ID && !w.Dead {
						return false
					}
				}
				return true
			})
			exactlyOnce(t, parent, "the answer")
			if n := e.Model.Count(gone); n != 0 {
				t.Error("a delegate that answered was reported as gone")
			}
			if now := e.Tmux.Focus(); now != focus {
				t.Errorf("the focus went from %s to %s", focus, now)
			}
		})
	}
}

// What TMUX and TMUX_PANE say may be wrong. Either the pane is found all the same, or nothing is started.
func TestOddTmuxVariables(t *testing.T) {
	cases := map[string]struct {
		environ map[string]string
		refused string // part of the refusal; empty: it works
	}{
		"dead server":   {map[string]string{"TMUX": "/nonexistent/sock,1,0"}, "/nonexistent/sock"},
		"dead pane":     {map[string]string{"TMUX_PANE": "%999"}, ""},
		"no pane named": {map[string]string{"TMUX_PANE": ""}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testenv.New(t, testenv.Options{})
			e.Scout()
			parent := e.Start(testenv.PiOptions{Environ: c.environ})
			if c.refused == "" {
				held(t, e, parent)
				if w := e.Tmux.AwaitWindow("scout-"); w.Session != "work-delegates" {
					t.Errorf("the window is in session %s", w.Session)
				}
				arrive(t, e, parent)
				exactlyOnce(t, parent, "the answer")
				return
			}
			parent.Submit("/delegate scout the task")
			refused(t, e, parent, c.refused)
		})
	}
}

// refused asserts that the parent shows text and that nothing was started, sent or written.
func refused(t *testing.T, e *testenv.Env, parent *testenv.Pi, texts ...string) {
	t.Helper()
	for _, text := range texts {
		parent.AwaitScreen(text, func(s string) bool { return strings.Contains(joined(s), text) })
	}
	parent.Submit("a marker\nSAY marked")
	e.Model.AwaitAnswered(t, "a later prompt", prompt("a marker"))
	if windows := e.Tmux.Named("scout"); len(windows) != 0 {
		t.Errorf("windows were opened: %+v", windows)
	}
	if sent := files(e.MailRoot, "/sent/", "/new/", "/cur/"); len(sent) != 0 {
		t.Errorf("mail was sent: %v", sent)
	}
	if specs := files(e.AgentDir+"/squire", "/launch/"); len(specs) != 0 {
		t.Errorf("launch files were written: %v", specs)
	}
	if n := e.Model.Count(func(r testenv.Request) bool { return r.Model != "parent" }); n != 0 {
		t.Errorf("a delegate made %d requests", n)
	}
}

// joined undoes the screen's line breaks.
func joined(screen string) string { return strings.Join(strings.Fields(screen), " ") }
