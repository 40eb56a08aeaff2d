// Package history keeps what the runs of a task leave behind: one line per run, and the log that the timer appends pi's output
// to. Both lie in the agent's state directory, into which a sandboxed agent may write; so nothing here follows a link out of
// it, and what is read is only ever shown.
package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pi-cradle/internal/durable"
)

// Outcome is how a run ended.
type Outcome string

const (
	OK          Outcome = "ok"
	Failed      Outcome = "failed"
	Skipped     Outcome = "skipped"     // it never started
	Interrupted Outcome = "interrupted" // nobody saw its end
)

// Trigger is what started a run.
type Trigger string

const (
	Timer  Trigger = "timer"
	Manual Trigger = "manual"
)

// Record is one run. Times are UTC.
type Record struct {
	Version  int        `json:"version"`
	Task     string     `json:"task"`
	Trigger  Trigger    `json:"trigger"`
	Planned  *time.Time `json:"planned,omitempty"` // the firing it stands for; nil for a run by hand
	Start    time.Time  `json:"start"`
	End      *time.Time `json:"end,omitempty"` // nil when nobody saw it
	Outcome  Outcome    `json:"outcome"`
	ExitCode *int       `json:"exitCode,omitempty"` // nil unless the run ended
	Session  string     `json:"session,omitempty"`  // pi's session file, if one can be told
	Reason   string     `json:"reason,omitempty"`   // why it was skipped, or why it failed before pi ran
}

// Version is the format of records written now.
const Version = 1

// Duration is how long the run took, 0 when its end is not known.
func (r Record) Duration() time.Duration {
	if r.End == nil {
		return 0
	}
	return r.End.Sub(r.Start)
}

// Limits, in bytes. A file that has grown past its limit makes room before the next run.
const (
	maxHistory = 1 << 20
	maxLog     = 4 << 20
	oldLogs    = 2 // kept beside the current one
)

// Dir is the folder of one agent's histories and logs.
type Dir struct {
	State string // the agent's state directory
}

const folder = "schedule"

// LogPath is the file that the task's timer appends output to, below the state directory as spelled.
func (d Dir) LogPath(task string) string { return filepath.Join(d.State, folder, task+".log") }

func historyName(task string) string { return filepath.Join(folder, task+".history.jsonl") }
func logName(task string) string     { return filepath.Join(folder, task+".log") }

// Make makes the folder.
func (d Dir) Make() error { return durable.MkdirAll(filepath.Join(d.State, folder)) }

// within opens the state directory as a root that no link leads out of. A missing one gives fs.ErrNotExist.
func (d Dir) within(do func(*os.Root) error) error {
	root, err := os.OpenRoot(d.State)
	if err != nil {
		return err
	}
	return errors.Join(do(root), root.Close())
}

// Append adds a record and makes it survive a power cut. Records may be added by several processes at once.
func (d Dir) Append(r Record) error {
	r.Version = Version
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := d.Make(); err != nil {
		return err
	}
	return d.within(func(root *os.Root) error {
		f, err := root.OpenFile(historyName(r.Task), os.O_RDWR|os.O_CREATE|os.O_APPEND, durable.FileMode)
		if err != nil {
			return err
		}
		defer f.Close()
		torn, err := endsTorn(f)
		if err != nil {
			return err
		}
		if torn { // a crash cut the last line short: it must not take this one with it
			line = append([]byte{'\n'}, line...)
		}
		// One write, so that no other process's line gets in between.
		if _, err := f.Write(append(line, '\n')); err != nil {
			return err
		}
		return f.Sync()
	})
}

func endsTorn(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return last[0] != '\n', err
}

// Read returns the task's records, oldest first. What can't be read as a record is passed over: a torn line costs itself only.
func (d Dir) Read(task string) ([]Record, error) {
	var records []Record
	err := d.within(func(root *os.Root) error {
		for _, name := range []string{historyName(task) + ".1", historyName(task)} {
			data, err := tail(root, name, 2*maxHistory)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			records = append(records, parse(data, task)...)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return records, err
}

func parse(data []byte, task string) (records []Record) {
	for line := range bytes.SplitSeq(data, []byte{'\n'}) {
		var r Record
		if json.Unmarshal(line, &r) == nil && r.Task == task && !r.Start.IsZero() && r.Outcome != "" {
			records = append(records, r)
		}
	}
	return records
}

// tail reads the last limit bytes of a file.
func tail(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|noHang, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	return io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-limit), limit))
}

// LogTail returns the last lines of the task's log, at most count. A missing log has none.
func (d Dir) LogTail(task string, count int) ([]string, error) {
	var data []byte
	err := d.within(func(root *os.Root) (err error) {
		data, err = tail(root, logName(task), 64<<10)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || len(data) == 0 {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	return lines[max(0, len(lines)-count):], nil
}

// Tasks lists the tasks that have a history.
func (d Dir) Tasks() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(d.State, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var tasks []string
	for _, e := range entries {
		if task, ok := strings.CutSuffix(e.Name(), ".history.jsonl"); ok {
			tasks = append(tasks, task)
		}
	}
	return tasks, err
}
