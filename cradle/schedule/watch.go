package schedule

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pi-cradle/cradle/schedule/cron"
	"pi-cradle/cradle/schedule/history"
	"pi-cradle/cradle/schedule/task"
	"pi-cradle/cradle/state"
	"pi-cradle/internal/durable"
	"pi-cradle/internal/lockfile"
	"pi-cradle/internal/run"
)

// Watch is a run in progress. It holds the task's lock, so that the task's next run is skipped and not started beside this one.
type Watch struct {
	s        *Service
	task     task.Task
	record   history.Record
	sessions []string // before the run
	unlock   func()
}

// OverlapError says that the task's previous run has not ended.
type OverlapError struct {
	Slug   string
	Holder lockfile.Holder
}

func (e *OverlapError) Error() string {
	return fmt.Sprintf("schedule %q was skipped: %s", e.Slug, e.reason())
}

func (e *OverlapError) reason() string {
	if e.Holder.PID == 0 {
		return "its previous run has not ended"
	}
	return fmt.Sprintf("its previous run has not ended (process %d, since %s)", e.Holder.PID, e.Holder.Since.Local().Format(time.DateTime))
}

// ByTimer says whether a timer started this process. A timer's PATH is its own, and nobody else's.
func (s *Service) ByTimer() bool { return s.Path == s.Backend.SearchPath() }

// Environment is what a run needs to have in its environment to be like one by hand, and is not in that of a timer's process: a
// PATH that leads first of all where the installing user's own did, so that it finds the same pi, and the same Node to run it;
// and the root of the state directories, if it was moved. By hand there is nothing to add.
func (s *Service) Environment() map[string]string {
	if !s.ByTimer() {
		return nil
	}
	noted := s.readInstall()
	var dirs []string
	for _, dir := range filepath.SplitList(noted.Path + string(filepath.ListSeparator) + s.Path) {
		if filepath.IsAbs(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	env := map[string]string{"PATH": strings.Join(dirs, string(filepath.ListSeparator))}
	if filepath.IsAbs(noted.StateRoot) {
		env[state.RootEnv] = noted.StateRoot
	}
	return env
}

// lockPatience lets a look at the lock pass. A run holds it for much longer.
const lockPatience = time.Second

// Begin takes the task's lock and notes the start. An *OverlapError is already on record when it returns.
func (s *Service) Begin(ctx context.Context, t task.Task) (*Watch, error) {
	w := &Watch{s: s, task: t, record: s.blank(t)}
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	unlock, err := lockfile.Lock(ctx, s.lockPath(t.Slug), "cradle schedule run")
	var held *lockfile.HeldError
	if errors.As(err, &held) {
		overlap := &OverlapError{Slug: t.Slug, Holder: held.Holder}
		w.record.Outcome, w.record.Reason, w.record.End = history.Skipped, overlap.reason(), &w.record.Start
		return nil, errors.Join(overlap, s.History().Append(w.record))
	}
	if err != nil {
		return nil, err
	}
	w.unlock = unlock
	if err := w.open(); err != nil {
		unlock()
		return nil, err
	}
	return w, nil
}

// blank is the record of a run that starts now.
func (s *Service) blank(t task.Task) history.Record {
	r := history.Record{Version: history.Version, Task: t.Slug, Trigger: history.Manual, Start: s.now()}
	if s.ByTimer() {
		r.Trigger = history.Timer
		if expr, err := cron.Parse(t.Cron); err == nil {
			if planned, ok := expr.Last(r.Start.In(t.Location())); ok {
				planned = planned.UTC()
				r.Planned = &planned
			}
		}
	}
	return r
}

// open tidies up behind earlier runs and notes this one.
func (w *Watch) open() error {
	s, slug := w.s, w.record.Task
	if err := s.History().Make(); err != nil {
		return err
	}
	if err := s.History().Rotate(slug); err != nil {
		s.warn("can't make room in the log of %q: %v", slug, err)
	}
	var lost history.Record
	if err := durable.ReadJSON(s.currentPath(slug), &lost); err == nil {
		if err := s.History().Append(*interrupted(lost)); err != nil {
			return err
		}
	}
	w.sessions = sessionFiles(s.State.Sessions())
	return durable.WriteJSON(s.currentPath(slug), w.record)
}

// End records the end of the run and releases the lock. exitCode is pi's, or what stands for it when pi could not be run because
// of failure.
func (w *Watch) End(exitCode int, failure error) (history.Record, error) {
	defer w.unlock()
	r := &w.record
	end := w.s.now()
	r.End, r.ExitCode, r.Outcome = &end, &exitCode, history.OK
	if exitCode != 0 || failure != nil {
		r.Outcome = history.Failed
	}
	if failure != nil {
		r.Reason = firstLine(failure.Error())
	}
	r.Session = w.session()
	err := w.s.History().Append(*r)
	if err == nil {
		err = os.Remove(w.s.currentPath(r.Task))
	}
	return *r, err
}

// Refuse records a run that failed before its task could be read. Only a task that has a timer or a history gets a record: the
// rest are slips of the keyboard.
func (s *Service) Refuse(slug string, failure error) error {
	if !task.ValidSlug(slug) {
		return nil
	}
	if records, err := s.History().Read(slug); !s.present(slug) && (err != nil || len(records) == 0) {
		return err
	}
	r := s.blank(task.Task{Slug: slug})
	code := 1
	r.End, r.ExitCode, r.Outcome, r.Reason = &r.Start, &code, history.Failed, firstLine(failure.Error())
	return s.History().Append(r)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func sessionFiles(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// session finds the file that pi kept this run's conversation in: the one that is new. If another run of the agent made one
// meanwhile, the working directory and the name in it decide.
func (w *Watch) session() string {
	dir := w.s.State.Sessions()
	fresh := slices.DeleteFunc(sessionFiles(dir), func(name string) bool {
		return !strings.HasSuffix(name, ".jsonl") || slices.Contains(w.sessions, name)
	})
	if len(fresh) > 1 {
		fresh = slices.DeleteFunc(fresh, func(name string) bool { return !w.owns(filepath.Join(dir, name)) })
	}
	if len(fresh) == 0 {
		return ""
	}
	return filepath.Join(dir, fresh[0])
}

// owns reads the first lines of a session file, where pi puts the directory and the name.
func (w *Watch) owns(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	cwd, name := false, false
	for n := 0; n < 5 && lines.Scan(); n++ {
		var entry struct{ Type, Cwd, Name string }
		if json.Unmarshal(lines.Bytes(), &entry) != nil {
			continue
		}
		cwd = cwd || entry.Type == "session" && entry.Cwd == w.task.Cwd
		name = name || entry.Type == "session_info" && entry.Name == strings.TrimSpace(w.task.Name)
	}
	return cwd && name
}

// hookLimit keeps a failure command that hangs from hanging for ever.
const hookLimit = time.Minute

// NotifyFailure runs the task's failure command, without a shell, in the task's directory if there is one, and outside any
// sandbox. It tells the outcome in the environment and returns what the command printed.
func (s *Service) NotifyFailure(ctx context.Context, t task.Task, r history.Record, environ []string) (output string, err error) {
	ctx, cancel := context.WithTimeout(ctx, hookLimit)
	defer cancel()
	env := append(slices.Clone(environ),
		"CRADLE_TASK="+t.Slug, "CRADLE_TASK_NAME="+t.Name, "CRADLE_AGENT_FOLDER="+s.Folder,
		"CRADLE_OUTCOME="+string(r.Outcome), "CRADLE_REASON="+r.Reason, "CRADLE_START="+r.Start.Format(time.RFC3339),
		"CRADLE_SESSION="+r.Session, "CRADLE_LOG="+s.History().LogPath(t.Slug))
	if r.ExitCode != nil {
		env = append(env, "CRADLE_EXIT_CODE="+strconv.Itoa(*r.ExitCode))
	}
	if r.End != nil {
		env = append(env, "CRADLE_END="+r.End.Format(time.RFC3339))
	}
	dir := t.Cwd
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = s.Home
	}
	program, ok := t.OnFailure[0], true
	if !filepath.IsAbs(program) {
		program, ok = s.Find(program)
	}
	if !ok {
		return "", fmt.Errorf("onFailure: there is no program %q on PATH", t.OnFailure[0])
	}
	res, err := run.Output(ctx, run.Cmd{Path: program, Args: t.OnFailure[1:], Dir: dir, Env: env})
	if err != nil {
		err = fmt.Errorf("onFailure: %w", err)
	}
	return string(res.Stdout) + string(res.Stderr), err
}
