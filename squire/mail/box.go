package mail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"pi-cradle/internal/durable"
)

// box is one session's mailbox: <root>/<address>/{tmp,new,cur,sent}.
type box struct{ root, address string }

func (b box) path(parts ...string) string {
	return filepath.Join(append([]string{b.root, b.address}, parts...)...)
}

// create makes what is missing of the mailbox, and with sync so that it is there after a power cut too.
func (b box) create(sync bool) error {
	var made bool
	for _, dir := range []string{"tmp", "new", "cur", "sent"} {
		if _, err := os.Lstat(b.path(dir)); err == nil {
			continue
		}
		made = true
		if err := durable.MkdirAll(b.path(dir)); err != nil {
			return err
		}
	}
	if !made || !sync {
		return nil
	}
	if err := durable.SyncDir(b.path()); err != nil {
		return err
	}
	return durable.SyncDir(b.root)
}

// sentCopies finds this box's own copies of the requests with these ids.
func (b box) sentCopies(ids []string) []Copy {
	entries, err := os.ReadDir(b.path("sent"))
	if err != nil {
		return nil // the copies are only quoted
	}
	var copies []Copy
	for _, id := range ids {
		for _, entry := range entries {
			if !isEnvelopeFile(entry.Name()) || !strings.HasSuffix(entry.Name(), "-"+id+".json") {
				continue
			}
			path := b.path("sent", entry.Name())
			if e, err := readEnvelope(path); err == nil && e.ID == id {
				copies = append(copies, Copy{Envelope: e, Path: path})
				break
			}
		}
	}
	return copies
}

// post writes e into the mailbox of its receiver, and of a request first a copy into its sender's. When it fails it takes back what
// it has done, unless the receiver was faster.
//
// A reply is on disk when post returns, because its sender then forgets it. A request is only out of this process's hands: a power
// cut also ends the delegate that was to read it, so there is nobody to lose it, and the parent is told of that end. Not waiting
// for the disk saves most of the time that it takes to start a delegate.
func post(root string, e Envelope) (err error) {
	data, err := e.file()
	if err != nil {
		return err
	}
	reply := e.Kind == KindReply
	write := durable.Hand
	if reply {
		write = durable.Deliver
	}
	name := fileName(time.Now(), e.ID)
	var written []string
	defer func() {
		if err != nil {
			for _, path := range written {
				_ = os.Remove(path)
			}
		}
	}()
	deliver := func(b box, folder string) error {
		if err := step("create " + folder); err != nil {
			return err
		}
		if err := b.create(reply); err != nil {
			return err
		}
		if err := step("write " + folder); err != nil {
			return err
		}
		written = append(written, b.path(folder, name))
		return write(b.path("tmp", name), b.path(folder, name), data)
	}
	if !reply {
		if err := deliver(box{root, e.From}, "sent"); err != nil {
			return fmt.Errorf("the copy of a task could not be kept: %w", err)
		}
	}
	if err := deliver(box{root, e.To}, "new"); err != nil {
		return fmt.Errorf("mail to %q could not be written: %w", e.To, err)
	}
	return step("posted")
}

// claim moves an envelope that the sink has taken to cur/. Somebody else may have done so.
func (b box) claim(name string) error {
	rename := func() error { return os.Rename(b.path("new", name), b.path("cur", name)) }
	err := rename()
	if errors.Is(err, fs.ErrNotExist) {
		// Whoever wrote the envelope may have made no more of the mailbox than that takes.
		if err := b.create(false); err != nil {
			return err
		}
		err = rename()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// lastStamp makes the file names of this process strictly increasing, as the format asks.
var lastStamp atomic.Int64

func fileName(now time.Time, id string) string {
	stamp := now.UnixMilli()
	for {
		last := lastStamp.Load()
		stamp = max(stamp, last+1)
		if lastStamp.CompareAndSwap(last, stamp) {
			return fmt.Sprintf("%015d-%s.json", stamp, id)
		}
	}
}

// testOnlyStep, when set, runs before each durable step. An error stands for the step's failure; a panic for the end of the
// process, after which nothing is put in order.
var testOnlyStep atomic.Pointer[func(name string) error]

func step(name string) error {
	if f := testOnlyStep.Load(); f != nil {
		return (*f)(name)
	}
	return nil
}
