package schedule

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"pi-cradle/cradle/schedule/history"
	"pi-cradle/cradle/schedule/task"
	"pi-cradle/cradle/schedule/timer"
	"pi-cradle/cradle/schedule/view"
	"pi-cradle/internal/durable"
	"pi-cradle/internal/lockfile"
	"pi-cradle/internal/usererr"
)

// List looks at every task, and at every timer whose task is gone. An unusable cron or timer makes its own row say so.
func (s *Service) List() ([]view.Row, error) {
	tasks, err := s.Tasks()
	orphans, orphansErr := s.orphans(tasks)
	if err != nil && (len(orphans) == 0 || !isNoDir(err)) {
		return nil, err
	}
	if orphansErr != nil {
		s.warn("can't look for timers of missing tasks: %v", orphansErr)
	}
	cradle, found := s.Find("cradle")
	noted := s.readInstall()
	rows := make([]view.Row, 0, len(tasks)+len(orphans))
	for _, t := range tasks {
		row := view.Row{Slug: t.Slug, Name: t.Name, Description: t.Description, Cron: t.Cron, Timezone: t.Timezone, Cwd: t.Cwd, OnFailure: t.OnFailure, Timer: view.NotInstalled}
		job, err := s.job(t, cradle)
		var files []timer.File
		if err == nil {
			files, err = s.Backend.Files(job)
		}
		if err != nil {
			row.Error = err.Error()
			var user *usererr.Error
			if errors.As(err, &user) {
				row.Hints = user.Hints
			}
		} else {
			row.Timer = s.timerState(files, found, slices.Contains(noted.Pending, t.Slug))
			if next, ok := job.Cron.Next(s.Now().In(t.Location())); ok {
				row.Next = &next
			}
		}
		s.addRuns(&row)
		s.addMissed(&row, job, t.Location())
		rows = append(rows, row)
	}
	for _, slug := range orphans {
		row := view.Row{Slug: slug, Timer: view.Orphaned}
		s.addRuns(&row)
		rows = append(rows, row)
	}
	return rows, nil
}

func isNoDir(err error) bool {
	var noDir *task.NoDirError
	return errors.As(err, &noDir)
}

// timerState compares what would be installed now with what is. If cradle can't be found, the files would differ in that only,
// so being there is enough.
func (s *Service) timerState(files []timer.File, cradleFound, pending bool) view.TimerState {
	missing, same := 0, 0
	for _, f := range files {
		content, err := os.ReadFile(f.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing++
		case err == nil && (!cradleFound || string(content) == f.Content):
			same++
		}
	}
	switch {
	case missing == len(files):
		return view.NotInstalled
	case pending:
		return view.Incomplete
	case same == len(files):
		return view.Installed
	}
	return view.Stale
}

func (s *Service) addRuns(row *view.Row) {
	records, err := s.History().Read(row.Slug)
	if err != nil {
		s.warn("can't read the history of %q: %v", row.Slug, err)
		return
	}
	current, running, err := s.current(row.Slug)
	switch {
	case err != nil:
		s.warn("can't tell whether %q is running: %v", row.Slug, err)
	case running:
		row.Running = &current.Start
	case current != nil:
		records = append(records, *current)
	}
	if n := len(records); n > 0 {
		row.Last = &records[n-1]
	}
}

// missedGrace is what systemd's accuracy and a slow start may take.
const missedGrace = 5 * time.Minute

// addMissed notices a firing without a run. A run that can't even be started, because its directory is gone for one, leaves no
// record: cradle was never asked.
func (s *Service) addMissed(row *view.Row, job timer.Job, loc *time.Location) {
	if row.Timer != view.Installed || row.Running != nil {
		return
	}
	now := s.Now()
	planned, ok := job.Cron.Last(now.In(loc))
	if !ok || now.Sub(planned) < missedGrace {
		return
	}
	if row.Last != nil {
		seen := row.Last.Start
		if row.Last.End != nil { // the system starts no second run beside the first, and says nothing
			seen = *row.Last.End
		}
		if !seen.Before(planned) {
			return
		}
	}
	for _, path := range s.Backend.Paths(s.State.ID, row.Slug) {
		if info, err := os.Stat(path); err != nil || info.ModTime().After(planned) {
			return // it was not there yet
		}
	}
	row.Missed, row.Inspect = &planned, s.Backend.Inspect(s.State.ID, row.Slug)
}

func (s *Service) lockPath(slug string) string { return filepath.Join(s.private(), slug+".lock") }

func (s *Service) currentPath(slug string) string {
	return filepath.Join(s.private(), slug+".running.json")
}

// current reads the note that a run leaves while it lasts: that of a live one, or of one whose end nobody saw, then made into
// its record. Without a note it returns nil.
func (s *Service) current(slug string) (r *history.Record, running bool, err error) {
	var note history.Record
	if err := durable.ReadJSON(s.currentPath(slug), &note); errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	} else if err != nil {
		return nil, false, err
	}
	// A run about to start waits for a lock that is held this briefly.
	unlock, err := lockfile.TryLock(s.lockPath(slug), "cradle schedule list")
	var held *lockfile.HeldError
	switch {
	case errors.As(err, &held):
		return &note, true, nil
	case err != nil:
		return nil, false, err
	}
	defer unlock()
	// The run may have ended between the two looks.
	if _, err := os.Stat(s.currentPath(slug)); errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return interrupted(note), false, nil
}

func interrupted(note history.Record) *history.Record {
	note.Outcome, note.Reason = history.Interrupted, "cradle was killed or the machine went down"
	return &note
}

// LogEntry is what is known of one task's runs.
func (s *Service) LogEntry(slug string, runs, lines int) (view.Log, error) {
	l := view.Log{Slug: slug, Path: s.History().LogPath(slug)}
	records, err := s.History().Read(slug)
	if err != nil {
		return l, err
	}
	current, running, err := s.current(slug)
	if err != nil {
		return l, err
	}
	if running {
		l.Running = &current.Start
	} else if current != nil {
		records = append(records, *current)
	}
	l.Records = records[max(0, len(records)-runs):]
	l.Lines, err = s.History().LogTail(slug, lines)
	return l, err
}

// Logged lists the tasks to show when none is named: those of the folder, then those that only left a history.
func (s *Service) Logged(tasks []task.Task) ([]string, error) {
	var slugs []string
	for _, t := range tasks {
		slugs = append(slugs, t.Slug)
	}
	old, err := s.History().Tasks()
	for _, slug := range old {
		if !slices.Contains(slugs, slug) {
			slugs = append(slugs, slug)
		}
	}
	return slugs, err
}

// now is the time at which things happen, as it is stored: UTC, whole milliseconds.
func (s *Service) now() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }
