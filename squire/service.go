// Package squire is the service behind the extension: it hands tasks to delegates in tmux windows and brings their answers back.
// The decisions are in squire/session, the words in squire/results, the doing of single things in their own packages; this
// package joins them to pi. One Service serves one pi process, one session at a time.
package squire

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"pi-cradle/rpc"
	"pi-cradle/rpc/wire"
)

// Config is what the service takes from its process.
type Config struct {
	Binary  string               // absolute path of this program, which is the launcher too
	Home    string               // the user's home directory, "" when there is none
	Getenv  func(string) string  // the environment of pi
	Environ func() []string      // all of it
	Now     func() time.Time     // the wall clock
	Logf    func(string, ...any) // for stderr, which the extension keeps
}

// Service answers the extension. Close it when the connection has ended.
type Service struct {
	cfg   Config
	host  host
	ready chan struct{} // closed once host is set

	draft draft // survives sessions

	mu   sync.Mutex
	live *live // the current session, nil between two
}

// draft is a task that was written in the form and has not been started.
type draft struct {
	mu   sync.Mutex
	task string
}

func (d *draft) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.task
}

func (d *draft) keep(task string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.task = task
}

// New makes a service and the Mux by which it answers.
func New(cfg Config) (*Service, *rpc.Mux) {
	s := &Service{cfg: cfg, ready: make(chan struct{})}
	mux := rpc.NewMux()
	mux.RequireInitialize(cfg.Binary)
	rpc.Ordered(mux, wire.SessionStart, s.sessionStart)
	rpc.Ordered(mux, wire.SessionShutdown, s.sessionShutdown)
	rpc.Ordered(mux, wire.RunPrepare, with(s, (*live).runPrepare))
	rpc.Ordered(mux, wire.RunSettled, with(s, (*live).runSettled))
	rpc.Notification(mux, wire.InputSeen, s.inputSeen)
	rpc.Notification(mux, wire.MailStaged, s.mailStaged)
	rpc.Ordered(mux, wire.MailInbound, with(s, (*live).mailInbound))
	rpc.Concurrent(mux, wire.CommandRun, with(s, (*live).commandRun))
	rpc.Concurrent(mux, wire.CommandComplete, with(s, (*live).commandComplete))
	rpc.Concurrent(mux, wire.ToolCall, with(s, (*live).toolCall))
	return s, mux
}

// Connect gives the service its way to pi. Messages that arrive before it wait.
func (s *Service) Connect(p peer) {
	s.host = host{p}
	close(s.ready)
}

func (s *Service) current() (*live, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		return nil, rpc.Errorf(wire.CodeNoSession, "no session is started")
	}
	return s.live, nil
}

// with makes a method of the current session a handler.
func with[P, R any](s *Service, fn func(*live, context.Context, P) (R, error)) func(context.Context, P) (R, error) {
	return func(ctx context.Context, params P) (R, error) {
		l, err := s.current()
		if err != nil {
			var zero R
			return zero, err
		}
		return fn(l, ctx, params)
	}
}

func (s *Service) sessionStart(ctx context.Context, p wire.SessionStartParams) (rpc.Answer, error) {
	<-s.ready
	if p.SessionID == "" || !filepath.IsAbs(p.AgentDir) || !filepath.IsAbs(p.Cwd) || len(p.PiCommand) == 0 {
		return rpc.Answer{}, errors.New("session.start lacks a session id, absolute directories or pi's command")
	}
	if err := s.end(ctx); err != nil {
		s.cfg.Logf("the previous session did not end in time: %v", err)
	}
	l := newLive(s, p)
	s.mu.Lock()
	s.live = l
	s.mu.Unlock()
	// Only then: the first thing that restoring does may be to have waiting mail handed out, and pi must know by then which is ours.
	return rpc.Answer{Result: l.begin(), Sent: func() { l.spawn(l.restore) }}, nil
}

func (s *Service) sessionShutdown(ctx context.Context, _ wire.SessionShutdownParams) (wire.Empty, error) {
	return wire.Empty{}, s.end(ctx)
}

// end lets go of the current session.
func (s *Service) end(ctx context.Context) error {
	s.mu.Lock()
	l := s.live
	s.live = nil
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.close(ctx)
}

// Close ends the session, if one is left, within ctx. Delegates and records live on.
func (s *Service) Close(ctx context.Context) error { return s.end(ctx) }

func (s *Service) inputSeen(_ context.Context, _ wire.InputSeenParams) {
	if l, err := s.current(); err == nil {
		l.userTookOver()
	}
}

func (s *Service) mailStaged(ctx context.Context, _ wire.MailStagedParams) {
	if l, err := s.current(); err == nil {
		l.drainStaged(ctx)
	}
}
