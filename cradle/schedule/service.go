// Package schedule carries out what the schedule actions ask for: it installs, inspects and removes the timers of one agent
// folder, and keeps watch over the runs they start.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pi-cradle/cradle/schedule/cron"
	"pi-cradle/cradle/schedule/history"
	"pi-cradle/cradle/schedule/launchd"
	"pi-cradle/cradle/schedule/systemd"
	"pi-cradle/cradle/schedule/task"
	"pi-cradle/cradle/schedule/timer"
	"pi-cradle/cradle/state"
	"pi-cradle/internal/closest"
	"pi-cradle/internal/durable"
	"pi-cradle/internal/localesort"
	"pi-cradle/internal/lockfile"
	"pi-cradle/internal/usererr"
)

// Service works on the schedule of one agent folder. Warnings aside, all fields are for the caller to fill.
type Service struct {
	Folder  string // the agent folder, absolute
	Home    string
	State   state.Dir // with an absolute root
	Backend timer.Backend
	Find    func(program string) (string, bool)
	Now     func() time.Time

	Path       string // the process's own PATH
	RuntimeDir string // the value of XDG_RUNTIME_DIR

	Warnings []string // grows
}

// BackendFor is the kind of timers of a platform, spelled as runtime.GOOS has it.
func BackendFor(platform, home string, uid int) (timer.Backend, error) {
	switch platform {
	case "linux":
		return systemd.Backend{Home: home}, nil
	case "darwin":
		return launchd.Backend{Home: home, UID: uid}, nil
	case "windows":
		platform = "win32"
	}
	return nil, usererr.New("Scheduled tasks are not supported on %s — launchd (macOS) and systemd (Linux) are the supported timer backends", platform)
}

func (s *Service) warn(format string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
}

// Tasks loads the folder's tasks.
func (s *Service) Tasks() ([]task.Task, error) {
	tasks, warnings, err := task.Load(s.Folder, s.Home)
	s.Warnings = append(s.Warnings, warnings...)
	var noDir *task.NoDirError
	if errors.As(err, &noDir) {
		return nil, usererr.New("%w", err).Hint("put one Markdown file per task into %s", filepath.Join(s.Folder, "schedule"))
	}
	return tasks, err
}

// Select narrows tasks to the one called slug, or to all when slug is empty.
func Select(tasks []task.Task, slug string) ([]task.Task, error) {
	if slug == "" {
		return tasks, nil
	}
	if i := slices.IndexFunc(tasks, func(t task.Task) bool { return t.Slug == slug }); i >= 0 {
		return tasks[i : i+1], nil
	}
	slugs := make([]string, len(tasks))
	for i, t := range tasks {
		slugs[i] = t.Slug
	}
	available := "schedule/ is empty"
	if len(slugs) > 0 {
		available = "available: " + strings.Join(slugs, ", ")
	}
	unknown := usererr.New(`Unknown schedule "%s" (%s)`, slug, available)
	if near := closest.Hint(slug, slugs); near != "" {
		unknown.Hint("%s", near)
	}
	return nil, unknown
}

// History is where the runs of this agent are recorded.
func (s *Service) History() history.Dir { return history.Dir{State: s.State.Path()} }

// private is a folder outside the agent's state directory: a sandboxed agent may write into that one, and must not be able to
// hold cradle's locks or to change its notes.
func (s *Service) private() string { return filepath.Join(s.State.Root, "timers", s.State.ID) }

// installed is where the notes about the timers themselves are: like their files, below the home, wherever the state is.
func (s *Service) installed(name string) string {
	return filepath.Join(s.homeRoot(), "timers", s.State.ID, name)
}

func (s *Service) homeRoot() string { return state.ForFolder(s.Folder, s.Home, "").Root }

// install is what is remembered about the timers of one agent: what their files can't say without becoming others.
type install struct {
	Version   int      `json:"version"`
	Path      string   `json:"path"`                // PATH at the time, in which pi was found
	StateRoot string   `json:"stateRoot,omitempty"` // where the agents' state is kept, if not below the home
	Pending   []string `json:"pending,omitempty"`   // tasks whose installation began and did not end
}

// readInstall never fails: the file only adds to what the timers themselves say.
func (s *Service) readInstall() install {
	var i install
	if err := durable.ReadJSON(s.installed("install.json"), &i); err != nil {
		return install{}
	}
	return i
}

func (s *Service) writeInstall(i install) error {
	i.Version = 1
	path := s.installed("install.json")
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return durable.WriteJSON(path, i)
}

// changeLimit is how long one install or remove waits for another.
const changeLimit = time.Minute

func (s *Service) lockChanges(ctx context.Context, what string) (func(), error) {
	ctx, cancel := context.WithTimeout(ctx, changeLimit)
	defer cancel()
	unlock, err := lockfile.Lock(ctx, s.installed("install.lock"), what)
	var held *lockfile.HeldError
	if errors.As(err, &held) {
		return nil, usererr.New("another install or remove of this agent's timers is under way: %w", err).Hint("wait for it to end and try again")
	}
	return unlock, err
}

// job is the task as its timer sees it.
func (s *Service) job(t task.Task, cradle string) (timer.Job, error) {
	expr, err := cron.Parse(t.Cron)
	if err != nil {
		return timer.Job{}, withHint(err)
	}
	return timer.Job{
		AgentID: s.State.ID, Slug: t.Slug, Name: t.Name, Folder: s.Folder, Cwd: t.Cwd,
		Log: s.History().LogPath(t.Slug), Cradle: cradle, Cron: expr, Timezone: t.Timezone,
	}, nil
}

func withHint(err error) error {
	var refusal *cron.Error
	if !errors.As(err, &refusal) || refusal.Hint == "" {
		return err
	}
	return usererr.New("%w", err).Hint("%s", refusal.Hint)
}

// orphans finds timers of this folder whose task is not among tasks: the file is gone or can't be used any more.
func (s *Service) orphans(tasks []task.Task) ([]string, error) {
	entries, err := os.ReadDir(s.Backend.Dir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var slugs []string
	for _, e := range entries {
		slug, ok := s.Backend.SlugOf(s.State.ID, e.Name())
		if !ok || slices.ContainsFunc(tasks, func(t task.Task) bool { return t.Slug == slug }) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(s.Backend.Dir(), e.Name()))
		if err == nil && s.Backend.Starts(string(content), s.Folder, slug) {
			slugs = append(slugs, slug)
		}
	}
	localesort.Strings(slugs)
	return slugs, nil
}

// present says whether any file of the timer exists.
func (s *Service) present(slug string) bool {
	return slices.ContainsFunc(s.Backend.Paths(s.State.ID, slug), func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil
	})
}
