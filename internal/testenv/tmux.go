package testenv

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Tmux is a private tmux server.
type Tmux struct {
	Socket   string // path
	UserPane string // the pane of the window "user", which never does anything
	env      *Env
	environ  []string
	pid      int
}

// Window is a window of any session of the server, with its first pane.
type Window struct {
	Session, ID, Name, Pane string
	Active, Dead            bool // active in its session; its program has ended
	PID                     int
	Dir                     string
}

// guard runs in the user's window. It ends the server when the tests were killed and can't.
const guard = `while kill -0 "$1" 2>/dev/null; do sleep 2; done; tmux -S "$2" kill-server`

func startTmux(e *Env, o Options) *Tmux {
	e.T.Helper()
	socket := o.Socket
	if socket == "" {
		socket = "tmux.sock"
	}
	x := &Tmux{Socket: filepath.Join(e.Root, socket), env: e, environ: flatten(e.environ)}
	if o.CleanServer {
		x.environ = []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"}
	}
	conf := "/dev/null"
	if o.TmuxConf != "" {
		conf = filepath.Join(e.Root, "tmux.conf")
		e.Write(conf, o.TmuxConf)
	}
	width, height := o.Width, o.Height
	if width == 0 {
		width = 100
	}
	if height == 0 {
		height = 30
	}
	x.Run("-f", conf, "new-session", "-d", "-s", "main", "-n", "user", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), "-c", e.Work, "--",
		"/bin/sh", "-c", guard, "sh", strconv.Itoa(os.Getpid()), x.Socket)
	e.T.Cleanup(x.stop)
	x.Run("set-option", "-g", "extended-keys", "on") // or pi warns
	x.pid, _ = strconv.Atoi(x.Run("display-message", "-p", "#{pid}"))
	x.UserPane = x.Run("list-panes", "-t", "=main:", "-F", "#{pane_id}")
	return x
}

// ClientEnv is what TMUX holds in a pane of the server.
func (x *Tmux) ClientEnv() string {
	session := strings.TrimPrefix(x.Run("display-message", "-p", "-t", x.UserPane, "#{session_id}"), "$")
	return fmt.Sprintf("%s,%d,%s", x.Socket, x.pid, session)
}

// Run runs one tmux command and returns what it printed, without the last newline.
func (x *Tmux) Run(args ...string) string {
	x.env.T.Helper()
	out, err := x.try(nil, args...)
	if err != nil {
		x.env.T.Fatalf("%v", err)
	}
	return out
}

func (x *Tmux) try(stdin []byte, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	for i, arg := range args {
		if text, ok := strings.CutSuffix(arg, ";"); ok { // or it ends the command
			args[i] = text + `\;`
		}
	}
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-S", x.Socket}, args...)...)
	cmd.Env = x.environ // the server has the environment of whoever starts it
	cmd.Stdin = bytes.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("tmux %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSuffix(stdout.String(), "\n"), nil
}

// Windows lists all windows of all sessions; none when the server is gone.
func (x *Tmux) Windows() []Window {
	const format = "#{session_name}\t#{window_id}\t#{window_name}\t#{pane_id}\t#{window_active}\t#{pane_dead}\t#{pane_pid}\t#{pane_current_path}"
	out, err := x.try(nil, "list-windows", "-a", "-F", format)
	if err != nil || out == "" {
		return nil
	}
	var windows []Window
	for line := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 8)
		if len(f) < 8 {
			continue
		}
		pid, _ := strconv.Atoi(f[6])
		windows = append(windows, Window{Session: f[0], ID: f[1], Name: f[2], Pane: f[3], Active: f[4] == "1", Dead: f[5] == "1", PID: pid, Dir: f[7]})
	}
	return windows
}

// Named returns the windows whose name begins with prefix.
func (x *Tmux) Named(prefix string) []Window {
	var found []Window
	for _, w := range x.Windows() {
		if strings.HasPrefix(w.Name, prefix) {
			found = append(found, w)
		}
	}
	return found
}

// AwaitWindow returns the first window whose name begins with prefix, when it is there.
func (x *Tmux) AwaitWindow(prefix string) Window {
	x.env.T.Helper()
	var found []Window
	Await(x.env.T, "a window named "+prefix+"…", func() bool {
		found = x.Named(prefix)
		return len(found) > 0
	})
	return found[0]
}

// AwaitNoWindow returns when no window's name begins with prefix.
func (x *Tmux) AwaitNoWindow(prefix string) {
	x.env.T.Helper()
	Await(x.env.T, "no window named "+prefix+"…", func() bool { return len(x.Named(prefix)) == 0 })
}

// Focus is the active window and pane of the session "main", as the user sees it.
func (x *Tmux) Focus() string {
	x.env.T.Helper()
	return x.Run("display-message", "-p", "-t", "=main:", "#{session_name} #{window_id} #{pane_id}")
}

// Screen is what a pane shows, trailing blanks cut; empty when the pane is gone.
func (x *Tmux) Screen(pane string) string {
	out, err := x.try(nil, "capture-pane", "-p", "-t", pane)
	if err != nil {
		return ""
	}
	return out
}

// History is Screen with everything that scrolled off, and wrapped lines joined.
func (x *Tmux) History(pane string) string {
	out, err := x.try(nil, "capture-pane", "-p", "-J", "-S", "-", "-t", pane)
	if err != nil {
		return ""
	}
	return out
}

// Colours is Screen with its escape sequences.
func (x *Tmux) Colours(pane string) string {
	x.env.T.Helper()
	return x.Run("capture-pane", "-p", "-e", "-t", pane)
}

// title is what the program in a pane has set as its title; empty when the pane is gone.
func (x *Tmux) title(pane string) string {
	out, err := x.try(nil, "display-message", "-p", "-t", pane, "#{pane_title}")
	if err != nil {
		return ""
	}
	return out
}

// Keys sends keys by their tmux names.
func (x *Tmux) Keys(pane string, keys ...string) {
	x.env.T.Helper()
	x.Run(append([]string{"send-keys", "-t", pane}, keys...)...)
}

// Paste pastes text in brackets, as a terminal does.
func (x *Tmux) Paste(pane, text string) {
	x.env.T.Helper()
	if _, err := x.try([]byte(text), "load-buffer", "-b", "testenv", "-"); err != nil {
		x.env.T.Fatalf("%v", err)
	}
	x.Run("paste-buffer", "-p", "-d", "-b", "testenv", "-t", pane)
}

// stop ends the server and everything that runs below it, and says so when something would not end by itself.
func (x *Tmux) stop() {
	below := descendants(x.pid)
	_, _ = x.try(nil, "kill-server") // an error: it is gone already
	left := func() []process {
		return slices.DeleteFunc(processes(), func(p process) bool { return !slices.Contains(below, p) })
	}
	if eventually(5*time.Second, func() bool { return len(left()) == 0 }) {
		return
	}
	for _, p := range left() {
		x.env.T.Errorf("still running after its terminal had gone: %s", p.command)
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
}
