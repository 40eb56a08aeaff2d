package rpctest

import (
	"time"

	"pi-cradle/rpc/wire"
)

// Done is the outcome of a run that ended well with this text.
func Done(text string) wire.RunSettledParams {
	return wire.RunSettledParams{StopReason: "stop", Text: text, Model: wire.ModelRef{Provider: "test", ID: "model"}, Holds: "none"}
}

// Aborted is the outcome of a run that the user stopped.
func Aborted() wire.RunSettledParams {
	return wire.RunSettledParams{Aborted: true, StopReason: "aborted", Model: wire.ModelRef{Provider: "test", ID: "model"}, Holds: "none"}
}

// Failed is the outcome of a run that ended with a provider's error.
func Failed(text string) wire.RunSettledParams {
	return wire.RunSettledParams{StopReason: "error", Error: text, Model: wire.ModelRef{Provider: "test", ID: "model"}, Holds: "none"}
}

// Begin starts a run as a user does who types text. It gives the system-prompt sections that the helper adds.
func (p *Pi) Begin(text string) map[string]string {
	p.t.Helper()
	if err := p.Tell(wire.InputSeen, wire.InputSeenParams{Source: "interactive"}); err != nil {
		p.t.Fatalf("input.seen: %v", err)
	}
	sections, err := p.prepare()
	if err != nil {
		p.t.Fatalf("run.prepare: %v", err)
	}
	p.mu.Lock()
	play := p.startRunLocked(text)
	p.mu.Unlock()
	play()
	return sections
}

func (p *Pi) prepare() (map[string]string, error) {
	var result wire.RunPrepareResult
	err := p.Ask(wire.RunPrepare, wire.Empty{}, &result)
	return result.Sections, err
}

// startRunLocked begins a run. What it returns plays the run, with Options.Run, and must be called without the lock.
func (p *Pi) startRunLocked(text string) (play func()) {
	p.running = true
	p.runs++
	p.changedLocked()
	session := p.session
	return func() { p.play(session, text) }
}

func (p *Pi) play(session *Session, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.options.Run == nil || p.ending {
		return
	}
	p.work.Add(1)
	p.label(func() {
		go func() {
			defer p.work.Done()
			if _, err := p.prepare(); err != nil {
				p.event("run.prepare: %v", err)
			}
			outcome := p.options.Run(p.ctx, text)
			p.mu.Lock()
			over := p.session != session
			p.mu.Unlock()
			if over {
				return // pi has died or gone on to another session
			}
			if err := p.TrySettle(outcome); err != nil {
				p.event("run.settled: %v", err)
			}
		}()
	})
}

// Settle ends the run that is under way.
func (p *Pi) Settle(outcome wire.RunSettledParams) {
	p.t.Helper()
	if err := p.TrySettle(outcome); err != nil {
		p.t.Fatalf("run.settled: %v", err)
	}
}

// TrySettle is Settle when the helper may fail. Like the extension, it reports once more to the next helper when this one falls
// over at just that moment. Any goroutine may call it.
func (p *Pi) TrySettle(outcome wire.RunSettledParams) error {
	p.awaitAnswers()
	p.change(func() { p.running = false })
	err := p.Ask(wire.RunSettled, outcome, nil)
	if err != nil && !answered(err) {
		err = p.Ask(wire.RunSettled, outcome, nil)
	}
	return err
}

// awaitAnswers waits until the helper has been answered for all that is in the conversation: in pi that is long before the end of
// any run. What a test withholds for good is not waited for longer than that.
func (p *Pi) awaitAnswers() {
	limit := time.After(time.Second)
	for {
		p.mu.Lock()
		entering, changed := p.entering, p.changed
		p.mu.Unlock()
		if entering == 0 {
			return
		}
		select {
		case <-changed:
		case <-p.ctx.Done():
			return
		case <-limit:
			return
		}
	}
}
