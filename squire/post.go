package squire

import (
	"context"
	"fmt"
	"time"

	"pi-cradle/rpc/wire"
	"pi-cradle/squire/mail"
	"pi-cradle/squire/results"
	"pi-cradle/squire/session"
	"pi-cradle/squire/settings"
	"pi-cradle/squire/transcript"
	"pi-cradle/squire/views"
)

// post is a session's mail: the transports, and the one sink at which all of them deliver.
type post struct {
	live     *live
	staged   *mail.Staged
	hooks    *mail.Hooks
	embedded *mail.Embedded // nil when the session id can't be an address or there is no mail root
	why      error          // why it is nil
	auto     mail.Transport
}

func newPost(l *live) *post {
	p := &post{live: l}
	warn := func(text string) { l.host.notify("warning", "delegate: "+text) }
	p.staged = &mail.Staged{Dir: l.dir.Inbound(l.id()), Sink: l.receive, Warn: warn}
	p.hooks = mail.NewHooks(l.host.emit, p.staged)
	root, err := mail.Root(l.svc.cfg.Getenv)
	if err == nil {
		p.embedded, err = mail.NewEmbedded(mail.EmbeddedConfig{Root: root, Address: l.id(), Claims: l.takes, Sink: l.receive, Warn: warn})
	}
	if err != nil {
		p.why = err
		p.auto = p.hooks
		return p
	}
	p.auto = mail.NewAuto(p.hooks, p.embedded)
	return p
}

// transport is the one for a mail mode of the settings.
func (p *post) transport(mode string) mail.Transport {
	switch {
	case mode == "hooks" || p.embedded == nil:
		return p.hooks
	case mode == "embedded":
		return p.embedded
	}
	return p.auto
}

// current is the transport by the settings as they are now. Settings that can't be read refuse launches, not answers.
func (p *post) current() mail.Transport {
	return p.transport(settings.Load(settings.Path(p.live.start.AgentDir)).Mail)
}

// ready refuses when nothing could carry a task, before anything is done.
func (p *post) ready(ctx context.Context, mode string) error {
	if p.embedded != nil && mode != "hooks" {
		return nil
	}
	answered, err := p.hooks.Scan(ctx)
	switch {
	case err != nil:
		return err
	case answered:
		return nil
	case mode == "hooks":
		return &mail.NoProviderError{Channel: "message:scan"}
	}
	return fmt.Errorf("mail can't be kept here: %w", p.why)
}

// open takes in what came while nobody was there, and begins to listen. A session that waits for nothing does neither.
func (p *post) open() {
	l := p.live
	l.mu.Lock()
	waits := len(l.told.Requests) > 0 || l.told.Parent != "" || l.unlock != nil
	l.mu.Unlock()
	if !waits {
		return
	}
	if _, err := p.scan(l.ctx); err != nil && l.ctx.Err() == nil {
		l.host.notify("warning", "delegate: waiting mail could not be read: "+err.Error())
	}
}

// scan brings all waiting mail in. Only (true, nil) means that none is left.
func (p *post) scan(ctx context.Context) (bool, error) { return p.current().Scan(ctx) }

func (p *post) reply(ctx context.Context, a session.Reply) error {
	return p.current().Reply(ctx, mail.Reply{To: a.To, InReplyTo: a.Outbox.Requests, Body: a.Outbox.Body, Status: a.Outbox.Status})
}

func (p *post) close(ctx context.Context) {
	if err := p.auto.Close(ctx); err != nil {
		p.live.svc.cfg.Logf("mail did not close in time: %v", err)
	}
}

// takes says which envelopes are this session's.
func (l *live) takes(e mail.Envelope) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken == nil && mail.Ours(l.claims(), e)
}

// receive is the sink: it has recorded an envelope when it returns nil. One that is of no concern is taken too, so that it does
// not come back for ever.
func (l *live) receive(r mail.Received) error {
	e := r.Envelope
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return l.broken
	}
	if e.Kind == mail.KindRequest {
		if l.state.Own == nil || e.From != l.state.Own.Identity.Parent {
			return nil
		}
		return l.applyLocked(session.TaskArrived{Request: e.ID, Text: e.Body, Path: r.Path, At: e.TS.UnixMilli()})
	}
	reply := session.Replied{Envelope: e.ID, From: e.From, InReplyTo: e.InReplyTo, Status: e.Status, Path: r.Path, At: l.now()}
	reply.Body, reply.Cut = views.Clip(e.Body, results.BodyLimit, results.Gap)
	for _, d := range l.state.Answered(e.From, e.InReplyTo) {
		reply.Model, _ = transcript.LastModel(d.SessionFile) // a result is no worse for not telling
		for _, c := range r.Requests {
			if c.Envelope.ID == d.Request {
				reply.TaskPath = c.Path
				var cut bool
				if reply.Task, cut = views.Head(c.Envelope.Body, results.QuoteLimit); cut {
					reply.Task += " …"
				}
			}
		}
	}
	return l.applyLocked(reply)
}

// drainStaged takes in what the extension staged for us.
func (l *live) drainStaged(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := l.post.staged.Drain(ctx); err != nil && l.healthy() == nil {
		l.host.notify("warning", "delegate: staged mail could not be taken in: "+err.Error())
	}
}

// mailInbound takes an envelope that the extension could not stage.
func (l *live) mailInbound(_ context.Context, in wire.Inbound) (wire.Empty, error) {
	r, err := mail.FromInbound(in)
	if err != nil {
		return wire.Empty{}, err
	}
	return wire.Empty{}, l.receive(r)
}
