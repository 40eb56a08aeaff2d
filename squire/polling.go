package squire

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"pi-cradle/internal/durable"
	"pi-cradle/internal/watch"
	"pi-cradle/squire/launch"
	"pi-cradle/squire/session"
	"pi-cradle/squire/tmux"
)

// How often tmux is asked while delegates run, and how soon again when a window was not found. Everything that matters in the
// ordinary case comes as an event: answers by mail, ends by the launchers' records. The poll is for what has no event.
const (
	pollEvery = 5 * time.Second
	lookAgain = 300 * time.Millisecond
	pollLimit = 10 * time.Second
)

// poller looks after the running delegates of one session. Nothing of it runs while none does.
type poller struct {
	live *live

	mu     sync.Mutex
	cancel context.CancelFunc // nil while not running
	hurry  chan struct{}
	ended  bool
}

func newPoller(l *live) *poller { return &poller{live: l, hurry: make(chan struct{}, 1)} }

// run starts or stops the poller. It never waits: it is called under live.mu, which the poller needs too.
func (p *poller) run(wanted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case wanted && p.cancel == nil && !p.ended:
		ctx, cancel := context.WithCancel(p.live.ctx)
		p.cancel = cancel
		p.live.spawn(func() { p.loop(ctx) })
	case !wanted && p.cancel != nil:
		p.cancel()
		p.cancel = nil
	}
}

func (p *poller) stop() {
	p.run(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// soon asks for a look before the next is due.
func (p *poller) soon() {
	select {
	case p.hurry <- struct{}{}:
	default:
	}
}

func (p *poller) loop(ctx context.Context) {
	exits := make(chan struct{}, 1)
	wake := func() {
		select {
		case exits <- struct{}{}:
		default:
		}
	}
	launches := p.live.dir.Launches(p.live.id())
	if err := durable.MkdirAll(launches); err == nil {
		if stop, err := watch.Dir(launches, wake); err == nil {
			defer stop()
		}
	}
	timer := time.NewTimer(pollEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-exits:
			p.live.takeExits(ctx)
		case <-p.hurry:
			timer.Reset(lookAgain)
		case <-timer.C:
			p.live.takeExits(ctx)
			p.live.look(ctx)
			timer.Reset(pollEvery)
		}
	}
}

const exitSuffix = ".exit.json"

// takeExits reads what launchers have left, and removes what has been taken in. Mail is scanned first: a delegate answers before
// it ends, and an answer says more.
func (l *live) takeExits(ctx context.Context) {
	entries, err := os.ReadDir(l.dir.Launches(l.id()))
	if err != nil {
		return
	}
	var found []session.Exited
	for _, entry := range entries {
		id, isExit := strings.CutSuffix(entry.Name(), exitSuffix)
		if !isExit {
			continue
		}
		path := filepath.Join(l.dir.Launches(l.id()), entry.Name())
		if !l.unfinished(id) {
			_ = os.Remove(path)
			continue
		}
		exit, err := launch.ReadExit(path)
		if err != nil {
			exit = launch.Exit{Code: -1, Error: "its launcher's record can't be read: " + err.Error(), At: l.svc.cfg.Now()}
		}
		found = append(found, session.Exited{ID: id, Exit: session.Exit{
			Code: exit.Code, Signal: exit.Signal, Error: exit.Error, Hangup: exit.Hangup, Screen: exit.Screen, At: exit.At.UnixMilli(),
		}})
	}
	if len(found) == 0 {
		return
	}
	scanned := l.scanned(ctx)
	for _, exited := range found {
		_ = l.apply(exited)
	}
	_ = l.apply(session.Observed{Scanned: scanned, At: l.now()})
	for _, exited := range found {
		if !l.unfinished(exited.ID) {
			_ = os.Remove(launch.ExitPath(l.dir.Spec(l.id(), exited.ID)))
		}
	}
}

func (l *live) unfinished(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.state.Find(id)
	return d != nil && d.Unfinished()
}

func (l *live) scanned(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pollLimit)
	defer cancel()
	answered, err := l.post.scan(ctx)
	return answered && err == nil
}

// look scans the mail and then asks tmux, once per server, for the windows of the delegates that run.
func (l *live) look(ctx context.Context) {
	if !l.scanned(ctx) {
		return
	}
	l.mu.Lock()
	where := map[string]session.Window{}
	for _, d := range l.state.Children.Delegations {
		if d.Unfinished() {
			where[d.ID] = d.Window
		}
	}
	l.mu.Unlock()
	windows := map[string]session.Presence{}
	for id, seen := range sightings(ctx, where) {
		windows[id] = seen.presence
	}
	_ = l.apply(session.Observed{Scanned: true, Windows: windows, At: l.now()})
	l.sweepPrompts(ctx)
}

// sighting is what tmux says of a window now.
type sighting struct {
	presence session.Presence
	session  string // name of the tmux session in which it is, "" when that is not known
}

// sightings asks each server once.
func sightings(ctx context.Context, where map[string]session.Window) map[string]sighting {
	type answer struct {
		windows []tmux.Window
		err     error
	}
	servers := map[string]answer{}
	out := map[string]sighting{}
	for id, w := range where {
		a, asked := servers[w.Socket]
		if !asked {
			ctx, cancel := context.WithTimeout(ctx, pollLimit)
			a.windows, a.err = tmux.Server{Socket: w.Socket}.Windows(ctx)
			cancel()
			servers[w.Socket] = a
		}
		out[id] = sight(w, a.windows, a.err)
	}
	return out
}

func sight(w session.Window, windows []tmux.Window, err error) sighting {
	if w.Pane == "" {
		return sighting{presence: byNameOnly(w, windows, err)}
	}
	now, p := tmux.Find(window(w), windows, err)
	switch p {
	case tmux.Alive:
		return sighting{session.Alive, now.SessionName}
	case tmux.Ended:
		return sighting{session.Dead, now.SessionName}
	case tmux.Gone:
		return sighting{presence: session.Absent}
	}
	return sighting{}
}

// byNameOnly is for a window whose ids were lost with the process that opened it. The name tells at least that there is none.
func byNameOnly(w session.Window, windows []tmux.Window, err error) session.Presence {
	var none *tmux.NoServerError
	switch {
	case errors.As(err, &none):
		return session.Absent
	case err != nil:
		return session.Unknown
	}
	for _, other := range windows {
		if other.Name == w.Name && !other.Dead {
			return session.Alive
		}
	}
	return session.Absent
}

// window is a recorded locator in the terms of package tmux.
func window(w session.Window) tmux.Window {
	return tmux.Window{ServerPID: w.ServerPID, ServerStart: w.ServerStart, Session: w.Session, ID: w.ID, Pane: w.Pane, Name: w.Name}
}
