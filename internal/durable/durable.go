// Package durable writes files so that a reader sees the old content or the new one, never half of either, also after a
// crash or a power cut, and so that nobody else can read them.
package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FileMode and DirMode are what every record of ours has.
const (
	FileMode fs.FileMode = 0o600
	DirMode  fs.FileMode = 0o700
)

// testOnlyFault, when set, runs before each step of Write; a non-nil error stands for the step's failure.
var testOnlyFault func(step, path string) error

// SetFault sets what runs before each step of a write in a process that is a test binary, and plays a program: "create", "write",
// "rename", and "done" once the file is in place. It is for letting that program die there; an error stands for the step's failure.
// Call it before anything is written. In any other process it panics.
func SetFault(fn func(step, path string) error) {
	if !testing.Testing() {
		panic("durable: faults are for tests")
	}
	testOnlyFault = fn
}

func fault(step, path string) error {
	if testOnlyFault == nil {
		return nil
	}
	return testOnlyFault(step, path)
}

// MkdirAll makes dir and its missing parents owner-only. An existing directory keeps its mode.
func MkdirAll(dir string) error { return os.MkdirAll(dir, DirMode) }

// Write replaces path with data: a temporary file beside it, fsync, rename, fsync of the folder. The folder must exist. On an
// error the temporary file is gone and path is as it was, save that a failure of the last step leaves the new content in place.
func Write(path string, data []byte) error { return WriteMode(path, data, FileMode) }

// WriteMode is Write with a mode of the caller's choice, for files that other programs read.
func WriteMode(path string, data []byte, mode fs.FileMode) error {
	if err := replace(path, data, mode, true); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Place is Write without waiting for the disk, with the limits of Hand.
func Place(path string, data []byte) error { return replace(path, data, FileMode, false) }

// PlaceJSON is WriteJSON without waiting for the disk.
func PlaceJSON(path string, v any) error {
	data, err := indented(v)
	if err != nil {
		return err
	}
	return Place(path, data)
}

func replace(path string, data []byte, mode fs.FileMode, sync bool) error {
	if err := fault("create", path); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	if mode != FileMode {
		if err := f.Chmod(mode); err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
			return err
		}
	}
	return publish(f, path, data, sync)
}

// Deliver publishes data as path, by way of the file tmp on the same file system: for folders in which others look for new files and
// must never see half of one. Neither file may exist. On an error neither does, save that a failure of the last step, the sync of
// path's folder, leaves path in place.
func Deliver(tmp, path string, data []byte) error {
	if err := deliver(tmp, path, data, true); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Hand is Deliver without waiting for the disk: the file survives the end of any process, and may be lost or empty after a power
// cut within the next half minute. It is for what has no reader left after a power cut.
func Hand(tmp, path string, data []byte) error { return deliver(tmp, path, data, false) }

func deliver(tmp, path string, data []byte, sync bool) error {
	if err := fault("create", path); err != nil {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, FileMode)
	if err != nil {
		return err
	}
	return publish(f, path, data, sync)
}

// publish fills f, closes it and renames it to path. On an error it removes f.
func publish(f *os.File, path string, data []byte, sync bool) (err error) {
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err = fault("write", path); err != nil {
		return err
	}
	if _, err = f.Write(data); err != nil {
		return err
	}
	if sync {
		if err = f.Sync(); err != nil && !unsupported(err) {
			return err
		}
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = fault("rename", path); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return fault("done", path)
}

// WriteJSON writes v as indented JSON with a final newline.
func WriteJSON(path string, v any) error {
	data, err := indented(v)
	if err != nil {
		return err
	}
	return Write(path, data)
}

func indented(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	return append(data, '\n'), err
}

// SyncDir makes renames and removals in dir survive a power cut. File systems that can't are tolerated.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !unsupported(err) {
		return err
	}
	return nil
}

// ReadJSON decodes path into v. A missing file gives fs.ErrNotExist; content that is not JSON gives a *CorruptError.
func ReadJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return &CorruptError{Path: path, Err: err}
	}
	return nil
}

// CorruptError says that a record exists and can't be understood. Nothing may overwrite such a file.
type CorruptError struct {
	Path string
	Err  error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("record %q can't be read: %v", e.Path, e.Err)
}
func (e *CorruptError) Unwrap() error { return e.Err }

// SetAside moves an unreadable file out of the way, beside itself, and returns its new path. Nothing is ever overwritten.
func SetAside(path string) (string, error) {
	to := fmt.Sprintf("%s.unreadable-%d", path, time.Now().UnixNano())
	if err := os.Link(path, to); err != nil {
		return "", err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return to, nil
}
