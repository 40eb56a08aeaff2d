package squire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"pi-cradle/internal/durable"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/gitws"
	"pi-cradle/squire/launch"
	"pi-cradle/squire/mail"
	"pi-cradle/squire/records"
	"pi-cradle/squire/session"
	"pi-cradle/squire/tmux"
)

// started is a delegation whose window is open.
type started struct {
	delegation session.Delegation
	notes      []string
}

// delegate starts one delegation: plan, record, files and task, what is started, window, record. The order is the one of package
// records. A worktree is recorded before it is made; everything else that comes before the record would only be litter without it.
func (l *live) delegate(ctx context.Context, o order) (started, error) {
	p, err := l.plan(ctx, o)
	if err != nil {
		return started{}, err
	}
	d := l.newDelegation(p)
	var notes []string
	if p.place.worktree != nil {
		if err = l.record(&d); err == nil {
			notes, err = l.build(ctx, p)
		}
	}
	if err == nil {
		err = l.writeFiles(ctx, p, &d)
	}
	if err == nil {
		err = l.writeSpec(ctx, p, &d)
	}
	var window tmux.Window
	if err == nil {
		window, err = l.openWindow(ctx, p, &d)
	}
	if err != nil {
		return started{}, l.giveUp(ctx, p, d.SessionFile, err)
	}
	return l.opened(p, window, notes)
}

func (l *live) record(d *session.Delegation) error {
	if err := l.apply(session.Opening{Delegation: d}); err != nil {
		return fmt.Errorf("could not record the delegation: %w", err)
	}
	return nil
}

func (l *live) newDelegation(p plan) session.Delegation {
	suffix := p.order.Label
	if suffix == "" {
		suffix = p.id[:8]
	}
	autoExit := p.agent.AutoExit
	if p.order.AutoExit != nil {
		autoExit = *p.order.AutoExit
	}
	at := l.svc.cfg.Now().UTC()
	file := strings.NewReplacer(":", "-", ".", "-").Replace(at.Format("2006-01-02T15:04:05.000Z")) + "_" + p.id + ".jsonl"
	var skipped []session.Skipped
	for _, s := range p.choice.Skipped {
		skipped = append(skipped, session.Skipped(s))
	}
	d := session.Delegation{
		ID: p.id, Skipped: skipped, Agent: p.agent.Name, Label: p.order.Label, Name: p.agent.WindowName() + "-" + suffix,
		Model: p.choice.Model, Thinking: p.choice.Thinking, AutoExit: autoExit, Cwd: p.place.cwd,
		SessionDir: l.start.SessionDir, SessionFile: filepath.Join(l.start.SessionDir, file),
		Window: session.Window{Socket: p.target.server.Socket}, Phase: session.Launching, Started: at.UnixMilli(),
	}
	if made := p.place.worktree; made != nil {
		d.Worktree, _ = json.Marshal(made) // plain texts always marshal
		d.Workspace = p.place.record()
	}
	return d
}

// writeFiles puts everything in place that the delegate finds when it starts. The parts do not depend on one another.
func (l *live) writeFiles(ctx context.Context, p plan, d *session.Delegation) error {
	if err := durable.MkdirAll(l.dir.Launches(l.id())); err != nil {
		return err
	}
	var group errgroup.Group
	group.Go(func() error {
		placement, _ := l.companion(p)
		return l.dir.SaveBirth(d.ID, records.Birth{AutoExit: d.AutoExit, Identity: l.childIdentity(d.Agent), Placement: placement})
	})
	// Its extension reads these before its own helper is up: the task may be handed out by then.
	group.Go(func() error {
		return l.dir.SaveClaims(d.ID, wire.Claims{Requests: map[string]string{}, Parent: l.id()})
	})
	group.Go(func() error { return writeSessionHeader(d) })
	group.Go(func() error {
		if p.prompt == "" {
			return nil
		}
		return durable.Place(l.dir.Prompt(l.id(), d.ID), []byte(p.prompt+"\n"))
	})
	group.Go(func() error { return l.sendTask(ctx, p, d) })
	return group.Wait()
}

// writeSpec hears what other extensions add to the launch, once the task is sent, and writes down what the launcher is to start.
func (l *live) writeSpec(ctx context.Context, p plan, d *session.Delegation) error {
	offer := l.offer(p, d)
	got, err := l.emitLaunch(ctx, offer)
	if err != nil {
		return err
	}
	return launch.WriteSpec(l.dir.Spec(l.id(), d.ID), l.spec(p, d, offer.Env, got))
}

// sendTask mails the task, and records the delegation with the envelope that the answer will name.
func (l *live) sendTask(ctx context.Context, p plan, d *session.Delegation) error {
	sent, err := l.post.transport(p.settings.Mail).Send(ctx, mail.Outgoing{To: d.ID, Body: p.order.Task})
	if err != nil {
		return err
	}
	if p.place.worktree != nil {
		return l.apply(session.Opened{ID: d.ID, Request: sent.ID})
	}
	d.Request = sent.ID
	return l.record(d)
}

// writeSessionHeader makes the delegate's session file with its first line: pi then opens it under the id, directory and mode
// that we chose, and has every entry on disk at once.
func writeSessionHeader(d *session.Delegation) error {
	header, err := json.Marshal(map[string]any{
		"type": "session", "version": 3, "id": d.ID, "cwd": d.Cwd,
		"timestamp": time.UnixMilli(d.Started).UTC().Format("2006-01-02T15:04:05.000Z"),
	})
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(d.SessionDir); err != nil {
		return err
	}
	return durable.Place(d.SessionFile, append(header, '\n'))
}

// opened records the window. git has begun to look at the checkout before the window opened, and is done long before a pi that
// starts could change anything there.
func (l *live) opened(p plan, w tmux.Window, notes []string) (started, error) {
	err := l.apply(session.Opened{ID: p.id, Window: locator(p.target.server.Socket, w), Workspace: p.place.record()})
	notes = slices.Concat(p.choice.Notes, notes, l.placeNotes(p, w))
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.state.Find(p.id)
	if d == nil {
		return started{}, errors.New("the delegation was taken back while its window opened")
	}
	if err != nil {
		notes = append(notes, "its window could not be recorded: "+err.Error())
	}
	return started{delegation: d.Clone(), notes: notes}, nil
}

// placeNotes say where the delegate's window is and where it works, as far as that is not where everybody expects it.
func (l *live) placeNotes(p plan, w tmux.Window) []string {
	notes := p.place.trust.notes(p.place.cwd)
	if p.place.cwd != l.start.Cwd && p.place.worktree == nil {
		notes = append(notes, "it works in "+gitws.Inline(l.short(p.place.cwd)))
	}
	if _, notice := l.companion(p); notice != "" && p.target.session == "" {
		notes = append(notes, notice)
	}
	if p.target.outside && w.SessionName != "" {
		notes = append(notes, "to see it, run: tmux attach -t "+w.SessionName)
	}
	return notes
}
