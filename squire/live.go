package squire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"

	"pi-cradle/internal/lockfile"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/records"
	"pi-cradle/squire/results"
	"pi-cradle/squire/session"
	"pi-cradle/squire/trust/desk"
)

// live is one pi session being served: the owner of its state, its files, its mail and its timers.
//
// Everything that happens becomes an event for the state machine, under mu; saves are written there too, so an event that was
// applied without error is on disk. Whatever may take long (a message on its way into the conversation, a reply) runs on a
// goroutine of its own and comes back as another event.
type live struct {
	svc   *Service
	host  host
	start wire.SessionStartParams
	dir   records.Dir
	post  *post

	ctx    context.Context // ends with the session
	cancel context.CancelFunc
	work   sync.WaitGroup // every goroutine of this session

	spawning sync.Mutex // held to start one of them, and to end ctx

	naming      sync.Mutex
	projectName string // see project; guarded by naming

	mu     sync.Mutex
	state  session.State
	broken error  // the records can't be read or another process has them: nothing is launched, completed or taken
	unlock func() // gives up the ownership of the session; nil as long as nothing is on record
	told   wire.Claims
	badges map[string]string
	poll   *poller
	server *desk.Server // nil while no delegate may need to ask

	desk *desk.Desk // where this session's user is asked

	briefing briefing

	restored chan struct{} // closed once the state is what the records and the conversation say
	replies  outstanding   // answers of this delegate on their way
}

func newLive(s *Service, p wire.SessionStartParams) *live {
	ctx, cancel := context.WithCancel(context.Background())
	l := &live{svc: s, host: s.host, start: p, dir: records.In(p.AgentDir), ctx: ctx, cancel: cancel, badges: map[string]string{}, restored: make(chan struct{})}
	l.poll = newPoller(l)
	l.post = newPost(l)
	l.desk = desk.New(l.askTrust)
	return l
}

func (l *live) id() string { return l.start.SessionID }

func (l *live) now() int64 { return l.svc.cfg.Now().UnixMilli() }

// begin reads the records and answers session.start. What needs pi's help follows in restore, once pi has had our answer.
func (l *live) begin() wire.SessionStartResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dir.Known(l.id()) {
		l.broken = l.load()
	}
	role := "root"
	if l.state.Own != nil {
		role = "delegate"
	}
	l.told = l.claims()
	res := wire.SessionStartResult{Role: role, Claims: l.told, Inbox: l.dir.Inbound(l.id()), Tools: []wire.ToolUpdate{}, Active: []string{}}
	if role == "root" {
		for _, t := range wire.Tools {
			res.Active = append(res.Active, t.Name)
		}
		res.Tools = l.brief()
	}
	res.Identity = l.identity()
	return res
}

// load takes the ownership of the session and reads what is on record.
func (l *live) load() error {
	if err := l.own(); err != nil {
		return err
	}
	children, own, err := l.dir.Load(l.id())
	if err == nil && own != nil {
		err = l.confirmIdentity(own)
	}
	if err != nil {
		return fmt.Errorf("%w; move the file away to go on without it", err)
	}
	l.state.Children, l.state.Own = children, own
	return nil
}

// own makes this process the one that acts for the session. The lock lasts until the session or the process ends.
func (l *live) own() error {
	if l.unlock != nil {
		return nil
	}
	unlock, err := lockfile.TryLock(l.dir.Lock(l.id()), "session "+l.id())
	var held *lockfile.HeldError
	if errors.As(err, &held) {
		return fmt.Errorf("session %s is already served by process %d (%s); close the other pi first", l.id(), held.Holder.PID, held.Path)
	}
	if err != nil {
		return err
	}
	l.unlock = unlock
	return nil
}

// restore looks up what a crash left open and sets everything going.
func (l *live) restore() {
	defer close(l.restored)
	l.mu.Lock()
	broken := l.broken
	ask := wire.EntriesParams{Messages: l.state.Unconfirmed(), Prompts: []string{}}
	if l.state.Own != nil {
		for _, t := range l.state.Own.Tasks {
			ask.Prompts = append(ask.Prompts, promptLabel(l.state.Own.Identity.Parent, t.Request))
		}
	}
	l.mu.Unlock()
	if broken != nil {
		l.host.notify("error", "delegate: "+broken.Error())
		return
	}
	var found wire.EntriesResult
	if len(ask.Messages)+len(ask.Prompts) > 0 {
		var err error
		if found, err = l.host.entries(l.ctx, ask); err != nil {
			// Without the answer nothing can be shown without the risk of showing it twice.
			l.fail(fmt.Errorf("could not look into the session: %w", err))
			return
		}
	}
	l.adoptLaunching()
	l.spawn(func() { l.sweepPrompts(l.ctx) })
	_ = l.apply(session.Restored{Messages: set(found.Messages), Prompts: l.prompted(found.Prompts), Midway: l.start.Again})
	l.post.open()
}

func (l *live) prompted(labels []string) map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := set(labels)
	out := map[string]bool{}
	if l.state.Own != nil {
		for _, t := range l.state.Own.Tasks {
			out[t.Request] = known[promptLabel(l.state.Own.Identity.Parent, t.Request)]
		}
	}
	return out
}

func set(words []string) map[string]bool {
	out := map[string]bool{}
	for _, w := range words {
		out[w] = true
	}
	return out
}

// fail stops everything that acts for the session and says why. Mail stays where it is.
func (l *live) fail(err error) {
	l.mu.Lock()
	l.broken = err
	l.mu.Unlock()
	if l.ctx.Err() == nil {
		l.host.notify("error", "delegate: "+err.Error())
	}
}

// healthy gives the reason why nothing may be launched or taken in, or nil.
func (l *live) healthy() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// spawn runs fn on a goroutine that close waits for. Once close has begun nobody waits any more: what a late call still spawns
// finds its context ended.
func (l *live) spawn(fn func()) {
	l.spawning.Lock()
	defer l.spawning.Unlock()
	if l.ctx.Err() != nil {
		go fn()
		return
	}
	l.work.Go(fn)
}

// apply changes the state. Its error is that of a save: what the event told is known in memory, and not on disk.
func (l *live) apply(e session.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.applyLocked(e)
}

func (l *live) applyLocked(e session.Event) error {
	if l.broken != nil {
		return l.broken
	}
	for _, a := range l.state.Apply(e) {
		if err := l.perform(a); err != nil {
			_, own := a.(session.SaveOwn)
			for _, after := range l.state.Apply(session.SaveFailed{Own: own, Err: err.Error()}) {
				_ = l.perform(after) // a notice, which can't fail
			}
			l.reflect()
			return err
		}
	}
	l.reflect()
	return nil
}

// perform carries out one action, under mu. Only saves give errors.
func (l *live) perform(a session.Action) error {
	switch a := a.(type) {
	case session.SaveChildren:
		if err := l.own(); err != nil {
			return err
		}
		return l.dir.SaveChildren(l.id(), l.state.Children)
	case session.SaveOwn:
		return l.dir.SaveOwn(l.id(), *l.state.Own)
	case session.Notify:
		l.host.notify(a.Level, a.Text)
	case session.Show:
		l.spawn(func() { l.show(a) })
	case session.Wake:
		l.spawn(func() { l.wake() })
	case session.RetryLater:
		l.after(min(time.Duration(a.Attempt)*time.Second, time.Minute), func() { _ = l.apply(session.Retry{}) })
	case session.LookAgain:
		l.poll.soon()
	case session.Prompt:
		text := promptLabel(l.state.Own.Identity.Parent, a.Task.Request) + ":\n\n" + a.Task.Text
		l.spawn(func() { l.prompt(a.Task.Request, text) })
	case session.Reply:
		l.replies.add()
		l.spawn(func() {
			defer l.replies.done()
			l.reply(a)
		})
	case session.ExitPi:
		l.spawn(func() { _ = l.host.exit(l.ctx) })
	}
	return nil
}

// after runs fn later, unless the session has ended by then.
func (l *live) after(d time.Duration, fn func()) {
	l.spawn(func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			fn()
		case <-l.ctx.Done():
		}
	})
}

func (l *live) show(a session.Show) {
	l.inspectResults(a.Items)
	l.mu.Lock()
	message := results.Message(a, l.svc.cfg.Home)
	l.mu.Unlock()
	l.host.send(l.ctx, message, func(err error) {
		switch {
		case l.ctx.Err() != nil: // the session is over; the record says "sent", and the next start looks it up
		case err != nil:
			l.svc.cfg.Logf("message %s was not shown: %v", message.ID, err)
			_ = l.apply(session.NotShown{ID: message.ID})
		default:
			_ = l.apply(session.Shown{ID: message.ID})
		}
	})
}

// wake is not repeated when it fails: the results are in the conversation, and the next run has them before its eyes.
func (l *live) wake() {
	l.host.send(l.ctx, results.Wake("wake/"+uuid.NewString()), func(err error) {
		if err != nil && l.ctx.Err() == nil {
			l.svc.cfg.Logf("no run could be started on restored results: %v", err)
		}
	})
}

// promptLabel opens a delegate's prompt. It names the request, by which the prompt is found again after a crash.
func promptLabel(parent, request string) string {
	return "[delegate] Task from session " + parent + ", request " + request
}

func (l *live) prompt(request, text string) {
	l.host.prompt(l.ctx, text, func(err error) {
		switch {
		case l.ctx.Err() != nil:
		case err != nil:
			_ = l.apply(session.PromptFailed{Request: request, Err: err.Error()})
		default:
			_ = l.apply(session.Prompted{Request: request})
		}
	})
}

func (l *live) reply(a session.Reply) {
	err := l.post.reply(l.ctx, a)
	switch {
	case l.ctx.Err() != nil:
	case err != nil:
		_ = l.apply(session.ReplyFailed{Err: err.Error()})
	default:
		_ = l.apply(session.ReplySent{})
	}
}

// claims is which mail the session takes, from its state.
func (l *live) claims() wire.Claims {
	c := wire.Claims{Requests: l.state.Awaited()}
	if l.state.Own != nil {
		c.Parent = l.state.Own.Identity.Parent
	}
	return c
}

// reflect tells pi what the state means for it, as far as that has changed: claims, footer, and whether to poll.
func (l *live) reflect() {
	if c := l.claims(); c.Parent != l.told.Parent || !maps.Equal(c.Requests, l.told.Requests) {
		l.told = c
		l.host.claims(c)
		if err := l.dir.SaveClaims(l.id(), c); err != nil {
			l.host.notify("warning", "delegate: could not save which mail this session takes: "+err.Error())
		}
	}
	for key, text := range l.statuses() {
		if l.badges[key] != text {
			l.badges[key] = text
			l.host.status(key, text)
		}
	}
	l.poll.run(l.state.Count() > 0)
}

// close lets go of the session: nothing is sent or taken any more when it returns, and another process may own it.
func (l *live) close(ctx context.Context) error {
	l.spawning.Lock()
	l.cancel()
	l.spawning.Unlock()
	l.poll.stop()
	l.post.close(ctx)
	l.closeDesk(ctx)
	done := make(chan struct{})
	go func() {
		l.work.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = errSessionEnded
	if l.unlock != nil {
		l.unlock()
		l.unlock = nil
	}
	return err
}
