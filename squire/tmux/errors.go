package tmux

import (
	"fmt"

	"pi-cradle/internal/usererr"
)

// NotInsideError says that this process runs in no tmux pane, or that TMUX, where it is not "", can't be right.
type NotInsideError struct{ TMUX string }

func (e *NotInsideError) Error() string { return e.Unwrap().Error() }

func (e *NotInsideError) Unwrap() error {
	if e.TMUX == "" {
		return usererr.New("this session does not run in tmux").Hint("run `tmux`, and start pi in it")
	}
	return usererr.New("the environment variable TMUX holds %q, which names no tmux server", e.TMUX).Hint("run `tmux`, and start pi in it")
}

// MissingError says that there is no tmux program.
type MissingError struct{ Bin string }

func (e *MissingError) Error() string { return e.Unwrap().Error() }

func (e *MissingError) Unwrap() error {
	return usererr.New("the program %q is not on PATH", e.Bin).Hint("install tmux 3.2 or later")
}

// TooOldError says that the server is of a version that lacks what we need.
type TooOldError struct{ Version Version }

func (e *TooOldError) Error() string { return e.Unwrap().Error() }

func (e *TooOldError) Unwrap() error {
	return usererr.New("the tmux server is version %q; 3.2 or later is needed", e.Version.Text).
		Hint("install a newer tmux, end this server with `tmux kill-server`, and start again")
}

// NoServerError says that nothing listens on the socket. On its own it does not prove that a window is gone: see Find.
type NoServerError struct{ Socket string }

func (e *NoServerError) Error() string { return e.Unwrap().Error() }

func (e *NoServerError) Unwrap() error {
	return usererr.New("no tmux server answers on %q", e.Socket).Hint("start pi again in a new tmux window")
}

// StaleError says that TMUX and TMUX_PANE name a server, session or pane that is no more.
type StaleError struct{ Caller Caller }

func (e *StaleError) Error() string { return e.Unwrap().Error() }

func (e *StaleError) Unwrap() error {
	what := "session " + e.Caller.Session
	if e.Caller.Pane != "" {
		what = fmt.Sprintf("pane %s and session %s", e.Caller.Pane, e.Caller.Session)
	}
	return usererr.New("this session's tmux %s of server process %d are gone", what, e.Caller.ServerPID).
		Hint("start pi again in a new tmux window")
}

// AskError says that tmux gave no usable answer: it hung, failed, or said something else. Nothing follows from it.
type AskError struct {
	Command string // the tmux command, such as list-panes
	Words   string // what tmux printed, "" for nothing
	Err     error
}

func (e *AskError) Error() string {
	if e.Words != "" {
		return fmt.Sprintf("tmux %s failed: %s", e.Command, e.Words)
	}
	return fmt.Sprintf("tmux %s failed: %v", e.Command, e.Err)
}

func (e *AskError) Unwrap() error { return e.Err }

// RefusedError says that no window was made, for sure.
type RefusedError struct{ Words string }

func (e *RefusedError) Error() string { return fmt.Sprintf("tmux opened no window: %s", e.Words) }

// UncertainError says that a window may have been made.
type UncertainError struct{ Err error }

func (e *UncertainError) Error() string {
	return fmt.Sprintf("it is not known whether tmux opened the window: %v", e.Err)
}

func (e *UncertainError) Unwrap() error { return e.Err }
