// Package watch tells when something appears in a folder, by the operating system's events.
package watch

import (
	"errors"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Dir calls changed, from one goroutine, after files were created in dir or renamed into it; several at once may be told as
// one. It calls it once at the start too, so that nothing that came just before the watch is missed. changed must not block for
// long, and is not called any more once stop has returned. stop may be called twice.
//
// The error is fs.ErrNotExist for a missing folder; others mean that the system has no watches left, and that the caller must look
// for itself now and then.
func Dir(dir string, changed func()) (stop func(), err error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := w.Add(dir); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		changed()
		for {
			select {
			case e, ok := <-w.Events:
				if !ok {
					return
				}
				if e.Has(fsnotify.Create) || e.Has(fsnotify.Rename) {
					drain(w.Events)
					changed()
				}
			case _, ok := <-w.Errors:
				if !ok {
					return
				}
				changed() // an overflow: something may have come
			}
		}
	}()
	var once sync.Once
	return func() {
		once.Do(func() { _ = w.Close() })
		<-done
	}, nil
}

// drain throws away what the coming call of changed will see anyway.
func drain(events <-chan fsnotify.Event) {
	for {
		select {
		case _, ok := <-events:
			if !ok {
				return
			}
		default:
			return
		}
	}
}
