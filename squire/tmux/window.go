package tmux

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pi-cradle/internal/run"
)

// Window is a pane that we know, and the window in which it stands.
type Window struct {
	ServerPID   int
	ServerStart int64 // seconds since the epoch
	Server      Version
	Session     string // such as "$3"
	ID          string // such as "@5"
	Pane        string // such as "%7"
	PanePID     int
	Dead        bool   // its program has ended and tmux keeps the pane (remain-on-exit)
	DeadStatus  int    // exit status, -1 when tmux does not know it (yet) or a signal ended it
	DeadSignal  string // as tmux prints it, "" for none
	SessionName string
	Name        string // may be changed by its user at any time
}

// Same says whether two windows are one and the same pane of one and the same server. The window around a pane can be renamed
// and the pane moved to another one; neither makes it something else.
func (w Window) Same(other Window) bool {
	return w.sameServer(other) && w.Pane == other.Pane
}

func (w Window) sameServer(other Window) bool {
	return w.ServerPID == other.ServerPID && w.ServerStart == other.ServerStart
}

// Free texts stand last, and a session's name can't hold a colon, so that whatever a user calls a window the ids stay right. The
// mark tells our lines from what a user's hooks may print.
const (
	mark   = "squire-window"
	format = mark + "|#{pid}|#{start_time}|#{version}|#{session_id}|#{window_id}|#{pane_id}|#{pane_pid}|#{pane_dead}|#{pane_dead_status}|#{pane_dead_signal}|#{session_name}:#{window_name}"
	fields = 12
)

var errNotOurs = errors.New("not a line in our format")

func parse(line string) (Window, error) {
	f := strings.SplitN(line, "|", fields)
	if len(f) != fields || f[0] != mark {
		return Window{}, errNotOurs
	}
	if !validID(f[4], '$') || !validID(f[5], '@') || !validID(f[6], '%') || !number(f[1]) || !number(f[2]) || !number(f[7]) {
		return Window{}, fmt.Errorf("bad ids in %q", line)
	}
	w := Window{Server: ParseVersion(f[3]), Session: f[4], ID: f[5], Pane: f[6], Dead: f[8] == "1", DeadStatus: -1, DeadSignal: f[10]}
	// number has limited the lengths, so these can't overflow on a 64-bit machine.
	w.ServerPID, _ = strconv.Atoi(f[1])
	w.ServerStart, _ = strconv.ParseInt(f[2], 10, 64)
	w.PanePID, _ = strconv.Atoi(f[7])
	if number(f[9]) && w.Dead {
		w.DeadStatus, _ = strconv.Atoi(f[9])
	}
	w.SessionName, w.Name, _ = strings.Cut(f[11], ":")
	return w, nil
}

func parseAll(out string) ([]Window, error) {
	var windows []Window
	for line := range strings.Lines(out) {
		w, err := parse(strings.TrimSuffix(line, "\n"))
		if errors.Is(err, errNotOurs) {
			continue
		}
		if err != nil {
			return nil, err
		}
		windows = append(windows, w)
	}
	return windows, nil
}

// Windows lists every pane of the server, in one tmux process. A window linked into several sessions is listed for each.
func (s Server) Windows(ctx context.Context) ([]Window, error) {
	res, err := s.ask(ctx, "list-panes", "-a", "-F", format)
	if err != nil {
		return nil, err
	}
	windows, err := parseAll(string(res.Stdout))
	if err == nil && len(windows) == 0 {
		err = errors.New("no panes listed") // a server ends with its last pane, so an empty list is no answer
	}
	if err != nil {
		return nil, &AskError{Command: "list-panes", Words: strings.TrimSpace(string(res.Stderr)), Err: err}
	}
	return windows, nil
}

// NewWindow is what to open. Argv needs at least two words: tmux hands a single one to the user's shell.
type NewWindow struct {
	Session string // id of the session, such as "$3"
	Name    string // letters, digits, "_" and "-" only
	Argv    []string
}

// maxCommand keeps the tmux command far below the some 16 KiB at which tmux refuses it.
const maxCommand = 1024

// safeName says whether no version of tmux could take s for anything but a name.
func safeName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// NewWindow opens a window beside the user's, without making it the current one. The program is the pane's own process, with no
// shell between. It gives a *RefusedError, *NoServerError or *MissingError when there is no new window, and an *UncertainError
// when there may be one.
func (s Server) NewWindow(ctx context.Context, n NewWindow) (Window, error) {
	if !validID(n.Session, '$') {
		return Window{}, &RefusedError{fmt.Sprintf("%q is no session id", n.Session)}
	}
	w, _, err := s.open(ctx, n, []string{"new-window", "-d", "-P", "-F", format, "-n", n.Name, "-t", n.Session + ":"})
	return w, err
}

// open runs the command that opens n, and what follows it in the same process. later says that something failed after the window
// was there.
func (s Server) open(ctx context.Context, n NewWindow, command []string, after ...string) (w Window, later, err error) {
	if err := n.check(); err != nil {
		return Window{}, nil, err
	}
	args := append(command, "--")
	for _, a := range n.Argv {
		args = append(args, argument(a))
	}
	res, err := s.ask(ctx, append(args, after...)...)
	// A user's hook may fail after the window was made, so what tmux printed counts for more than its exit status.
	if windows, _ := parseAll(string(res.Stdout)); len(windows) == 1 {
		return windows[0], err, nil
	}
	return Window{}, nil, notOpened(res, err)
}

// notOpened says what follows from a command that printed no window.
func notOpened(res run.Result, err error) error {
	var missing *MissingError
	var none *NoServerError
	var ask *AskError
	var exit *run.ExitError
	switch {
	case err == nil:
		return &UncertainError{fmt.Errorf("unexpected answer %q", res.Stdout)}
	case errors.As(err, &missing), errors.As(err, &none):
		return err // a server that has just ended took all its windows along
	case errors.As(err, &ask) && errors.As(err, &exit) && exit.Result.Signal == 0:
		return &RefusedError{Words: ask.Words}
	default:
		// tmux was killed at the deadline, and may have done its work before.
		return &UncertainError{err}
	}
}

func (n NewWindow) check() error {
	size := len(format) + len(n.Session) + len(n.Name)
	for _, a := range n.Argv {
		size += len(a) + 1
	}
	switch {
	case !safeName(n.Name):
		return &RefusedError{fmt.Sprintf("%q is no safe window name", n.Name)}
	case len(n.Argv) < 2 || slices.ContainsFunc(n.Argv, func(a string) bool { return strings.ContainsRune(a, 0) }):
		return &RefusedError{"the command needs a program and an argument"}
	case size > maxCommand:
		return &RefusedError{fmt.Sprintf("a command of %d bytes is too long", size)}
	}
	return nil
}

// Kill ends w: its window, or its pane alone when a user has moved that into another window. The check and the kill are one
// command inside the server, so nothing else can be hit, whatever happens meanwhile. A window that is already gone, or belongs
// to an earlier server, gives false and no error.
func (s Server) Kill(ctx context.Context, w Window) (killed bool, err error) {
	if !validID(w.ID, '@') || !validID(w.Pane, '%') {
		return false, nil
	}
	all := func(conditions ...string) string {
		c := conditions[0]
		for _, next := range conditions[1:] {
			c = "#{&&:" + c + "," + next + "}"
		}
		return c
	}
	equal := func(variable, value string) string { return "#{==:#{" + variable + "}," + value + "}" }
	same := all(equal("pid", strconv.Itoa(w.ServerPID)), equal("start_time", strconv.FormatInt(w.ServerStart, 10)), equal("pane_id", w.Pane))
	then := func(command, target string) string {
		return "display-message -p " + mark + " ; " + command + " -t " + target
	}
	moved := `if-shell -F -t ` + w.Pane + ` "` + same + `" "` + then("kill-pane", w.Pane) + `"`
	res, err := s.ask(ctx, "if-shell", "-F", "-t", w.Pane, all(same, equal("window_id", w.ID)), then("kill-window", w.ID), moved)
	killed = slices.Contains(strings.Split(string(res.Stdout), "\n"), mark)
	var none *NoServerError
	if errors.As(err, &none) && (killed || gone(w.ServerPID)) {
		err = nil // the window was the server's last, or had gone with it before
	}
	return killed && err == nil, err
}
