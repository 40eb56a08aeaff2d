// Package testenv is the world that tests, the demo and the measurements run in: a scripted model on loopback, a private home
// and tmux server, and the real pi from npm in it. It touches nothing of the user's: every path is under a folder of its own.
package testenv

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// T is what this package needs of a test. *testing.T and *testing.B have it; programs get one from Run.
type T interface {
	Helper()
	Name() string
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Patience is how long anything is awaited before it counts as missing. It bounds how late a failure is noticed and decides
// no outcome, so it is generous: a machine that runs many tests at once is slow.
const Patience = 60 * time.Second

const pollEvery = 10 * time.Millisecond

// Await returns when cond holds, and fails t when that takes longer than Patience.
func Await(t T, what string, cond func() bool) {
	t.Helper()
	if !eventually(Patience, cond) {
		t.Fatalf("waited %v for %s", Patience, what)
	}
}

func eventually(limit time.Duration, cond func() bool) bool {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	deadline := time.After(limit)
	for !cond() {
		select {
		case <-deadline:
			return cond()
		case <-tick.C:
		}
	}
	return true
}

// Run runs body outside of a test, for programs: it calls what body registered with Cleanup, also after a failure, and returns
// what failed. Logf prints to stderr.
func Run(name string, body func(T)) error {
	p := &program{name: name}
	done := make(chan struct{})
	go func() { // of its own, so that Fatalf can end it
		defer close(done)
		defer p.cleanUp()
		defer func() {
			if r := recover(); r != nil && r != (fatal{}) {
				panic(r)
			}
		}()
		body(p)
	}()
	<-done
	return p.err
}

type fatal struct{}

type program struct {
	name     string
	mu       sync.Mutex
	err      error
	cleanups []func()
}

func (p *program) Helper()      {}
func (p *program) Name() string { return p.name }

func (p *program) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanups = append(p.cleanups, f)
}

func (p *program) cleanUp() {
	p.mu.Lock()
	cleanups := slices.Clone(p.cleanups)
	p.mu.Unlock()
	for _, f := range slices.Backward(cleanups) {
		f()
	}
}

func (p *program) Failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil
}

func (p *program) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (p *program) Errorf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *program) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	panic(fatal{})
}
