// Package mailtest holds every mail.Transport to the same behaviour, also when the two ends of a conversation use different ones.
package mailtest

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"pi-cradle/rpc/wire"
	"pi-cradle/squire/mail"
)

// World is one mail root with the sessions that share it.
type World struct {
	Dir  string
	Root string
	t    *testing.T
}

// NewWorld makes an empty one.
func NewWorld(t *testing.T) *World {
	dir := t.TempDir()
	return &World{Dir: dir, Root: filepath.Join(dir, "state", "pi-session-mail"), t: t}
}

// Session is one end: an address, what it waits for, and what has reached it.
type Session struct {
	mail.Transport
	World    *World
	Address  string
	Provider *Provider // nil without one
	Staged   *mail.Staged

	mu       sync.Mutex
	claims   wire.Claims
	received []mail.Received
	warnings []string
	fail     error
	arrived  chan struct{}
}

// Make gives a session its transport.
type Make func(*Session) mail.Transport

// Session makes a session with a transport from make, closed at the end of the test.
func (w *World) Session(address string, make Make) *Session {
	w.t.Helper()
	s := &Session{World: w, Address: address, claims: wire.Claims{Requests: map[string]string{}}, arrived: newSignal()}
	s.Staged = &mail.Staged{Dir: filepath.Join(w.Dir, "owners", address, "inbound"), Sink: s.sink, Warn: s.warn}
	s.Provider = &Provider{Root: w.Root, Address: address, Staging: s.Staged.Dir, Claims: s.Claims}
	s.Transport = make(s)
	w.t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			w.t.Errorf("close: %v", err)
		}
	})
	return s
}

func newSignal() chan struct{} { return make(chan struct{}, 1) }

// Transports is every way to send and receive, by name.
var Transports = map[string]Make{
	"embedded": Embedded,
	"hooks":    func(s *Session) mail.Transport { return mail.NewHooks(s.Provider.Emit, s.Staged) },
	"auto with a provider": func(s *Session) mail.Transport {
		return mail.NewAuto(mail.NewHooks(s.Provider.Emit, s.Staged), s.embedded())
	},
	"auto without": func(s *Session) mail.Transport {
		s.Provider.Absent = true
		return mail.NewAuto(mail.NewHooks(s.Provider.Emit, s.Staged), s.embedded())
	},
}

// Embedded makes a mail.Embedded.
func Embedded(s *Session) mail.Transport { return s.embedded() }

func (s *Session) embedded() *mail.Embedded {
	m, err := mail.NewEmbedded(mail.EmbeddedConfig{
		Root: s.World.Root, Address: s.Address, Sink: s.sink, Warn: s.warn,
		Claims: func(e mail.Envelope) bool {
			if e.Body != "" {
				s.World.t.Errorf("%v was asked about an envelope with its body", s)
			}
			return mail.Ours(s.Claims(), e)
		},
	})
	if err != nil {
		s.World.t.Fatal(err)
	}
	return m
}

func (s *Session) sink(r mail.Received) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.received = append(s.received, r)
	select {
	case s.arrived <- struct{}{}:
	default:
	}
	return nil
}

func (s *Session) warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnings = append(s.warnings, text)
}

// FailWith makes the sink refuse everything; nil ends that.
func (s *Session) FailWith(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// Claims is what the session takes.
func (s *Session) Claims() wire.Claims {
	s.mu.Lock()
	defer s.mu.Unlock()
	return wire.Claims{Parent: s.claims.Parent, Requests: maps.Clone(s.claims.Requests)}
}

// Serve makes parent's requests tasks of this session.
func (s *Session) Serve(parent *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims.Parent = parent.Address
}

// Await makes the session wait for an answer of from to the request.
func (s *Session) Await(request string, from *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims.Requests[request] = from.Address
}

// Received is all that has reached the sink.
func (s *Session) Received() []mail.Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

// Once is Received without repetitions, as a session's records see it.
func (s *Session) Once() []mail.Received {
	seen := map[string]bool{}
	return slices.DeleteFunc(s.Received(), func(r mail.Received) bool {
		again := seen[r.Envelope.ID]
		seen[r.Envelope.ID] = true
		return again
	})
}

// Warnings is all that the user was told.
func (s *Session) Warnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.warnings)
}

// AwaitReceived waits for n envelopes without scanning.
func (s *Session) AwaitReceived(n int) []mail.Received {
	s.World.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		if got := s.Received(); len(got) >= n {
			return got
		}
		select {
		case <-s.arrived:
		case <-deadline:
			s.World.t.Fatalf("waited for %d envelopes, have %d", n, len(s.Received()))
		}
	}
}

// MustScan scans and fails the test unless that brought in everything.
func (s *Session) MustScan() {
	s.World.t.Helper()
	if answered, err := s.Scan(context.Background()); err != nil || !answered {
		s.World.t.Fatalf("scan of %s: %v, %v", s.Address, answered, err)
	}
}

// MustSend sends a task and waits for its answer from now on.
func (s *Session) MustSend(to *Session, body string) mail.Envelope {
	s.World.t.Helper()
	e, err := s.Send(context.Background(), mail.Outgoing{To: to.Address, Body: body})
	if err != nil {
		s.World.t.Fatalf("send: %v", err)
	}
	s.Await(e.ID, to)
	return e
}

// MustReply answers.
func (s *Session) MustReply(to *Session, body string, ids ...string) {
	s.World.t.Helper()
	if err := s.Reply(context.Background(), mail.Reply{To: to.Address, InReplyTo: ids, Body: body, Status: mail.StatusDone}); err != nil {
		s.World.t.Fatalf("reply: %v", err)
	}
}

// Folder lists the envelope files of a folder of the session's mailbox.
func (s *Session) Folder(name string) []string {
	files, _ := filepath.Glob(filepath.Join(s.World.Root, s.Address, name, "*.json"))
	return files
}

func (s *Session) String() string { return fmt.Sprintf("session %s", s.Address) }
