package history

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"pi-cradle/internal/durable"
)

// noHang keeps an open from waiting for the other end of a pipe that somebody left under a file's name.
const noHang = syscall.O_NONBLOCK

// Rotate makes room in the task's history and log when they have grown large. The caller must hold the task's lock: no other
// run of the task is writing.
func (d Dir) Rotate(task string) error {
	err := d.within(func(root *os.Root) error {
		return errors.Join(rotateHistory(root, historyName(task)), rotateLog(root, logName(task)))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func rotateHistory(root *os.Root, name string) error {
	if large, err := exceeds(root, name, maxHistory); !large {
		return err
	}
	return root.Rename(name, name+".1")
}

// rotateLog empties the log in place, because the timer has opened it already for this process's own output and appends to the
// same file whatever its name. The newest part is copied away first; what lies before that is given up, so that even one run
// that wrote without end is cut to size.
func rotateLog(root *os.Root, name string) error {
	if large, err := exceeds(root, name, maxLog); !large {
		return err
	}
	data, err := tail(root, name, maxLog)
	if err != nil {
		return err
	}
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		data = data[i+1:]
	}
	for n := oldLogs; n > 1; n-- {
		if err := root.Rename(old(name, n-1), old(name, n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// A crash leaves at worst a copy too many: the log is emptied only once the copy has its name.
	part := name + ".part"
	if err := writeSynced(root, part, data); err != nil {
		return err
	}
	if err := root.Rename(part, old(name, 1)); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|noHang, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(0), f.Close())
}

func old(name string, n int) string { return fmt.Sprintf("%s.%d", name, n) }

func writeSynced(root *os.Root, name string, data []byte) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|noHang, durable.FileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

func exceeds(root *os.Root, name string, limit int64) (bool, error) {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Mode().IsRegular() && info.Size() > limit, err
}
