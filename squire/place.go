package squire

import (
	"context"
	"encoding/json"
	"errors"

	"pi-cradle/internal/usererr"
	"pi-cradle/squire/gitws"
	"pi-cradle/squire/session"
	"pi-cradle/squire/settings"
	"pi-cradle/squire/tmux"
	"pi-cradle/squire/trust"
)

// place is where a delegate works, and whether its project is trusted there.
type place struct {
	cwd       string // absolute
	trusted   bool
	notes     []string               // what whoever asked for the delegate should know
	workspace func() json.RawMessage // waits for the record of the directory and its checkout
}

// findPlace decides where a delegate works.
func (l *live) findPlace(ctx context.Context, o order) (place, error) {
	if o.Cwd != "" || o.Worktree != "" {
		return place{}, usererr.New("a delegate can only work in this session's directory")
	}
	here := trust.Place{Dir: l.start.Cwd}
	ruling, err := l.resolveTrust(ctx, site{agent: o.Agent, own: here, target: here})
	return place{
		cwd: here.Dir, trusted: ruling.approve, notes: ruling.notes(here.Dir), workspace: l.inspect(l.ctx, gitws.Inherited, here.Dir),
	}, err
}

// target is the tmux session in which a delegate's window opens.
type target struct {
	server  tmux.Server
	session string // tmux's id of it
}

// findTarget asks tmux where this pi's own pane is.
func (l *live) findTarget(ctx context.Context, _ settings.Settings) (target, error) {
	caller, err := tmux.FromEnv(l.svc.cfg.Getenv)
	if err != nil {
		return target{}, err
	}
	session, err := caller.Resolve(ctx)
	return target{caller.Server, session}, err
}

// openWindow opens a delegate's window with its launcher. An error says that the delegate was not started and never will be. A
// window without an id may or may not be there; the next look at tmux tells.
func (l *live) openWindow(ctx context.Context, t target, d *session.Delegation) (tmux.Window, error) {
	window, err := t.server.NewWindow(ctx, tmux.NewWindow{
		Session: t.session, Name: d.Name, Argv: []string{l.svc.cfg.Binary, "exec", l.dir.Spec(l.id(), d.ID)},
	})
	var uncertain *tmux.UncertainError
	if !errors.As(err, &uncertain) {
		return window, err
	}
	// The window may be there. Taking the launch file away decides it: a launcher that has not taken it yet never will.
	if l.revoke(d.ID) {
		return tmux.Window{}, usererr.New("the delegate was not started: %w", err)
	}
	return tmux.Window{Name: d.Name}, nil
}

func locator(socket string, w tmux.Window) session.Window {
	return session.Window{
		Socket: socket, ServerPID: w.ServerPID, ServerStart: w.ServerStart, Session: w.Session, SessionName: w.SessionName,
		ID: w.ID, Pane: w.Pane, Name: w.Name,
	}
}
