package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"pi-cradle/internal/run"
)

// signalError is the cause of a context that ended because the process was told to stop.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string { return "interrupted: " + e.signal.String() }

// signals decides what a request to stop means: before pi runs it ends the context, so that an npm install or an sbx setup is
// stopped and cleaned up behind; from then on it is pi's, which may have something to save, and cradle waits.
type signals struct {
	cancel context.CancelCauseFunc
	mu     sync.Mutex
	child  *run.Foreground // nil until pi runs
}

// watchSignals starts watching; stop ends it.
func watchSignals(parent context.Context) (ctx context.Context, s *signals, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	s = &signals{cancel: cancel}
	incoming := make(chan os.Signal, 8)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		// Whoever had it ignored, as nohup does, wants it so for pi as well; listening would undo that.
		if !signal.Ignored(sig) {
			signal.Notify(incoming, sig)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for sig := range incoming {
			s.handle(sig.(syscall.Signal))
		}
	}()
	return ctx, s, func() {
		signal.Stop(incoming)
		close(incoming)
		<-done
		cancel(nil)
	}
}

func (s *signals) handle(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child == nil {
		s.cancel(&signalError{sig})
		return
	}
	_ = s.child.Signal(sig) // it is gone, or it can't be told: either way its exit is what we wait for
}

// handOver starts the child that gets all signals from here on. A signal comes either before the start, which then does not
// happen, or after it and reaches the child.
func (s *signals) handOver(ctx context.Context, start func() (*run.Foreground, error)) (*run.Foreground, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	child, err := start()
	if err != nil {
		return nil, err
	}
	s.child = child
	return child, nil
}
