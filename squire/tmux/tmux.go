// Package tmux asks one tmux server for windows: which there are, a new one, one less. Everything goes by ids, which a server
// never reuses while it lives; names are for people. Each question is one tmux process with a deadline.
//
// An error tells which of three things happened, by its type: nothing was done (*RefusedError, *MissingError, *NoServerError),
// it may have been done (*UncertainError), or tmux could not be asked (*AskError), which says nothing about any window.
package tmux

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"pi-cradle/internal/run"
)

// callLimit is how long one tmux process may take. An idle server answers in 2 ms; one that is busy redrawing can need seconds.
const callLimit = 5 * time.Second

// Server is one tmux server, by its socket.
type Server struct {
	Socket string // absolute path
	Bin    string // the tmux program; "" is tmux on PATH
}

// Caller is where in tmux this process runs.
type Caller struct {
	Server    Server
	ServerPID int
	Session   string // the session in which the pane was made, such as "$3"
	Pane      string // such as "%7"; "" in a popup
}

// FromEnv reads TMUX and TMUX_PANE. It gives a *NotInsideError when they name no server.
func FromEnv(getenv func(string) string) (Caller, error) {
	value := getenv("TMUX")
	// "<socket>,<server pid>,<session number>": the socket's path may hold commas, the other two can't.
	rest, session, ok := cutLast(value)
	socket, pid, ok2 := cutLast(rest)
	serverPID, err := strconv.Atoi(pid)
	if !ok || !ok2 || err != nil || serverPID <= 0 || !number(session) || !strings.HasPrefix(socket, "/") {
		return Caller{}, &NotInsideError{TMUX: value}
	}
	c := Caller{Server: Server{Socket: socket}, ServerPID: serverPID, Session: "$" + session}
	if pane := getenv("TMUX_PANE"); validID(pane, '%') {
		c.Pane = pane
	}
	return c, nil
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, ',')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}

func validID(s string, kind byte) bool { return len(s) > 1 && s[0] == kind && number(s[1:]) }

func number(s string) bool {
	return s != "" && len(s) < 19 && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// Resolve finds the session in which the caller stands now: its pane's, else the one named by TMUX if that still exists. Besides
// the errors of Windows it gives a *StaleError when neither is left, and a *TooOldError.
func (c Caller) Resolve(ctx context.Context) (session string, err error) {
	windows, err := c.Server.Windows(ctx)
	if err != nil {
		return "", err
	}
	windows = slices.DeleteFunc(windows, func(w Window) bool { return w.ServerPID != c.ServerPID })
	if len(windows) == 0 {
		return "", &StaleError{Caller: c}
	}
	if v := windows[0].Server; !v.AtLeast(3, 2) {
		return "", &TooOldError{Version: v}
	}
	// A window can be linked into several sessions and is then listed once for each.
	here := func(w Window) bool { return w.Pane == c.Pane && w.Session == c.Session }
	pane := func(w Window) bool { return w.Pane == c.Pane }
	home := func(w Window) bool { return w.Session == c.Session }
	for _, match := range []func(Window) bool{here, pane, home} {
		if i := slices.IndexFunc(windows, match); i >= 0 {
			return windows[i].Session, nil
		}
	}
	return "", &StaleError{Caller: c}
}

// ask runs one tmux process. The -u makes tmux print names as they are, whatever locale this process has: without it,
// anything beyond printable ASCII comes out as "_".
func (s Server) ask(ctx context.Context, args ...string) (run.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	bin := s.Bin
	if bin == "" {
		bin = "tmux"
	}
	res, err := run.Output(ctx, run.Cmd{Path: bin, Args: append([]string{"-u", "-S", s.Socket}, args...), Dir: "/"})
	var exit *run.ExitError
	switch {
	case err == nil:
		return res, nil
	case errors.Is(err, fs.ErrNotExist):
		return res, &MissingError{Bin: bin}
	case errors.As(err, &exit) && exit.Result.Signal == 0 && !s.listening():
		return res, &NoServerError{Socket: s.Socket}
	default:
		return res, &AskError{Command: args[0], Words: strings.TrimSpace(string(res.Stderr)), Err: err}
	}
}

// listening tells a socket without a server from everything else. tmux says so only in words, so we look ourselves.
func (s Server) listening() bool {
	conn, err := net.DialTimeout("unix", s.Socket, time.Second)
	if err == nil {
		_ = conn.Close()
		return true
	}
	return !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ECONNREFUSED)
}

// argument protects an argument that ends in ";": tmux takes that for the end of the command, also when it is no shell's doing.
func argument(s string) string {
	if strings.HasSuffix(s, ";") {
		return strings.TrimSuffix(s, ";") + `\;`
	}
	return s
}
