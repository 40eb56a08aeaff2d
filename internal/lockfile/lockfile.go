// Package lockfile holds a lock for as long as its process lives. The kernel releases it, so there is no lease to expire and
// nothing to clean up. The lock is a file of its own, never deleted, so that two contenders can't hold two files of one name.
package lockfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"pi-cradle/internal/durable"
)

// Holder is what a lock file says about who has it, for error texts only: the lock itself is the kernel's.
type Holder struct {
	PID   int       `json:"pid"`
	What  string    `json:"what"`
	Since time.Time `json:"since"`
}

// HeldError says that somebody else has the lock.
type HeldError struct {
	Path   string
	Holder Holder // zero when the holder could not be read
}

func (e *HeldError) Error() string {
	if e.Holder.PID == 0 {
		return fmt.Sprintf("%q is locked by another process", e.Path)
	}
	return fmt.Sprintf("%q is locked by process %d (%s) since %s", e.Path, e.Holder.PID, e.Holder.What, e.Holder.Since.Format(time.RFC3339))
}

// Lock takes the lock at path, making the file and its folder if needed, and returns the function that releases it. It waits
// until ctx ends and then returns a *HeldError. The returned function is safe to call twice.
func Lock(ctx context.Context, path, what string) (unlock func(), err error) {
	return lock(path, what, func(l *flock.Flock) (bool, error) { return l.TryLockContext(ctx, 5*time.Millisecond) })
}

// TryLock is Lock that does not wait.
func TryLock(path, what string) (unlock func(), err error) {
	return lock(path, what, (*flock.Flock).TryLock)
}

func lock(path, what string, try func(*flock.Flock) (bool, error)) (func(), error) {
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return nil, err
	}
	l := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(durable.FileMode))
	ok, err := try(l)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return nil, err
	}
	if !ok {
		return nil, &HeldError{Path: path, Holder: ReadHolder(path)}
	}
	// Written in place: a rename would move the name away from the locked file. A torn record only costs the error text.
	data, err := json.Marshal(Holder{PID: os.Getpid(), What: what, Since: time.Now().UTC()})
	if err == nil {
		_ = os.WriteFile(path, data, durable.FileMode)
	}
	return func() { _ = l.Unlock() }, nil
}

// Share joins those who hold the lock at path together, making the file and its folder if needed, until release is called. alone says
// that nobody else did. Callers must keep each other from joining at the same moment: one may be told that it isn't alone, or get a
// *HeldError, because of another that only looks.
func Share(path string) (release func(), alone bool, err error) {
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return nil, false, err
	}
	l := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(durable.FileMode))
	if alone, err = l.TryLock(); err != nil {
		return nil, false, err
	}
	shared, err := l.TryRLock() // turns a lock that is held into a shared one
	if err != nil {
		return nil, false, err
	}
	if !shared {
		return nil, false, &HeldError{Path: path}
	}
	return func() { _ = l.Unlock() }, alone, nil
}

// ReadHolder reads who says to hold the lock at path. The zero Holder means nobody knows.
func ReadHolder(path string) Holder {
	var h Holder
	_ = durable.ReadJSON(path, &h)
	return h
}
