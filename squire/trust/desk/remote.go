package desk

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"pi-cradle/squire/trust"
)

// UnavailableError says that the root session can't be asked now.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string {
	if errors.Is(e.Err, os.ErrNotExist) {
		return "the root session is not there to ask"
	}
	return fmt.Sprintf("the root session can't be asked: %v", e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// RefusedError is the reason that the root gave for not asking.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// Remote gives turns at the desk of a root session in another process. Each takes a connection of its own.
type Remote struct {
	Dir    string // of the descriptors
	Root   string // the root session's id
	limits *limits
}

// Wait implements Waiter. A root that is not there is an *UnavailableError at once.
func (r Remote) Wait(ctx context.Context) (Turn, error) {
	lim := defaults
	if r.limits != nil {
		lim = *r.limits
	}
	d, token, err := readDescriptor(descriptorPath(r.Dir, r.Root))
	if err != nil {
		return nil, &UnavailableError{err}
	}
	dialer := net.Dialer{Timeout: lim.connect}
	conn, err := dialer.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(d.Port)))
	if err != nil {
		return nil, unavailable(ctx, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	hangUp := func() {
		stop()
		_ = conn.Close()
	}
	l := newLink(conn)
	if err := r.greet(l, token, lim.greet); err != nil {
		hangUp()
		return nil, unavailable(ctx, err)
	}
	m, err := l.receive(kindTurn, kindRefused)
	if err != nil || m.Kind != kindTurn {
		hangUp()
		return nil, ended(ctx, m, err)
	}
	return newRemoteTurn(ctx, l, hangUp), nil
}

func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &UnavailableError{err}
}

// ended is why there was no turn or answer: the end of ctx, or what the root said, or its own end.
func ended(ctx context.Context, m message, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return ErrDisconnected
	case m.Cancelled:
		return ErrCancelled
	}
	return &RefusedError{m.Reason}
}

// greet makes sure that it is the root which listens before it says anything, and proves that we may ask.
func (r Remote) greet(l *link, token []byte, limit time.Duration) error {
	if err := l.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	own, err := l.sendNonce()
	if err != nil {
		return err
	}
	theirs, err := l.readNonce()
	if err != nil {
		return err
	}
	if err := l.arm(requesterSide, r.Root, token, own, theirs); err != nil {
		return err
	}
	if _, err := l.receive(kindHello); err != nil {
		return err
	}
	if err := l.conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	return l.send(message{Kind: kindWait})
}

type remoteTurn struct {
	launch  context.Context // of the one who waited for the turn
	ctx     context.Context // ends with the connection too
	link    *link
	answers chan message // the one answer
	done    func()
}

// newRemoteTurn reads on in the background, so that the end of the root is noticed at any time.
func newRemoteTurn(launch context.Context, l *link, hangUp func()) *remoteTurn {
	ctx, cancel := context.WithCancelCause(launch)
	t := &remoteTurn{launch: launch, ctx: ctx, link: l, answers: make(chan message, 1)}
	over := make(chan struct{})
	t.done = sync.OnceFunc(func() {
		cancel(context.Canceled)
		hangUp()
		<-over
	})
	go func() {
		defer close(over)
		m, err := l.receive(kindAnswer, kindRefused)
		if err == nil {
			t.answers <- m
			_, err = l.receive() // nothing else may come: this is the end of the connection
		}
		cancel(ended(launch, message{}, err))
	}()
	return t
}

func (t *remoteTurn) Context() context.Context { return t.ctx }

func (t *remoteTurn) Ask(q trust.Question) (trust.Answer, error) {
	if err := q.Valid(); err != nil {
		return "", err
	}
	err := t.link.send(message{Kind: kindAsk, Question: &q})
	if errors.Is(err, errFrameTooLong) {
		return "", err
	}
	if err != nil {
		// The root may have said why it will not answer before it hung up. Otherwise it must not hold us up.
		_ = t.link.conn.SetReadDeadline(time.Now().Add(writeLimit))
	}
	var m message
	select {
	case m = <-t.answers:
	case <-t.ctx.Done():
		select {
		case m = <-t.answers:
		default:
		}
	}
	switch {
	case m.Kind == kindRefused:
		return "", ended(t.launch, m, nil)
	case t.ctx.Err() != nil:
		return "", context.Cause(t.ctx)
	}
	return m.Answer, nil
}

func (t *remoteTurn) Done() { t.done() }
