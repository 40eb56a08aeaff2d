package schedule

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pi-cradle/cradle/schedule/task"
	"pi-cradle/cradle/schedule/timer"
	"pi-cradle/internal/durable"
	"pi-cradle/internal/run"
	"pi-cradle/internal/usererr"
)

// Change is what installing or removing one timer does, in this order when installing and the steps first when removing.
type Change struct {
	Slug  string
	Files []timer.File // without content when removing
	Steps []timer.Step
}

// PlanInstall composes the timers of the selected tasks, all before any is touched: one that can't be composed fails the whole.
func (s *Service) PlanInstall(slug, cradle string) ([]Change, error) {
	tasks, err := s.Tasks()
	if err != nil {
		return nil, err
	}
	if tasks, err = Select(tasks, slug); err != nil {
		return nil, err
	}
	changes := make([]Change, 0, len(tasks))
	for _, t := range tasks {
		job, err := s.job(t, cradle)
		var files []timer.File
		if err == nil {
			files, err = s.Backend.Files(job)
		}
		if err != nil {
			var refusal *usererr.Error
			if !errors.As(err, &refusal) {
				refusal = usererr.New("%w", err)
			}
			return nil, refusal.Hint("the task is in %s", t.Path)
		}
		changes = append(changes, Change{t.Slug, files, s.Backend.Install(s.State.ID, t.Slug)})
	}
	return changes, nil
}

// PlanRemove finds the timers of the selected tasks by their names. The task files need not be usable, nor even be there.
func (s *Service) PlanRemove(slug string) ([]Change, error) {
	tasks, err := s.Tasks()
	var slugs []string
	switch {
	case slug == "":
		orphans, lookErr := s.orphans(tasks)
		if lookErr != nil {
			return nil, lookErr
		}
		if err != nil && len(orphans) == 0 {
			return nil, err
		}
		for _, t := range tasks {
			slugs = append(slugs, t.Slug)
		}
		slugs = append(slugs, orphans...)
	case task.ValidSlug(slug) && s.present(slug):
		slugs = []string{slug}
	case err != nil:
		return nil, err
	default:
		if _, err := Select(tasks, slug); err != nil {
			return nil, err
		}
		slugs = []string{slug}
	}
	changes := make([]Change, len(slugs))
	for i, slug := range slugs {
		changes[i] = Change{Slug: slug, Steps: s.Backend.Remove(s.State.ID, slug)}
		for _, path := range s.Backend.Paths(s.State.ID, slug) {
			changes[i].Files = append(changes[i].Files, timer.File{Path: path})
		}
	}
	return changes, nil
}

// Install carries out changes planned by PlanInstall, and remembers PATH for the runs.
func (s *Service) Install(ctx context.Context, changes []Change) error {
	if len(changes) == 0 {
		return nil
	}
	unlock, err := s.lockChanges(ctx, "cradle schedule install")
	if err != nil {
		return err
	}
	defer unlock()
	lingers := s.lingers(ctx)
	noted := s.readInstall()
	noted.Path, noted.StateRoot = s.Path, ""
	if s.State.Root != s.homeRoot() {
		noted.StateRoot = s.State.Root
	}
	for _, c := range changes {
		if !slices.Contains(noted.Pending, c.Slug) {
			noted.Pending = append(noted.Pending, c.Slug)
		}
	}
	if err := s.writeInstall(noted); err != nil {
		return usererr.New("can't note the installation: %w", err)
	}
	done, failure := s.each(changes, "install", func(c Change) error {
		if err := s.History().Make(); err != nil {
			return err
		}
		if err := os.MkdirAll(s.Backend.Dir(), 0o755); err != nil {
			return err
		}
		for _, f := range c.Files {
			if err := durable.WriteMode(f.Path, []byte(f.Content), 0o644); err != nil {
				return err
			}
		}
		return s.steps(ctx, c, "install")
	})
	noted.Pending = slices.DeleteFunc(noted.Pending, func(slug string) bool { return slices.Contains(done, slug) })
	if err := s.writeInstall(noted); failure == nil && err != nil {
		return usererr.New("the timers are installed, but that can't be noted: %w", err)
	}
	if failure == nil && !lingers {
		s.warn("systemd user timers stop firing once you log out unless lingering is enabled — run `loginctl enable-linger <user>` to keep them running")
	}
	return failure
}

// Remove carries out changes planned by PlanRemove.
func (s *Service) Remove(ctx context.Context, changes []Change) error {
	unlock, err := s.lockChanges(ctx, "cradle schedule remove")
	if err != nil {
		return err
	}
	defer unlock()
	done, failure := s.each(changes, "remove", func(c Change) error {
		if err := s.steps(ctx, c, "remove"); err != nil {
			return err
		}
		for _, f := range c.Files {
			if err := os.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	})
	noted := s.readInstall()
	if len(noted.Pending) > 0 {
		noted.Pending = slices.DeleteFunc(noted.Pending, func(slug string) bool { return slices.Contains(done, slug) })
		if err := s.writeInstall(noted); failure == nil && err != nil {
			return usererr.New("the timers are removed, but that can't be noted: %w", err)
		}
	}
	return failure
}

// each carries out one change after the other and stops at the first failure, which then says what was done and what was not.
func (s *Service) each(changes []Change, verb string, do func(Change) error) (done []string, failure error) {
	for i, c := range changes {
		err := do(c)
		if err == nil {
			done = append(done, c.Slug)
			continue
		}
		var said *usererr.Error
		if !errors.As(err, &said) {
			said = usererr.New(`Failed to %s schedule "%s": %w`, verb, c.Slug, err)
		}
		if len(done) > 0 {
			said.Hint("done before it: %s", some(done))
		}
		if rest := changes[i+1:]; len(rest) > 0 {
			slugs := make([]string, len(rest))
			for i, c := range rest {
				slugs[i] = c.Slug
			}
			said.Hint("not begun: %s", some(slugs))
		}
		said.Hint("what is left of it: %s", s.leftovers(c))
		return done, said.Hint("remove the cause and run the same command again; it may be repeated")
	}
	return done, nil
}

// some lists names, the first few of many.
func some(names []string) string {
	const few = 5
	if more := len(names) - few; more > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), more)
	}
	return strings.Join(names, ", ")
}

func (s *Service) leftovers(c Change) string {
	var there []string
	for _, f := range c.Files {
		if _, err := os.Lstat(f.Path); err == nil {
			there = append(there, f.Path)
		}
	}
	if len(there) == 0 {
		return "no file"
	}
	return strings.Join(there, ", ")
}

// stepLimit is far beyond what a service manager takes; one that hangs must not hang the caller.
const stepLimit = 60 * time.Second

func (s *Service) steps(ctx context.Context, c Change, verb string) error {
	for _, step := range c.Steps {
		res, err := runArgv(ctx, step.Argv)
		if err == nil || step.MayFail && ctx.Err() == nil {
			continue
		}
		return s.stepFailure(c, verb, step, res, err)
	}
	return nil
}

func runArgv(ctx context.Context, argv []string) (run.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	return run.Output(ctx, run.Cmd{Path: argv[0], Args: argv[1:]})
}

func (s *Service) stepFailure(c Change, verb string, step timer.Step, res run.Result, err error) error {
	why := strings.TrimSpace(string(res.Stderr))
	var exit *run.ExitError
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing:
		why = fmt.Sprintf("Executable not found in $PATH: %q", step.Argv[0])
	case !errors.As(err, &exit):
		why = err.Error()
	case why == "" && exit.Result.Signal != 0:
		why = "ended by " + exit.Result.Signal.String()
	case why == "":
		why = fmt.Sprintf("exit status %d", exit.Result.Code)
	}
	failure := usererr.New(`Failed to %s schedule "%s" (%s): %s`, verb, c.Slug, strings.Join(step.Argv, " "), why)
	if !missing && step.Argv[0] == "systemctl" && !s.hasUserManager() {
		failure.Hint("this session has no systemd user manager; log in as this user directly, not through su or sudo, or run `export XDG_RUNTIME_DIR=/run/user/%d` first", os.Getuid())
	}
	return failure
}

// hasUserManager looks where systemctl --user does.
func (s *Service) hasUserManager() bool {
	if s.RuntimeDir == "" {
		return false
	}
	for _, socket := range []string{"systemd/private", "bus"} {
		if _, err := os.Stat(filepath.Join(s.RuntimeDir, socket)); err == nil {
			return true
		}
	}
	return false
}

// lingers says whether timers go on firing without a login.
func (s *Service) lingers(ctx context.Context) bool {
	probe := s.Backend.LingerProbe(accountName())
	if probe == nil {
		return true
	}
	res, err := runArgv(ctx, probe)
	return err == nil && strings.Contains(string(res.Stdout), "Linger=yes")
}

// accountName is the real name behind the user id; $USER may say anything.
func accountName() string {
	if account, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		return account.Username
	}
	return strconv.Itoa(os.Getuid()) // loginctl takes it too
}
