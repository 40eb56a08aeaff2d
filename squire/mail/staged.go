package mail

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"pi-cradle/internal/durable"
	"pi-cradle/rpc/wire"
)

// Staged is the folder into which the extension writes the mail that a provider claimed for this session, one file each.
type Staged struct {
	Dir  string
	Sink Sink
	Warn func(string)

	mu sync.Mutex
}

// Drain hands every staged envelope to the sink, oldest first, and deletes those that it took. A folder that does not exist is
// empty. Files that can't be understood are set aside with a warning.
func (s *Staged) Drain(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	type staged struct {
		file string
		mail Received
	}
	var waiting []staged
	var first error // the rest is mostly the same again
	for _, entry := range entries {
		file := filepath.Join(s.Dir, entry.Name())
		if !isEnvelopeFile(entry.Name()) {
			continue
		}
		mail, err := readStaged(file)
		var malformed *MalformedError
		switch {
		case errors.As(err, &malformed):
			first = cmp.Or(first, setAside(file, malformed, s.Warn))
		case err == nil:
			waiting = append(waiting, staged{file, mail})
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotRegular):
			first = cmp.Or(first, err)
		}
	}
	slices.SortStableFunc(waiting, func(a, b staged) int {
		return cmp.Or(a.mail.Envelope.TS.Compare(b.mail.Envelope.TS), cmp.Compare(a.mail.Path, b.mail.Path))
	})
	for _, w := range waiting {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.Sink(w.mail); err != nil {
			first = cmp.Or(first, err)
			continue
		}
		// If this fails the sink sees the envelope again, and knows it.
		first = cmp.Or(first, os.Remove(w.file))
	}
	return first
}

func readStaged(file string) (Received, error) {
	data, err := readFile(file)
	if err != nil {
		return Received{}, err
	}
	var in wire.Inbound
	if json.Unmarshal(data, &in) != nil {
		return Received{}, &MalformedError{Reason: "not a JSON object"}
	}
	return FromInbound(in)
}

// FromInbound reads what a provider handed over. Copies of requests that can't be read are left out: they are only quoted.
func FromInbound(in wire.Inbound) (Received, error) {
	e, err := ParseEnvelope(in.Envelope)
	if err != nil {
		return Received{}, err
	}
	r := Received{Envelope: e, Path: in.Path}
	for _, request := range in.Requests {
		if e, err := ParseEnvelope(request.Envelope); err == nil {
			r.Requests = append(r.Requests, Copy{Envelope: e, Path: request.Path})
		}
	}
	return r, nil
}

// setAside moves a malformed file out of the way and says so once: afterwards nobody reads it any more.
func setAside(file string, why *MalformedError, warn func(string)) error {
	to, err := durable.SetAside(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // somebody else was faster
	}
	if err != nil {
		return err
	}
	warn(fmt.Sprintf("mail %q is %v; it was set aside as %q", file, why, to))
	return nil
}
