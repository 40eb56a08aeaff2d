package tmux

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pi-cradle/squire/tmux/tmuxtest"
)

type user = tmuxtest.Server

// world is a real server, as its user and as we see it.
type world struct {
	*user
	Server
	t      *testing.T
	caller Caller
}

func newWorld(t *testing.T, conf string) world {
	t.Helper()
	x := tmuxtest.Start(t, "s", conf)
	c, err := FromEnv(x.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	return world{x, c.Server, t, c}
}

func (w world) open(name string, argv ...string) Window {
	w.t.Helper()
	got, err := w.NewWindow(context.Background(), NewWindow{Session: w.caller.Session, Name: name, Argv: argv})
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

func (w world) look(win Window) (Window, Presence) {
	w.t.Helper()
	windows, err := w.Windows(context.Background())
	return Find(win, windows, err)
}

func (w world) kill(win Window) bool {
	w.t.Helper()
	killed, err := w.Kill(context.Background(), win)
	if err != nil {
		w.t.Fatal(err)
	}
	return killed
}

func eachConf(t *testing.T, f func(t *testing.T, w world)) {
	for name, conf := range map[string]string{"plain": "", "hostile": tmuxtest.Hostile} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, newWorld(t, conf))
		})
	}
}

func TestNewWindowRunsTheExactCommand(t *testing.T) {
	t.Parallel()
	eachConf(t, func(t *testing.T, w world) {
		out := filepath.Join(w.Dir, "argv")
		script := w.Write("show;", "#!/bin/sh\nprintf '%s\\n' \"$0\" \"$@\" >"+out+".tmp; mv "+out+".tmp "+out+"; exec cat\n", 0o755)
		args := []string{"a;", ";", `b\;`, "#{pane_id}", "#(touch " + w.Dir + "/ran)", "$HOME", "%if", "two words", "", "ü", "{", "}", "'", `"`, "~"}
		got := w.open("scout-first", append([]string{script}, args...)...)
		tmuxtest.Await(t, "the program's arguments", func() bool { _, err := os.Stat(out); return err == nil })
		text, _ := os.ReadFile(out)
		if want := script + "\n" + strings.Join(args, "\n") + "\n"; string(text) != want {
			t.Errorf("arguments %q, want %q", text, want)
		}
		if _, err := os.Stat(filepath.Join(w.Dir, "ran")); err == nil {
			t.Error("tmux ran a command out of an argument")
		}
		now, presence := w.look(got)
		if presence != Alive || now.ID != got.ID || now.PanePID != got.PanePID || got.Name != "scout-first" || got.SessionName != "main" {
			t.Errorf("opened %+v, listed %+v, %v", got, now, presence)
		}
	})
}

func TestFocusStaysWhereItIs(t *testing.T) {
	t.Parallel()
	eachConf(t, func(t *testing.T, w world) {
		focus := func() string {
			return w.Run("list-windows", "-t", "=main:", "-F", "#{?window_active,#{window_id} #{pane_id},}")
		}
		before := strings.TrimSpace(focus())
		var all []Window
		for range 5 {
			all = append(all, w.open("n", "env", "cat"))
			if got := strings.TrimSpace(focus()); got != before {
				t.Fatalf("focus %q, was %q", got, before)
			}
		}
		for _, win := range all[:3] {
			if !w.kill(win) {
				t.Errorf("%s was not killed", win.ID)
			}
			if got := strings.TrimSpace(focus()); got != before {
				t.Fatalf("focus %q, was %q", got, before)
			}
		}
		for i, win := range all {
			if _, got := w.look(win); got != []Presence{Gone, Gone, Gone, Alive, Alive}[i] {
				t.Errorf("window %d is %v", i, got)
			}
		}
	})
}

func TestEndsAreToldApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tmuxtest.Hostile) // with remain-on-exit
	for script, want := range map[string]Window{
		"exit 0": {DeadStatus: 0}, "exit 3": {DeadStatus: 3}, "kill -KILL $$": {DeadStatus: -1, DeadSignal: "9"},
	} {
		win := w.open("n", "/bin/sh", "-c", script)
		var now Window
		tmuxtest.Await(t, script, func() bool {
			var p Presence
			now, p = w.look(win)
			// tmux marks a pane dead when its terminal closes, which can be before it knows how the process ended.
			return p == Ended && (now.DeadStatus >= 0 || now.DeadSignal != "")
		})
		if now.DeadStatus != want.DeadStatus || now.DeadSignal != want.DeadSignal {
			t.Errorf("%s: status %d, signal %q", script, now.DeadStatus, now.DeadSignal)
		}
		if !w.kill(win) {
			t.Errorf("%s: the dead window stays", script)
		}
		if _, p := w.look(win); p != Gone {
			t.Errorf("%s: the window is %v", script, p)
		}
	}
}

func TestKillHitsNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	one, ten := w.open("scout-1", "env", "cat"), w.open("scout-10", "env", "cat")
	alive := func(win Window, what string) {
		t.Helper()
		if _, p := w.look(win); p != Alive {
			t.Errorf("%s: %s is %v", what, win.Name, p)
		}
	}
	if !w.kill(one) {
		t.Error("scout-1 was not killed")
	}
	if w.kill(one) {
		t.Error("scout-1 was killed twice")
	}
	alive(ten, "after its neighbour's end")

	restarted, later, junk := ten, ten, ten
	restarted.ServerPID = deadPID(t)
	later.ServerStart++
	junk.ID, junk.Pane = "scout-1", "scout-1"
	for _, other := range []Window{restarted, later, junk, {}} {
		if w.kill(other) {
			t.Errorf("%+v was killed", other)
		}
	}
	alive(ten, "after kills of others")

	w.Run("rename-window", "-t", ten.ID, "mine")
	if !w.kill(ten) {
		t.Error("a renamed window was not killed")
	}
}

// A user may take the delegate's pane into a window of his own, or put one of his into the delegate's.
func TestKillOfAMovedPane(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	joined := w.open("joined", "env", "cat")
	user := w.Getenv("TMUX_PANE")
	w.Run("join-pane", "-d", "-s", joined.Pane, "-t", user)
	if now, p := w.look(joined); p != Alive || now.ID == joined.ID {
		t.Fatalf("a moved pane is %v in %s", p, now.ID)
	}
	if !w.kill(joined) {
		t.Error("the moved pane was not killed")
	}
	if got := w.Run("list-panes", "-a", "-F", "#{pane_id}"); got != user {
		t.Errorf("panes left: %q", got)
	}
	swapped := w.open("swapped", "env", "cat")
	w.Run("swap-pane", "-d", "-s", swapped.Pane, "-t", user)
	if !w.kill(swapped) {
		t.Error("the swapped pane was not killed")
	}
	if got := w.Run("list-panes", "-a", "-F", "#{pane_id}"); got != user {
		t.Errorf("panes left: %q", got)
	}
}

func TestKillOfTheLastWindowEndsTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	last := w.open("last", "env", "cat")
	w.Run("kill-pane", "-t", w.Getenv("TMUX_PANE"))
	if !w.kill(last) {
		t.Error("the last window was not killed")
	}
	tmuxtest.Await(t, "the end of the server", func() bool { _, p := w.look(last); return p == Gone })
	if w.kill(last) {
		t.Error("a window without a server was killed")
	}
}

func TestNewWindowRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	ok := NewWindow{Session: w.caller.Session, Name: "n", Argv: []string{"env", "cat"}}
	with := func(change func(*NewWindow)) NewWindow { n := ok; change(&n); return n }
	var refused *RefusedError
	for what, n := range map[string]NewWindow{
		"no such session":   with(func(n *NewWindow) { n.Session = "$99" }),
		"a session by name": with(func(n *NewWindow) { n.Session = "main" }),
		"a dot":             with(func(n *NewWindow) { n.Name = "v1.2" }),
		"a colon":           with(func(n *NewWindow) { n.Name = "hot:fix" }),
		"a format":          with(func(n *NewWindow) { n.Name = "#(touch x)" }),
		"no name":           with(func(n *NewWindow) { n.Name = "" }),
		"a shell command":   with(func(n *NewWindow) { n.Argv = []string{"cat"} }),
		"a NUL":             with(func(n *NewWindow) { n.Argv = []string{"env", "a\x00b"} }),
		"a long command":    with(func(n *NewWindow) { n.Argv = []string{"env", strings.Repeat("x", maxCommand)} }),
	} {
		if _, err := w.NewWindow(context.Background(), n); !errors.As(err, &refused) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if windows, err := w.Windows(context.Background()); err != nil || len(windows) != 1 {
		t.Errorf("%d windows, %v", len(windows), err)
	}
	if err := (&RefusedError{}); errors.As(ok.check(), &err) {
		t.Error("the good one is refused too")
	}
}

func TestNewWindowWhenTmuxFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	n := NewWindow{Session: w.caller.Session, Name: "n", Argv: []string{"env", "cat"}}
	open := func(ctx context.Context, s Server) error {
		s.Socket = w.user.Socket
		_, err := s.NewWindow(ctx, n)
		return err
	}
	var refused *RefusedError
	if err := open(context.Background(), fake(t, "echo 'command too long' >&2; exit 1")); !errors.As(err, &refused) || refused.Words != "command too long" {
		t.Errorf("refusal: %v", err)
	}
	var uncertain *UncertainError
	if err := open(context.Background(), fake(t, "exit 0")); !errors.As(err, &uncertain) {
		t.Errorf("no answer: %v", err)
	}
	if err := open(context.Background(), fake(t, "kill -9 $$")); !errors.As(err, &uncertain) {
		t.Errorf("killed: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := open(ctx, fake(t, "exec sleep 1000")); !errors.As(err, &uncertain) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hung: %v", err)
	}
	var missing *MissingError
	if err := open(context.Background(), Server{Bin: "no-such-tmux"}); !errors.As(err, &missing) {
		t.Errorf("missing: %v", err)
	}
	var none *NoServerError
	if _, err := (Server{Socket: filepath.Join(t.TempDir(), "s")}).NewWindow(context.Background(), n); !errors.As(err, &none) {
		t.Errorf("no server: %v", err)
	}
	// What tmux printed counts, even when a hook of the user's fails afterwards.
	w.Run("set-hook", "-g", "after-new-window", "select-window -t nowhere:99")
	if win := w.open("n", "env", "cat"); win.Pane == "" {
		t.Error("no window")
	}
}

// The command that opens a window carries ids, a name and two words, whatever is started.
func TestNewWindowCommandIsShort(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	s := fake(t, "printf '%s\\n' \"$@\" >>"+log+"; exit 1")
	_, _ = s.NewWindow(context.Background(), NewWindow{Session: "$1", Name: "scout-first", Argv: []string{"/usr/lib/pi-cradle/cradle-helper", "exec", "/home/someone/.pi/agent/squire/launch/0191.json"}})
	text, err := os.ReadFile(log)
	if err != nil || len(text) >= 1024 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	words := strings.Split(string(text), "\n")
	if slices.Contains(words, "send-keys") || slices.Contains(words, "-c") || slices.Contains(words, "-e") {
		t.Errorf("command %q", words)
	}
}

func BenchmarkNewWindow(b *testing.B) {
	x := tmuxtest.Start(b, "s", "")
	c, err := FromEnv(x.Getenv)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			w, err := c.Server.NewWindow(ctx, NewWindow{Session: c.Session, Name: "n", Argv: []string{"sleep", "1000"}})
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			_, _ = c.Server.Kill(ctx, w)
			b.StartTimer()
		}
	})
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			id := x.Run("new-window", "-d", "-P", "-F", "#{window_id}", "-t", "=main:", "--", "sleep", "1000")
			b.StopTimer()
			x.Run("kill-window", "-t", id)
			b.StartTimer()
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Server.Windows(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
}
