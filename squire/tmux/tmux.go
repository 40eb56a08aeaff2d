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
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"pi-cradle/internal/run"
	"pi-cradle/internal/usererr"
)

// callLimit is how long one tmux process may take. An idle server answers in 2 ms; one that is busy redrawing can need seconds.
const callLimit = 5 * time.Second

// Server is one tmux server, by its socket.
type Server struct {
	Socket string // absolute path
	Bin    string // the tmux program; "" is tmux on PATH

	dir string // working directory of the tmux process, which new sessions take over; "" is the root
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
	if err := tooOld(windows[0].Server); err != nil {
		return "", err
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

// Sessions lists the sessions of the caller's server. Besides the errors of Windows it gives a *StaleError when another server has
// taken its place, and a *TooOldError.
func (c Caller) Sessions(ctx context.Context) ([]Session, error) {
	sessions, err := c.Server.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	sessions = slices.DeleteFunc(sessions, func(s Session) bool { return s.ServerPID != c.ServerPID })
	if len(sessions) == 0 {
		return nil, &StaleError{Caller: c}
	}
	return sessions, tooOld(sessions[0].Server)
}

func tooOld(v Version) error {
	if v.AtLeast(3, 2) {
		return nil
	}
	return &TooOldError{Version: v}
}

// Default is the server that a tmux without options talks to: the one for whoever runs in no tmux.
func Default(getenv func(string) string) Server {
	base, err := filepath.EvalSymlinks("/tmp")
	if err != nil {
		base = "/tmp"
	}
	if own, err := filepath.EvalSymlinks(getenv("TMUX_TMPDIR")); err == nil && filepath.IsAbs(own) {
		base = own
	}
	return Server{Socket: filepath.Join(base, "tmux-"+strconv.Itoa(os.Geteuid()), "default")}
}

// Startable lists the sessions of a server that need not run yet; a launch can start it then. It gives a *MissingError or a
// *TooOldError for a tmux that can't be used, and the other errors of Windows.
func (s Server) Startable(ctx context.Context) ([]Session, error) {
	if err := private(filepath.Dir(s.Socket)); err != nil {
		return nil, err
	}
	sessions, err := s.Sessions(ctx)
	var none *NoServerError
	if errors.As(err, &none) {
		res, err := s.ask(ctx, "-V")
		if err != nil {
			return nil, err
		}
		return nil, tooOld(ParseVersion(strings.TrimSpace(string(res.Stdout))))
	}
	if err != nil || len(sessions) == 0 {
		return nil, err
	}
	return sessions, tooOld(sessions[0].Server)
}

// private refuses a folder of sockets in which somebody else could have put one. tmux itself does so only for a socket that it has
// not been told.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o007 != 0 {
		return usererr.New("folder %q, where tmux keeps its sockets, is open to others", dir).Hint("chmod 700 %q, if it is yours", dir)
	}
	return nil
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
	dir := s.dir
	if dir == "" {
		dir = "/"
	}
	res, err := run.Output(ctx, run.Cmd{Path: bin, Args: append([]string{"-u", "-S", s.Socket}, args...), Dir: dir})
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
