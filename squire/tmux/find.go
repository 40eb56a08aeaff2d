package tmux

import (
	"errors"
	"slices"
	"strings"
)

// Presence is what is known about a window.
type Presence int

// Unknown means that tmux could not be asked: nothing follows. Ended means that the pane stands there with no program in it.
const (
	Unknown Presence = iota
	Alive
	Ended
	Gone
)

func (p Presence) String() string {
	return [...]string{"unknown", "alive", "ended", "gone"}[p]
}

// Find looks for w in what Windows returned, error included, and gives its present state. It answers Gone only on evidence: the
// same server does not list it, or that server's process is no more.
func Find(w Window, windows []Window, err error) (Window, Presence) {
	var none *NoServerError
	if err != nil && !errors.As(err, &none) {
		return w, Unknown
	}
	if !slices.ContainsFunc(windows, w.sameServer) {
		if gone(w.ServerPID) {
			return w, Gone
		}
		return w, Unknown
	}
	i := slices.IndexFunc(windows, w.Same)
	switch {
	case i < 0:
		return w, Gone
	case windows[i].Dead:
		return windows[i], Ended
	default:
		return windows[i], Alive
	}
}

// isTmux says whether a process of this name can be a tmux server, which calls itself "tmux: server" where it can.
func isTmux(name string) bool { return name == "tmux" || strings.HasPrefix(name, "tmux:") }
