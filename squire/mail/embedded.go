package mail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/uuid"
)

// Events carry the mail; these are for events that were lost, and for machines on which none can be had.
const (
	pollWithEvents    = 30 * time.Second
	pollWithoutEvents = 2 * time.Second
)

// EmbeddedConfig is what Embedded needs.
type EmbeddedConfig struct {
	Root    string // see Root
	Address string // this session's id
	// Claims says which envelopes are ours; all others stay untouched. It sees them without their bodies, may be called at any
	// time until Close has returned, and may change its mind: call Scan when it has.
	Claims func(Envelope) bool
	Sink   Sink
	Warn   func(string) // something that the user should know, once
}

// Embedded keeps this session's own mailbox in the mail root. It makes the mailbox with the first mail it sends, so a session
// that never delegates leaves no trace, and never lists the root. From the first Scan or Send that finds a mailbox it watches it.
type Embedded struct {
	config EmbeddedConfig
	box    box

	mu      sync.Mutex          // held during a scan, so the sink sees one envelope at a time
	foreign map[string]Envelope // files in new/ that were not ours when last seen, without bodies
	warned  map[string]bool     // files whose trouble was told

	watch struct {
		sync.Mutex
		closed bool
		stop   func()
		done   chan struct{} // nil until watching
	}
}

// NewEmbedded refuses an address that is no safe path segment.
func NewEmbedded(c EmbeddedConfig) (*Embedded, error) {
	if !ValidAddress(c.Address) {
		return nil, fmt.Errorf("session id %q can't be a mail address", c.Address)
	}
	return &Embedded{
		config:  c,
		box:     box{c.Root, c.Address},
		foreign: map[string]Envelope{},
		warned:  map[string]bool{},
	}, nil
}

// Send implements Transport.
func (m *Embedded) Send(ctx context.Context, o Outgoing) (Envelope, error) {
	e, err := m.envelope(ctx, o.To, o.Body)
	if err != nil {
		return Envelope{}, err
	}
	e.Kind = KindRequest
	if err := post(m.config.Root, e); err != nil {
		return Envelope{}, err
	}
	m.startWatch() // there is a mailbox now, and an answer to wait for
	return e, nil
}

// Reply implements Transport.
func (m *Embedded) Reply(ctx context.Context, r Reply) error {
	if err := r.check(); err != nil {
		return err
	}
	for ids := range slices.Chunk(r.InReplyTo, MaxInReplyTo) {
		e, err := m.envelope(ctx, r.To, r.Body)
		if err != nil {
			return err
		}
		e.Kind, e.InReplyTo, e.Status = KindReply, ids, r.Status
		if err := post(m.config.Root, e); err != nil {
			return err
		}
	}
	return nil
}

func (m *Embedded) envelope(ctx context.Context, to, body string) (Envelope, error) {
	if err := ctx.Err(); err != nil {
		return Envelope{}, err
	}
	if !ValidAddress(to) {
		return Envelope{}, fmt.Errorf("%q can't be a mail address", to)
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return Envelope{}, err
	}
	return Envelope{
		ID: id.String(), From: m.config.Address, To: to, InReplyTo: []string{},
		TS: time.Now().UTC().Truncate(time.Millisecond), Body: strings.ToValidUTF8(body, "\uFFFD"),
	}, nil
}

// Scan implements Transport.
func (m *Embedded) Scan(ctx context.Context) (bool, error) {
	m.startWatch() // before looking, so that nothing falls between
	err := m.scan(ctx)
	return err == nil, err
}

func (m *Embedded) scan(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	entries, err := os.ReadDir(m.box.path("new"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the mailbox can't be read: %w", err)
	}
	seen := make(map[string]Envelope, len(m.foreign))
	var first error                 // the rest is mostly the same again
	for _, entry := range entries { // sorted by name, so in the order of sending
		if err := ctx.Err(); err != nil {
			return err
		}
		name := entry.Name()
		if !isEnvelopeFile(name) || !entry.Type().IsRegular() {
			continue
		}
		e, known := m.foreign[name]
		if known && !m.config.Claims(e) {
			seen[name] = e
			continue
		}
		e, ours, err := m.take(name)
		if err != nil {
			first = cmp.Or(first, err)
		} else if !ours {
			e.Body = ""
			seen[name] = e
		}
	}
	m.foreign = seen
	return first
}

// take reads one file, and if it is ours hands it to the sink and then claims it. In this order a crash in between shows the
// envelope to the sink again; in the other it would lose it.
func (m *Embedded) take(name string) (e Envelope, ours bool, err error) {
	path := m.box.path("new", name)
	e, err = readEnvelope(path)
	var malformed *MalformedError
	switch {
	case errors.As(err, &malformed):
		err := setAside(path, malformed, m.config.Warn)
		if err != nil && !m.warned[name] {
			m.warned[name] = true
			m.config.Warn(fmt.Sprintf("mail %q is %v, and can't be set aside: %v", path, malformed, err))
		}
		return Envelope{}, true, nil // not a reason to hold up anything else
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNotRegular):
		return Envelope{}, true, nil
	case err != nil:
		return Envelope{}, false, err
	}
	header := e
	header.Body = ""
	if !m.config.Claims(header) {
		return header, false, nil
	}
	if err := step("sink"); err != nil {
		return e, true, err
	}
	if err := m.config.Sink(Received{Envelope: e, Path: m.box.path("cur", name), Requests: m.box.sentCopies(e.InReplyTo)}); err != nil {
		return e, true, err
	}
	if err := step("claim"); err != nil {
		return e, true, err
	}
	return e, true, m.box.claim(name)
}

// startWatch begins to watch new/ if it is there and is not being watched.
func (m *Embedded) startWatch() {
	m.watch.Lock()
	defer m.watch.Unlock()
	if m.watch.closed || m.watch.done != nil {
		return
	}
	if _, err := os.Stat(m.box.path("new")); err != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	m.watch.stop, m.watch.done = stop, make(chan struct{})
	// A nil watcher, when the system has none left, leaves the polling.
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		if err = watcher.Add(m.box.path("new")); err != nil {
			_ = watcher.Close()
			watcher = nil
		}
	}
	go m.follow(ctx, watcher, m.watch.done)
}

func (m *Embedded) follow(ctx context.Context, watcher *fsnotify.Watcher, done chan<- struct{}) {
	defer close(done)
	every := pollWithoutEvents
	var events <-chan fsnotify.Event
	var lost <-chan error // events that were dropped, for one
	if watcher != nil {
		defer watcher.Close()
		every, events, lost = pollWithEvents, watcher.Events, watcher.Errors
	}
	poll := time.NewTicker(every)
	defer poll.Stop()
	var last string
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-events:
			if !event.Has(fsnotify.Create) || !isEnvelopeFile(filepath.Base(event.Name)) {
				continue
			}
		case <-lost:
		case <-poll.C:
		}
		err := m.scan(ctx)
		switch {
		case err == nil:
			last = ""
		case ctx.Err() == nil && err.Error() != last:
			last = err.Error() // the same trouble is told once, not every time
			m.config.Warn(fmt.Sprintf("mail could not be taken over: %v", err))
		}
	}
}

// Close implements Transport.
func (m *Embedded) Close(ctx context.Context) error {
	m.watch.Lock()
	m.watch.closed = true
	stop, done := m.watch.stop, m.watch.done
	m.watch.Unlock()
	if done == nil {
		return nil
	}
	stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
