package desk

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"pi-cradle/squire/trust"
)

// limits keep a peer from holding anything up. Tests make them smaller.
type limits struct {
	connect   time.Duration // for the connection itself
	greet     time.Duration // from there until the peer has proved itself
	step      time.Duration // for a requester that has the turn: until it asks, and until it has applied the answer
	wait      time.Duration // for everything, from the greeting on
	strangers int           // connections that have not proved themselves; of more the oldest is dropped
	callers   int           // connections that have
}

var defaults = limits{connect: time.Second, greet: 5 * time.Second, step: 30 * time.Second, wait: Limit, strangers: 64, callers: 256}

// Server gives the turns of a desk to the delegates below one root session.
type Server struct {
	desk     *Desk
	root     string
	path     string // of the descriptor
	token    []byte
	listener net.Listener
	limits   limits
	logf     func(string, ...any)

	ctx    context.Context // ends with the server; its cause says so
	cancel context.CancelCauseFunc
	work   sync.WaitGroup

	mu        sync.Mutex
	strangers []net.Conn // in the order in which they came
	callers   int
}

// Serve starts a server for the session root, whose descriptor is in dir. The caller is the one process that acts for that session,
// and closes it. logf takes what went wrong with a connection.
func Serve(dir, root string, d *Desk, logf func(string, ...any)) (*Server, error) {
	return serve(dir, root, d, logf, defaults)
}

func serve(dir, root string, d *Desk, logf func(string, ...any), lim limits) (*Server, error) {
	token := make([]byte, tokenSize)
	if _, err := rand.Read(token); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{desk: d, root: root, path: descriptorPath(dir, root), token: token, listener: listener, limits: lim, logf: logf}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	// Whoever reads the descriptor can connect already.
	port := listener.Addr().(*net.TCPAddr).Port
	if err := (descriptor{descriptorVersion, port, hex.EncodeToString(token)}).write(s.path); err != nil {
		_ = listener.Close()
		return nil, err
	}
	s.work.Add(1)
	go s.accept()
	return s, nil
}

// Close takes the descriptor away, ends all turns and questions and waits, within ctx, until they have ended.
func (s *Server) Close(ctx context.Context) error {
	var errs []error
	// A descriptor that is not ours any more belongs to a process that took the session over.
	if d, _, err := readDescriptor(s.path); err == nil && d.Token == hex.EncodeToString(s.token) {
		errs = append(errs, os.Remove(s.path))
	}
	s.cancel(ErrDisconnected)
	errs = append(errs, s.listener.Close())
	done := make(chan struct{})
	go func() {
		s.work.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		errs = append(errs, ctx.Err())
	}
	return errors.Join(errs...)
}

func (s *Server) accept() {
	defer s.work.Done()
	for {
		conn, err := s.listener.Accept()
		switch {
		case s.ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of file descriptors, or gone before we took it
			s.logf("trust: accept: %v", err)
			select {
			case <-time.After(50 * time.Millisecond):
			case <-s.ctx.Done():
			}
			continue
		}
		s.admit(conn)
		s.work.Add(1)
		go func() {
			defer s.work.Done()
			if err := s.receive(conn); err != nil && s.ctx.Err() == nil {
				s.logf("trust: a connection was dropped: %v", err)
			}
		}()
	}
}

// admit counts a stranger, and drops the one that has been one for longest when there are too many: whoever knows the token proves
// it at once, so a crowd of others keeps nobody out.
func (s *Server) admit(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strangers = append(s.strangers, conn)
	if len(s.strangers) > s.limits.strangers {
		_ = s.strangers[0].Close()
		s.strangers = s.strangers[1:]
	}
}

func (s *Server) forget(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.strangers {
		if c == conn {
			s.strangers = append(s.strangers[:i:i], s.strangers[i+1:]...)
			return
		}
	}
}

// receive serves one connection to its end.
func (s *Server) receive(conn net.Conn) error {
	defer conn.Close()
	stop := context.AfterFunc(s.ctx, func() { _ = conn.Close() })
	defer stop()
	l := newLink(conn)
	err := s.greet(l)
	s.forget(conn)
	if err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	s.mu.Lock()
	full := s.callers >= s.limits.callers
	if !full {
		s.callers++
	}
	s.mu.Unlock()
	if full {
		return l.send(message{Kind: kindRefused, Reason: "too many delegates wait for an answer"})
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.callers--
	}()
	return s.serveCaller(l)
}

// greet shows that we know the token, and finds out that the other side does.
func (s *Server) greet(l *link) error {
	if err := l.conn.SetReadDeadline(time.Now().Add(s.limits.greet)); err != nil {
		return err
	}
	theirs, err := l.readNonce()
	if err != nil {
		return err
	}
	own, err := l.sendNonce()
	if err != nil {
		return err
	}
	if err := l.arm(rootSide, s.root, s.token, theirs, own); err != nil {
		return err
	}
	if err := l.send(message{Kind: kindHello}); err != nil {
		return err
	}
	if _, err := l.receive(kindWait); err != nil {
		return err
	}
	return l.conn.SetReadDeadline(time.Time{})
}

// serveCaller gives a requester its turn, shows its question, and holds the turn until it hangs up.
func (s *Server) serveCaller(l *link) error {
	ctx, expire := context.WithTimeoutCause(s.ctx, s.limits.wait, ErrExpired)
	defer expire()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	questions := make(chan trust.Question, 1)
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		cancel(listen(l, questions))
	}()
	turn, err := s.desk.Wait(ctx)
	if err != nil {
		return s.refuse(l, err)
	}
	defer turn.Done()
	if err := l.send(message{Kind: kindTurn}); err != nil {
		return err
	}
	var q trust.Question
	select {
	case q = <-questions:
	case <-ctx.Done():
		return s.refuse(l, context.Cause(ctx))
	case <-time.After(s.limits.step):
		return errors.New("a requester with the turn did not ask in time")
	}
	answer, err := turn.Ask(q)
	if err != nil {
		return s.refuse(l, err)
	}
	if err := l.send(message{Kind: kindAnswer, Answer: answer}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(s.limits.step):
		return errors.New("a requester did not apply its answer in time")
	}
}

// errHungUp is the ordinary end of a connection.
var errHungUp = errors.New("the requester has hung up")

// listen takes the one question that a requester may ask. It returns when the connection ends or says anything more.
func listen(l *link, questions chan<- trust.Question) error {
	m, err := l.receive(kindAsk)
	if err != nil {
		return errHungUp
	}
	if m.Question == nil {
		return errForged
	}
	questions <- *m.Question
	if _, err := l.receive(); err != nil {
		return errHungUp
	}
	return errForged
}

// refuse says why there is no answer. A requester that has hung up needs no reason, and our own end speaks for itself.
func (s *Server) refuse(l *link, why error) error {
	if errors.Is(why, errHungUp) || errors.Is(why, ErrDisconnected) {
		return nil
	}
	return l.send(message{Kind: kindRefused, Reason: why.Error(), Cancelled: errors.Is(why, ErrCancelled)})
}
