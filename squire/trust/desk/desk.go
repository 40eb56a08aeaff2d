// Package desk is where the user of a root session is asked about trust, one question at a time, by that session and by the
// delegates below it in their own processes.
//
// Whoever wants to ask waits for its turn, looks again at what is decided by then, asks if it still must, applies the answer, and
// gives the turn up. Only then is it the next one's. A root serves its delegates over the loopback interface:
//
//	requester                              root
//	  reads port and token from the descriptor, which only its owner can have written
//	  {nonce}                         →
//	                                  ←    {nonce}
//	                                  ←    hello       proves that the root knows the token
//	  wait                            →                proves that the requester does
//	                                  ←    turn        when it is the requester's
//	  ask {question}                  →
//	                                  ←    answer {answer}, or refused {reason}
//	  applies it, hangs up            →                the next one's turn
//
// Everything after the nonces is sealed with a key that comes from the token and both nonces, for one direction and one place in
// the order. So nothing that was said on another connection, to another root or before a restart can pass for anything here. The
// end of the connection ends the turn on both sides; there is no other way to cancel, and nothing survives it.
package desk

import (
	"context"
	"errors"
	"sync"
	"time"

	"pi-cradle/squire/trust"
)

// Limit is how long a launch waits for its answer, the wait for its turn included.
const Limit = 10 * time.Minute

var (
	// ErrCancelled says that the user dismissed the question.
	ErrCancelled = errors.New("the question was cancelled")
	// ErrExpired is the cause of a context that ended after Limit.
	ErrExpired = errors.New("nobody answered within 10 minutes")
	// ErrDisconnected is the cause of a turn's end when the other side is gone.
	ErrDisconnected = errors.New("the root session has ended or started again")
)

// Turn is the right to ask. It belongs to one goroutine.
type Turn interface {
	// Context ends when the turn is lost; its cause says why. What an answer changes must be under this context.
	Context() context.Context
	// Ask puts the question to the user. There is at most one in a turn. An error is ErrCancelled, the cause of the end of Context,
	// or a refusal.
	Ask(q trust.Question) (trust.Answer, error)
	// Done gives the turn up. It may be called twice.
	Done()
}

// Waiter gives turns: a Desk those of its own process, a Remote those of another.
type Waiter interface {
	// Wait waits for the turn until ctx ends, which ends the turn too.
	Wait(ctx context.Context) (Turn, error)
}

// Desk gives turns in the order in which they are asked for.
type Desk struct {
	ask  func(context.Context, trust.Question) (trust.Answer, error)
	turn chan struct{} // holds one element while a turn is taken
}

// New makes a desk. ask shows one question and takes it away when its context ends; it gives ErrCancelled when the user does.
func New(ask func(context.Context, trust.Question) (trust.Answer, error)) *Desk {
	return &Desk{ask: ask, turn: make(chan struct{}, 1)}
}

// Wait implements Waiter. The runtime serves those who wait on a channel first come, first served.
func (d *Desk) Wait(ctx context.Context) (Turn, error) {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	t := &localTurn{ctx: ctx, desk: d, done: sync.OnceFunc(func() { <-d.turn })}
	if ctx.Err() != nil { // both were ready
		t.Done()
		return nil, context.Cause(ctx)
	}
	return t, nil
}

type localTurn struct {
	ctx  context.Context
	desk *Desk
	done func()
}

func (t *localTurn) Context() context.Context { return t.ctx }

func (t *localTurn) Ask(q trust.Question) (trust.Answer, error) {
	if err := q.Valid(); err != nil {
		return "", err
	}
	answer, err := t.desk.ask(t.ctx, q)
	if t.ctx.Err() != nil {
		return "", context.Cause(t.ctx) // an answer that came too late is none
	}
	return answer, err
}

func (t *localTurn) Done() { t.done() }
