package squire

import (
	"context"
	"os"

	"pi-cradle/squire/session"
)

// revoke takes the launch file of a delegation away. It returns true when the delegate can't start any more: exactly one of
// revoke and the launcher gets to remove that file.
func (l *live) revoke(id string) bool { return os.Remove(l.dir.Spec(l.id(), id)) == nil }

// takeBack undoes a launch that opened no window: the record, if there is one, and the files that only the delegate would have read.
func (l *live) takeBack(id, sessionFile string) {
	for _, path := range []string{l.dir.Spec(l.id(), id), l.dir.Prompt(l.id(), id), l.dir.Identity(id), sessionFile, l.dir.Claims(id), l.dir.Owner(id)} {
		_ = os.Remove(path)
	}
	_ = l.apply(session.OpenFailed{ID: id})
}

// adoptLaunching looks at the launches during which this process's predecessor died. One whose launch file is still there, or cannot
// have been written yet, has not started, and now never will. Any other may have: it counts as running under the name its window has,
// and the next look at tmux tells whether there is such a window.
func (l *live) adoptLaunching() {
	l.mu.Lock()
	var open []session.Delegation
	for _, d := range l.state.Children.Delegations {
		if d.Phase == session.Launching {
			open = append(open, d.Clone())
		}
	}
	l.mu.Unlock()
	for _, d := range open {
		// Without a request no launch file was ever written.
		if d.Request == "" || l.revoke(d.ID) {
			l.unmakeAbandoned(d)
		} else {
			_ = l.apply(session.Opened{ID: d.ID, Window: session.Window{Socket: d.Window.Socket, Name: d.Name}})
		}
	}
}

// sweepPrompts deletes the prompt files of delegates that have ended. Their launchers do it, unless they were killed. The prompt of
// one whose window may still be open stays: its pi reads the file again when it reloads.
func (l *live) sweepPrompts(ctx context.Context) {
	where := map[string]session.Window{}
	l.mu.Lock()
	for _, d := range l.state.Children.Delegations {
		if _, err := os.Lstat(l.dir.Prompt(l.id(), d.ID)); err == nil && !d.Unfinished() {
			where[d.ID] = d.Window
		}
	}
	l.mu.Unlock()
	for id, seen := range sightings(ctx, where) {
		if seen.presence == session.Absent || seen.presence == session.Dead {
			_ = os.Remove(l.dir.Prompt(l.id(), id))
		}
	}
}
