package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pi-cradle/squire/tmux/tmuxtest"
)

func TestParseSession(t *testing.T) {
	t.Parallel()
	got, ok := parseSession(mark + "|12|3.3a|$4|1|a|b")
	if !ok || got.ServerPID != 12 || got.ID != "$4" || !got.Companion || got.Name != "a|b" {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, line := range []string{"", "x|12|3.3a|$4|1|a", mark + "|x|3.3a|$4|1|a", mark + "|12|3.3a|4|1|a", mark + "|12|3.3a|$4|1"} {
		if got, ok := parseSession(line); ok {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

func FuzzParseSession(f *testing.F) {
	f.Add(mark + "|12|3.3a|$4|1|a|b")
	f.Fuzz(func(t *testing.T, line string) {
		if s, ok := parseSession(line); ok && (!validID(s.ID, '$') || !strings.HasSuffix(line, s.Name)) {
			t.Fatalf("%+v of %q", s, line)
		}
	})
}

func TestCompanionChoice(t *testing.T) {
	t.Parallel()
	c := Companion{Name: "app-delegates"}
	marked := func(names ...string) (all []Session) {
		for i, name := range names {
			plain, companion := strings.CutSuffix(name, "!")
			all = append(all, Session{ID: fmt.Sprintf("$%d", i), Name: plain, Companion: companion})
		}
		return all
	}
	for _, x := range []struct {
		sessions       []Session
		existing, free string
	}{
		{nil, "", "app-delegates"},
		{marked("app", "app-delegates-x", "app-delegates-02!", "app-delegates-1!", "app-delegates-!", "App-delegates!"), "", "app-delegates"},
		{marked("app-delegates"), "", "app-delegates-2"},
		{marked("app-delegates-2", "app-delegates"), "", "app-delegates-3"},
		{marked("app-delegates-2"), "", "app-delegates"},
		{marked("app-delegates!"), "app-delegates", "app-delegates-2"},
		{marked("app-delegates-2!"), "app-delegates-2", "app-delegates"},
		{marked("app-delegates-10!", "app-delegates-9!", "app-delegates"), "app-delegates-9", "app-delegates-2"},
		{marked("app-delegates-3!", "app-delegates!"), "app-delegates", "app-delegates-2"},
	} {
		if existing, free := c.choose(x.sessions); existing.Name != x.existing || free != x.free {
			t.Errorf("%v: %q, %q", x.sessions, existing.Name, free)
		}
	}
}

func (w world) companion(name string) Companion {
	return Companion{Name: name, Home: w.Dir, Locks: filepath.Join(w.Dir, "locks")}
}

// beside opens a window as a launch does that has looked a moment ago.
func (w world) beside(c Companion) Window {
	w.t.Helper()
	known, err := w.caller.Sessions(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	got, err := w.NewCompanionWindow(context.Background(), c, NewWindow{Name: "scout-1", Argv: []string{"env", "cat"}}, known)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

func (w world) sessions() string {
	return strings.ReplaceAll(w.Run("list-sessions", "-F", "#{session_name}:#{session_windows}"), "\n", " ")
}

func TestCompanionLivesAsLongAsItsWindows(t *testing.T) {
	t.Parallel()
	eachConf(t, func(t *testing.T, w world) {
		global := w.Run("show-options", "-g")
		c := w.companion("app-delegates")
		one, two := w.beside(c), w.beside(c)
		if one.Session != two.Session || one.SessionName != "app-delegates" || w.sessions() != "app-delegates:2 main:1" {
			t.Errorf("%+v and %+v in %s", one, two, w.sessions())
		}
		for option, want := range map[string]string{"@squire-companion": "1", "detach-on-destroy": "off", "destroy-unattached": "off"} {
			if got := w.Run("show-options", "-v", "-t", one.Session, option); got != want {
				t.Errorf("%s is %q there", option, got)
			}
			if got := w.Run("show-options", "-qv", "-t", "=main:", option); got != "" {
				t.Errorf("%s is %q in the user's session", option, got)
			}
		}
		if now := w.Run("show-options", "-g"); now != global {
			t.Error("global options have changed")
		}
		w.kill(one)
		w.kill(two)
		if got := w.sessions(); got != "main:1" {
			t.Errorf("left: %s", got)
		}
		// What is known by now is old: the session has gone.
		stale := []Session{{ServerPID: w.caller.ServerPID, ID: one.Session, Name: "app-delegates", Companion: true}}
		three, err := w.NewCompanionWindow(context.Background(), c, NewWindow{Name: "n", Argv: []string{"env", "cat"}}, stale)
		if err != nil || three.SessionName != "app-delegates" {
			t.Errorf("%+v, %v", three, err)
		}
	})
}

func TestUnmarkedSessionsAreLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.Run("new-session", "-d", "-s", "app-delegates", "--", "env", "cat")
	c := w.companion("app-delegates")
	first := w.beside(c)
	w.Run("kill-session", "-t", "=app-delegates")
	if second := w.beside(c); second.Session != first.Session || w.sessions() != "app-delegates-2:2 main:1" {
		t.Errorf("%+v in %s", second, w.sessions())
	}
}

// Hooks of the user's can rename what was made, or fail.
func TestCompanionUnderHooks(t *testing.T) {
	t.Parallel()
	for _, hook := range []string{"rename-session -t =app-delegates: mine", "select-window -t nowhere:99"} {
		w := newWorld(t, "")
		w.Run("set-hook", "-g", "after-new-session", hook)
		first := w.beside(w.companion("app-delegates"))
		if got := w.Run("show-options", "-v", "-t", first.Session, "@squire-companion"); got != "1" {
			t.Errorf("%s: the mark is %q", hook, got)
		}
	}
}

func TestManyLaunchesShareOneCompanion(t *testing.T) {
	t.Parallel()
	for what, locks := range map[string]func(int) string{
		"one agent directory": func(int) string { return "locks" }, "two": func(i int) string { return fmt.Sprintf("locks-%d", i%2) },
	} {
		w := newWorld(t, "")
		known, err := w.caller.Sessions(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				c := w.companion("app-delegates")
				c.Locks = filepath.Join(w.Dir, locks(i))
				if _, err := w.NewCompanionWindow(context.Background(), c, NewWindow{Name: "n", Argv: []string{"env", "cat"}}, known); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			})
		}
		group.Wait()
		if got := w.sessions(); got != "app-delegates:8 main:1" {
			t.Errorf("%s: %s", what, got)
		}
	}
}

func TestClientsKeepWhatTheySee(t *testing.T) {
	t.Parallel()
	eachConf(t, func(t *testing.T, w world) {
		w.Run("new-session", "-d", "-s", "other", "-x", "80", "-y", "24", "--", "env", "cat")
		w.Attach("=main", 131, 41)
		w.Attach("=other", 67, 23)
		seen := func() string {
			return w.Run("list-clients", "-F", "#{client_name} #{session_name} #{window_id} #{pane_id} #{client_width}x#{client_height} #{window_width}x#{window_height}")
		}
		before := seen()
		if !strings.Contains(before, "131x") || !strings.Contains(before, "67x") {
			t.Fatalf("the clients are %s", before)
		}
		c := w.companion("app-delegates")
		var all []Window
		for i := range 5 {
			if i == 4 { // in the user's own session too
				all = append(all, w.open("n", "env", "cat"))
			} else {
				all = append(all, w.beside(c))
			}
			if now := seen(); now != before {
				t.Fatalf("after %d windows:\n%s\nbefore:\n%s", i+1, now, before)
			}
		}
		for _, win := range all {
			w.kill(win)
			if now := seen(); now != before {
				t.Fatalf("after the end of %s:\n%s\nbefore:\n%s", win.ID, now, before)
			}
		}
	})
}

func TestClientInACompanionStaysInTmux(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	win := w.beside(w.companion("app-delegates"))
	client := w.Attach("=app-delegates", 90, 30)
	w.kill(win)
	tmuxtest.Await(t, "the move of the client", func() bool { return w.Run("list-clients", "-F", "#{client_name} #{session_name}") == client+" main" })
}

func TestServerIsStartedForACompanion(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/tmp", "tt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := Default(func(name string) string { return map[string]string{"TMUX_TMPDIR": dir}[name] })
	if want := filepath.Join(dir, fmt.Sprintf("tmux-%d", os.Geteuid()), "default"); s.Socket != want {
		t.Fatalf("the socket is %s, not %s", s.Socket, want)
	}
	sessions, err := s.Startable(context.Background())
	if err != nil || len(sessions) != 0 {
		t.Fatalf("%v, %v", sessions, err)
	}
	t.Cleanup(func() { _, _ = s.ask(context.Background(), "kill-server") })
	c := Companion{Name: "app-delegates", Home: dir, Locks: filepath.Join(dir, "locks")}
	first, err := s.NewCompanionWindow(context.Background(), c, NewWindow{Name: "n", Argv: []string{"env", "cat"}}, sessions)
	if err != nil {
		t.Fatal(err)
	}
	sessions, err = s.Startable(context.Background())
	if err != nil || len(sessions) != 1 || !sessions[0].Companion {
		t.Fatalf("%+v, %v", sessions, err)
	}
	second, err := s.NewCompanionWindow(context.Background(), c, NewWindow{Name: "n", Argv: []string{"env", "cat"}}, sessions)
	if err != nil || second.Session != first.Session {
		t.Errorf("%+v, %v", second, err)
	}
}

func TestDefaultRefusesAnOpenFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := Default(func(name string) string { return map[string]string{"TMUX_TMPDIR": dir}[name] })
	if err := os.Mkdir(filepath.Dir(s.Socket), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(s.Socket), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Startable(context.Background()); err == nil || !strings.Contains(err.Error(), "open to others") {
		t.Errorf("%v", err)
	}
	if s := Default(func(string) string { return "" }); !strings.HasSuffix(s.Socket, "/default") || !filepath.IsAbs(s.Socket) {
		t.Errorf("without TMUX_TMPDIR: %s", s.Socket)
	}
}

func TestStartableNeedsAUsableTmux(t *testing.T) {
	t.Parallel()
	var missing *MissingError
	none := filepath.Join(t.TempDir(), "none", "s")
	if _, err := (Server{Socket: none, Bin: "no-such-tmux"}).Startable(context.Background()); !errors.As(err, &missing) {
		t.Errorf("%v", err)
	}
	old := fake(t, `[ "$4" = -V ] || exit 1; echo tmux 3.1c`)
	old.Socket = none
	var tooOld *TooOldError
	if _, err := old.Startable(context.Background()); !errors.As(err, &tooOld) {
		t.Errorf("%v", err)
	}
}
