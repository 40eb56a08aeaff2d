package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pi-cradle/squire/tmux/tmuxtest"
)

func TestFromEnv(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tmux, pane, socket, session, wantPane string
	}{
		{"/tmp/tmux-0/default,123,4", "%7", "/tmp/tmux-0/default", "$4", "%7"},
		{"/tmp/a b/s,ock,123,4", "%7", "/tmp/a b/s,ock", "$4", "%7"},
		{"/s,1,2,3,4", "", "/s,1,2", "$4", ""},
		{"/s,123,0", "7", "/s", "$0", ""},
		{tmux: ""},
		{tmux: "/s"},
		{tmux: "/s,1"},
		{tmux: "s,1,2"},
		{tmux: "/s,0,2"},
		{tmux: "/s,x,2"},
		{tmux: "/s,1,"},
		{tmux: "/s,1,-2"},
		{tmux: "/s,99999999999999999999,2"},
	} {
		got, err := FromEnv(func(name string) string { return map[string]string{"TMUX": c.tmux, "TMUX_PANE": c.pane}[name] })
		var not *NotInsideError
		if c.socket == "" {
			if !errors.As(err, &not) {
				t.Errorf("%q: %v, want a NotInsideError", c.tmux, err)
			}
			continue
		}
		if err != nil || got.Server.Socket != c.socket || got.Session != c.session || got.Pane != c.wantPane {
			t.Errorf("%q %q: %+v, %v", c.tmux, c.pane, got, err)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"3.2": true, "3.2a": true, "tmux 3.3a": true, "next-3.4": true, "tmux next-3.2": true, "4.0": true, "10.1": true, "master": true,
		"openbsd-7.4": true, "": false, "3.1c": false, "2.9a": false, "1.8": false, "tmux 3.1": false, "next-3.1": false,
	} {
		if got := ParseVersion(text).AtLeast(3, 2); got != want {
			t.Errorf("%q at least 3.2: %v, want %v", text, got, want)
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	x := tmuxtest.Start(t, "s,o ck", "")
	caller, err := FromEnv(x.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	home := caller.Session
	other := x.Run("new-session", "-d", "-P", "-F", "#{session_id}", "-s", "other", "--", "env", "cat")
	resolve := func(c Caller, want string) {
		t.Helper()
		if got, err := c.Resolve(ctx); err != nil || got != want {
			t.Errorf("%+v resolves to %q, %v; want %q", c, got, err, want)
		}
	}
	resolve(caller, home)
	popup := caller
	popup.Pane = ""
	resolve(popup, home)
	dead := caller
	dead.Pane = "%99"
	resolve(dead, home)

	// A linked window is in both sessions; the caller stays where it came from.
	x.Run("link-window", "-s", "=main:user", "-t", "=other:")
	resolve(caller, home)
	visitor := caller
	visitor.Session = "$99"
	if got, err := visitor.Resolve(ctx); err != nil || got != home && got != other {
		t.Errorf("with an unknown session: %q, %v", got, err)
	}
	// A moved window is where it is now.
	x.Run("unlink-window", "-t", "=main:user")
	resolve(caller, other)

	var stale *StaleError
	gone := Caller{Server: caller.Server, ServerPID: caller.ServerPID, Session: "$99", Pane: "%99"}
	if _, err := gone.Resolve(ctx); !errors.As(err, &stale) {
		t.Errorf("dead pane and dead session: %v", err)
	}
	// The ids of an earlier server on the same socket mean something else now.
	earlier := caller
	earlier.ServerPID++
	if _, err := earlier.Resolve(ctx); !errors.As(err, &stale) {
		t.Errorf("another server: %v", err)
	}
	var none *NoServerError
	x.Run("kill-server")
	tmuxtest.Await(t, "the end of the server", func() bool {
		_, err = caller.Resolve(ctx)
		return errors.As(err, &none)
	})
}

// fake is a program that stands for tmux.
func fake(t *testing.T, script string) Server {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tmux")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return Server{Socket: filepath.Join(t.TempDir(), "none"), Bin: path}
}

func line(pid int, start, version, rest string) string {
	return fmt.Sprintf("%s|%d|%s|%s|%s", mark, pid, start, version, rest)
}

func TestTooOld(t *testing.T) {
	t.Parallel()
	s := fake(t, "echo '"+line(41, "5", "3.1c", "$0|@1|%2|77|0|||main:w")+"'")
	var old *TooOldError
	if _, err := (Caller{Server: s, ServerPID: 41, Session: "$0"}).Resolve(context.Background()); !errors.As(err, &old) || old.Version.Text != "3.1c" {
		t.Fatalf("got %v", err)
	}
}

func TestHowTmuxCanFail(t *testing.T) {
	t.Parallel()
	x := tmuxtest.Start(t, "s", "")
	alive := Server{Socket: x.Socket}
	windows, err := alive.Windows(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	living := windows[0]
	deadServer := living
	deadServer.ServerPID = deadPID(t)

	with := func(script string) Server {
		s := fake(t, script)
		s.Socket = x.Socket // a server listens, whatever the program says
		return s
	}
	hung, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name   string
		server Server
		ctx    context.Context
		want   any
		living Presence // of a window whose server lives
		dead   Presence // of a window whose server is no more
	}{
		{"hangs", with("exec sleep 1000"), hung, new(*AskError), Unknown, Unknown},
		{"odd exit", with("echo 'lost the plot' >&2; exit 1"), nil, new(*AskError), Unknown, Unknown},
		{"dies", with("kill -9 $$"), nil, new(*AskError), Unknown, Unknown},
		{"says nothing", with("exit 0"), nil, new(*AskError), Unknown, Unknown},
		{"prints ids that are none", with("echo '" + line(1, "5", "3.3", "0|1|2|77|0|||main:w") + "'"), nil, new(*AskError), Unknown, Unknown},
		{"missing", Server{Socket: x.Socket, Bin: "/no/such/tmux"}, nil, new(*MissingError), Unknown, Unknown},
		{"missing on PATH", Server{Socket: x.Socket, Bin: "no-such-tmux"}, nil, new(*MissingError), Unknown, Unknown},
		{"no server", Server{Socket: filepath.Join(t.TempDir(), "s")}, nil, new(*NoServerError), Unknown, Gone},
		{"another server", with("echo '" + line(1, "5", "3.3", "$0|@1|%2|77|0|||main:w") + "'"), nil, nil, Unknown, Gone},
	} {
		ctx := c.ctx
		if ctx == nil {
			ctx = context.Background()
		}
		windows, err := c.server.Windows(ctx)
		if c.want == nil && err != nil || c.want != nil && !errors.As(err, c.want) {
			t.Errorf("%s: %v is no %T", c.name, err, c.want)
		}
		if _, got := Find(living, windows, err); got != c.living {
			t.Errorf("%s: a window of a living server is %v, want %v", c.name, got, c.living)
		}
		if _, got := Find(deadServer, windows, err); got != c.dead {
			t.Errorf("%s: a window of a dead server is %v, want %v", c.name, got, c.dead)
		}
	}
	if _, got := Find(living, windows, nil); got != Alive {
		t.Errorf("the window itself is %v", got)
	}
	odd := living
	odd.Pane = "%99"
	if _, got := Find(odd, windows, nil); got != Gone {
		t.Errorf("a window that is not listed is %v", got)
	}
}

// deadPID is the number of a process that was and is no more.
func deadPID(t *testing.T) int {
	t.Helper()
	x := tmuxtest.Start(t, "s", "")
	var pid int
	if _, err := fmt.Sscan(x.Run("display-message", "-p", "#{pid}"), &pid); err != nil {
		t.Fatal(err)
	}
	if gone(pid) {
		t.Fatalf("process %d of a living server counts as gone", pid)
	}
	x.Run("kill-server")
	tmuxtest.Await(t, "the end of the server", func() bool { return gone(pid) })
	return pid
}

func TestAnotherProgramUnderTheServersNumber(t *testing.T) {
	t.Parallel()
	if !gone(os.Getpid()) {
		t.Error("this test counts as a tmux server")
	}
}

// Without a UTF-8 locale tmux prints "_" for much that is not ASCII, and once did for tabs.
func TestWindowsWithoutLocale(t *testing.T) {
	for _, name := range []string{"LANG", "LC_ALL", "LC_CTYPE", "TMUX", "TMUX_PANE"} {
		t.Setenv(name, "") // to have it back afterwards: tmux takes an empty TMUX for one that supports UTF-8
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	x := tmuxtest.Start(t, "s", "")
	names := []string{"a b", "p|i|pe", "co:lon", "ümläut 世界 🙂", "two  spaces ", "squire-window|1|2"}
	for _, name := range names {
		id := x.Run("new-window", "-d", "-P", "-F", "#{window_id}", "-t", "=main:", "--", "env", "cat")
		x.Run("rename-window", "-t", id, name)
	}
	windows, err := Server{Socket: x.Socket}.Windows(context.Background())
	if err != nil || len(windows) != len(names)+1 {
		t.Fatalf("%d windows, %v", len(windows), err)
	}
	for i, name := range names {
		w := windows[i+1]
		// tmux itself may respell a name (it escapes some characters); what it has must come through.
		if has := x.Run("display-message", "-p", "-t", w.ID, "#{window_name}"); w.Name != has || !strings.Contains(has, name) {
			t.Errorf("name %q, tmux has %q, asked for %q", w.Name, has, name)
		}
		if w.Pane != x.Run("display-message", "-p", "-t", w.ID, "#{pane_id}") || w.SessionName != "main" || w.PanePID == 0 {
			t.Errorf("%q: %+v", name, w)
		}
	}
}

func TestWindowIdentity(t *testing.T) {
	t.Parallel()
	w := Window{ServerPID: 1, ServerStart: 2, ID: "@3", Pane: "%4", Name: "n"}
	moved, restarted, later, neighbour := w, w, w, w
	moved.ID, moved.Name, moved.Session = "@9", "renamed", "$8"
	restarted.ServerPID = 9
	later.ServerStart = 9
	neighbour.Pane = "%44"
	if !w.Same(moved) || w.Same(restarted) || w.Same(later) || w.Same(neighbour) {
		t.Errorf("moved %v, restarted %v, later %v, neighbour %v", w.Same(moved), w.Same(restarted), w.Same(later), w.Same(neighbour))
	}
}

func FuzzFromEnv(f *testing.F) {
	f.Add("/tmp/a,b,1,2", "%1")
	f.Fuzz(func(t *testing.T, value, pane string) {
		c, err := FromEnv(func(name string) string { return map[string]string{"TMUX": value, "TMUX_PANE": pane}[name] })
		if err != nil {
			return
		}
		if back := fmt.Sprintf("%s,%d,%s", c.Server.Socket, c.ServerPID, c.Session[1:]); !sameNumbers(back, value) || c.Pane != "" && c.Pane != pane {
			t.Fatalf("%q %q gives %+v", value, pane, c)
		}
	})
}

// sameNumbers compares after dropping leading zeros of the second to last field.
func sameNumbers(a, b string) bool {
	trim := func(s string) []string {
		f := strings.Split(s, ",")
		f[len(f)-2] = strings.TrimLeft(f[len(f)-2], "+0")
		return f
	}
	return slices.Equal(trim(a), trim(b))
}

func FuzzParse(f *testing.F) {
	f.Add(line(1, "5", "3.3a", "$0|@1|%2|77|1|3||main:w|x:y"))
	f.Add(line(1, "5", "next-3.4", "$0|@1|%2|77|1||9|main:"))
	f.Add("squire-window|junk")
	f.Fuzz(func(t *testing.T, s string) {
		windows, err := parseAll(s)
		if err != nil && windows != nil {
			t.Fatal("windows beside an error")
		}
		for _, w := range windows {
			if !validID(w.Session, '$') || !validID(w.ID, '@') || !validID(w.Pane, '%') || w.ServerPID < 0 || !w.Dead && w.DeadStatus != -1 {
				t.Fatalf("%q gives %+v", s, w)
			}
		}
	})
}
