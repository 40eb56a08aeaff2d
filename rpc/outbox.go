package rpc

import (
	"errors"
	"io"
	"sync"

	"pi-cradle/rpc/wire"
)

// maxBacklog is how many bytes may wait for a peer that doesn't read before the connection is given up.
const maxBacklog = 8 * wire.MaxFrame

// outbox writes frames one after another on its own goroutine.
type outbox struct {
	to      io.Writer
	failed  chan struct{} // closed when a write failed or the backlog grew too long
	drained chan struct{} // closed when the writer is done for good

	mu      sync.Mutex // guards what follows
	changed sync.Cond
	frames  [][]byte
	size    int   // bytes in frames and in the write under way
	limit   int   // of size
	err     error // set once: nothing is taken any more, and unless it is errFinished nothing is written either
}

// errFinished lets the frames that are queued out, and no more in.
var errFinished = errors.New("connection is closing")

var errBacklog = errors.New("the other side does not read")

func newOutbox(to io.Writer) *outbox {
	o := &outbox{to: to, failed: make(chan struct{}), drained: make(chan struct{}), limit: maxBacklog}
	o.changed.L = &o.mu
	go o.write()
	return o
}

func (o *outbox) put(frame []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && o.size+len(frame) > o.limit {
		o.failLocked(errBacklog)
	}
	if o.err != nil {
		return ErrClosed
	}
	o.frames = append(o.frames, frame)
	o.size += len(frame)
	o.changed.Signal()
	return nil
}

// close ends the outbox with err; the first one counts, but for errFinished, which every other one replaces.
func (o *outbox) close(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil || errors.Is(o.err, errFinished) {
		o.err = err
		o.changed.Signal()
	}
}

func (o *outbox) failLocked(err error) {
	if o.err == nil || errors.Is(o.err, errFinished) {
		o.err = err
		close(o.failed)
		o.changed.Signal()
	}
}

func (o *outbox) write() {
	defer close(o.drained)
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for len(o.frames) == 0 && o.err == nil {
			o.changed.Wait()
		}
		if len(o.frames) == 0 || o.err != nil && !errors.Is(o.err, errFinished) {
			o.frames = nil
			return
		}
		frame := o.frames[0]
		o.frames[0] = nil
		o.frames = o.frames[1:]
		o.mu.Unlock()
		_, err := o.to.Write(frame)
		o.mu.Lock()
		o.size -= len(frame)
		if err != nil {
			o.failLocked(err)
		}
	}
}
