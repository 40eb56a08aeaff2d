package squire

import (
	"context"
	"errors"
	"fmt"

	"pi-cradle/internal/usererr"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/trust"
	"pi-cradle/squire/trust/desk"
)

// site is where a delegate is to work, as far as trust is concerned.
type site struct {
	agent     string
	own       trust.Place // of this session
	target    trust.Place // of the delegate
	protected bool        // what will be in the target needs trust, whatever is there now: a checkout yet to be made
}

var errSessionEnded = errors.New("the session has ended")

// ruling is whether a delegate's pi trusts its project.
type ruling struct {
	approve bool
	leftOut bool // there is something that pi does without, for want of trust
}

func (r ruling) notes(dir string) []string {
	if !r.leftOut {
		return nil
	}
	return []string{fmt.Sprintf("the project in %s is not trusted: the delegate's pi leaves its settings, extensions and skills out", dir)}
}

// resolveTrust finds out whether a delegate's pi may trust the project it starts in, and asks the user of the root session when
// nothing else decides. Any error means that the delegate must not be started; then nothing was saved for its sake either, unless
// the user's answer was already being saved when the launch was given up.
func (l *live) resolveTrust(ctx context.Context, s site) (ruling, error) {
	if s.own.Covers(s.target) {
		return l.inheritTrust(ctx, s), nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(errSessionEnded) })()
	facts, err := l.lookTrust(ctx, s)
	if err != nil {
		return ruling{}, err
	}
	if approve, decided := facts.Decide(); decided {
		return ruled(approve, facts), nil
	}
	limited, expire := context.WithTimeoutCause(ctx, desk.Limit, desk.ErrExpired)
	defer expire()
	q := l.question(s)
	waiter, err := l.waiter(q)
	if err != nil {
		return ruling{}, err
	}
	turn, err := waiter.Wait(limited)
	if err != nil {
		return ruling{}, l.unanswered(ctx, q, err)
	}
	defer turn.Done()
	// Whoever had the turn before may have decided this too.
	if facts, err = l.lookTrust(turn.Context(), s); err != nil {
		return ruling{}, err
	}
	if approve, decided := facts.Decide(); decided {
		return ruled(approve, facts), nil
	}
	answer, err := turn.Ask(q)
	if err != nil {
		return ruling{}, l.unanswered(ctx, q, err)
	}
	if !q.Offers(answer) {
		return ruling{}, q.Unasked(fmt.Sprintf("the answer %.20q is none", answer))
	}
	if err := l.saveAnswer(turn.Context(), trust.Updates(answer, q.Key)); err != nil {
		return ruling{}, err
	}
	if turn.Context().Err() != nil {
		return ruling{}, l.unanswered(ctx, q, context.Cause(turn.Context()))
	}
	return ruled(answer.Approves(), facts), nil
}

func ruled(approve bool, f trust.Facts) ruling { return ruling{approve, !approve && f.Protected} }

// inheritTrust passes this session's own trust on. What its store says does not matter then; only what the lack of trust costs is
// looked up, and not knowing that stops nobody.
func (l *live) inheritTrust(ctx context.Context, s site) ruling {
	if l.start.Trusted {
		return ruling{approve: true}
	}
	facts, _ := l.lookTrust(ctx, s)
	return ruled(false, facts)
}

// lookTrust finds out what decides without a question.
func (l *live) lookTrust(ctx context.Context, s site) (trust.Facts, error) {
	found, err := l.host.lookTrust(ctx, wire.TrustLookParams{Dir: s.target.Dir, Key: s.target.Key()})
	if err != nil && ctx.Err() != nil {
		return trust.Facts{}, context.Cause(ctx)
	}
	if err != nil {
		return trust.Facts{}, usererr.New("pi's saved trust decisions can't be read, so nothing is started: %w", err)
	}
	return trust.Facts{Saved: found.Saved, Protected: found.Protected || s.protected}, nil
}

// saveAnswer hands an answer to pi's trust store. Once ctx has ended it saves nothing.
func (l *live) saveAnswer(ctx context.Context, updates []trust.Update) error {
	if len(updates) == 0 {
		return nil
	}
	wired := make([]wire.TrustUpdate, len(updates))
	for i, u := range updates {
		wired[i] = wire.TrustUpdate{Path: u.Path, Decision: u.Decision}
	}
	err := l.host.saveTrust(ctx, wired)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return usererr.New("the answer can't be saved in pi's trust store, so nothing is started: %w", err)
	}
	return nil
}

func (l *live) question(s site) trust.Question {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := trust.Question{Session: l.id(), Chain: []string{}, Agent: s.agent, Dir: s.target.Dir, Key: s.target.Key()}
	if own := l.state.Own; own != nil {
		q.Chain = own.Identity.Chain
	}
	return q
}

// waiter is where this session asks: at its own desk, or, in a delegate, at that of its root, whoever sits before the delegate.
func (l *live) waiter(q trust.Question) (desk.Waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch own := l.state.Own; {
	case own != nil:
		return desk.Remote{Dir: desk.Dir(l.start.AgentDir), Root: own.Identity.Root}, nil
	case !l.attended():
		return nil, q.Unasked("there is nobody here to ask").Hint("%s", q.Elsewhere())
	}
	return l.desk, nil
}

// attended says whether somebody can be asked in this session.
func (l *live) attended() bool { return l.start.HasUI && l.svc.cfg.Getenv("PI_UNATTENDED") != "1" }

// unanswered is the refusal of a launch that got no answer. ctx is the launch's own.
func (l *live) unanswered(ctx context.Context, q trust.Question, err error) error {
	var unavailable *desk.UnavailableError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, desk.ErrCancelled):
		return usererr.New("the question whether to trust %q was cancelled, so nothing was started", q.Dir)
	case errors.As(err, &unavailable):
		return q.Unasked(err.Error()).Hint("open the root session in a pi with somebody before it, then delegate again").Hint("%s", q.Elsewhere())
	}
	return q.Unasked(err.Error())
}

// askTrust shows a question to this session's user.
func (l *live) askTrust(ctx context.Context, q trust.Question) (trust.Answer, error) {
	var labels []string
	for _, o := range q.Options() {
		labels = append(labels, o.Label)
	}
	res, err := l.host.dialog(ctx, wire.DialogParams{Kind: "select", Title: q.Text(), Options: labels})
	if err != nil {
		return "", err
	}
	answer := q.Answered(res.Value)
	if !res.OK || answer == "" {
		return "", desk.ErrCancelled
	}
	return answer, nil
}

// offerTrust opens this root's desk to the delegates below it. It is called before a delegate starts that may start others; a
// session without such delegates listens to nobody. Calling it again does nothing.
func (l *live) offerTrust() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ctx.Err() != nil:
		return errSessionEnded
	case l.broken != nil:
		return l.broken
	case l.state.Own != nil || !l.attended() || l.server != nil:
		return nil
	}
	// Two processes that serve one session would take each other's callers.
	if err := l.own(); err != nil {
		return err
	}
	server, err := desk.Serve(desk.Dir(l.start.AgentDir), l.id(), l.desk, l.svc.cfg.Logf)
	if err != nil {
		return fmt.Errorf("questions of trust can't be taken from delegates: %w", err)
	}
	l.server = server
	return nil
}

// closeDesk ends what offerTrust began. All questions end with the session's context.
func (l *live) closeDesk(ctx context.Context) {
	l.mu.Lock()
	server := l.server
	l.server = nil
	l.mu.Unlock()
	if server == nil {
		return
	}
	if err := server.Close(ctx); err != nil {
		l.svc.cfg.Logf("questions of trust did not end in time: %v", err)
	}
}
