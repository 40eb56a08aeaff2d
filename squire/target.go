package squire

import (
	"context"
	"errors"

	"pi-cradle/internal/usererr"
	"pi-cradle/squire/gitws"
	"pi-cradle/squire/session"
	"pi-cradle/squire/settings"
	"pi-cradle/squire/tmux"
)

// target is the tmux server on which a delegate's window opens, and where on it.
type target struct {
	server   tmux.Server
	session  string         // tmux's id of this pi's own session, for windows beside it; "" for the companion session
	sessions []tmux.Session // as they were a moment ago
	outside  bool           // this pi does not run in tmux
}

// findTarget asks tmux where this pi's own pane is. A pi that runs in no tmux has its delegates on the user's default server.
func (l *live) findTarget(ctx context.Context, set settings.Settings) (target, error) {
	caller, err := tmux.FromEnv(l.svc.cfg.Getenv)
	var not *tmux.NotInsideError
	switch {
	case errors.As(err, &not) && not.TMUX == "":
		server := tmux.Default(l.svc.cfg.Getenv)
		sessions, err := server.Startable(ctx)
		return target{server: server, sessions: sessions, outside: true}, err
	case err != nil:
		return target{}, err
	case set.WindowPlacement == "current":
		session, err := caller.Resolve(ctx)
		return target{server: caller.Server, session: session}, err
	}
	sessions, err := caller.Sessions(ctx)
	return target{server: caller.Server, sessions: sessions}, err
}

// companion is the preferred name of the session for the delegates of the root's project. Below the root it is as the root once chose
// it, whatever project a delegate is in.
func (l *live) companion(p plan) (name, notice string) {
	l.mu.Lock()
	own := l.state.Own
	l.mu.Unlock()
	if own != nil {
		return own.Placement, ""
	}
	project, notice := l.project(p.place.own)
	return project + "-" + p.settings.CompanionSuffix, notice
}

// project is the name of this session's project. git is waited for once; a name that it could not give is asked for again.
func (l *live) project(own func() gitws.Workspace) (name, notice string) {
	l.naming.Lock()
	defer l.naming.Unlock()
	if l.projectName != "" {
		return l.projectName, ""
	}
	name, notice = own().Project()
	if notice == "" {
		l.projectName = name
	}
	return name, notice
}

// openWindow opens a delegate's window with its launcher. An error says that the delegate was not started and never will be. A
// window without an id may or may not be there; the next look at tmux tells.
func (l *live) openWindow(ctx context.Context, p plan, d *session.Delegation) (tmux.Window, error) {
	n := tmux.NewWindow{Session: p.target.session, Name: d.Name, Argv: []string{l.svc.cfg.Binary, "exec", l.dir.Spec(l.id(), d.ID)}}
	var window tmux.Window
	var err error
	if n.Session != "" {
		window, err = p.target.server.NewWindow(ctx, n)
	} else {
		name, _ := l.companion(p)
		c := tmux.Companion{Name: name, Home: l.svc.cfg.Home, Locks: l.dir.Locks()}
		window, err = p.target.server.NewCompanionWindow(ctx, c, n, p.target.sessions)
	}
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
