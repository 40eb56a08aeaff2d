package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"pi-cradle/cradle/alias"
	"pi-cradle/cradle/compose"
	"pi-cradle/cradle/schedule"
	"pi-cradle/cradle/schedule/history"
	"pi-cradle/cradle/schedule/task"
	"pi-cradle/cradle/schedule/view"
	"pi-cradle/cradle/state"
	"pi-cradle/internal/printable"
	"pi-cradle/internal/usererr"
)

func newScheduleCommand() *command {
	opts := new(scheduleOptions)
	c := &command{
		name:    "schedule",
		summary: "run an agent's tasks on time",
		about: "Work with the tasks in the agent's schedule/ folder.\n\n" +
			"  list     tasks, when they fire next, their timers and last runs\n" +
			"  install  make and start the timers of all tasks, or of one\n" +
			"  run      run one task now, as its timer would\n" +
			"  remove   stop and delete the timers, also of tasks whose file is gone\n" +
			"  log      past runs and the end of their output",
		positionals: []positional{
			{name: "action", about: "what to do", required: true, choices: []string{"list", "install", "remove", "run", "log"}},
			{name: "dir", about: "an agent's folder, or a name in ~/.cradle/settings.json (default \".\")"},
			{name: "task", about: "the task: its file's name without .md (default all; run needs one)"},
		},
		flags: newFlagSet("schedule"),
	}
	opts.addFlags(c.flags)
	c.run = func(ctx context.Context, a *app, args, forwarded []string) (int, error) {
		return runSchedule(ctx, a, opts, args, forwarded)
	}
	return c
}

type scheduleOptions struct{ dryRun, json bool }

func (o *scheduleOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.dryRun, "dry-run", false, "with install, remove or run: only print what would be done")
	fs.BoolVar(&o.json, "json", false, "with list: print the tasks as JSON")
}

// scheduling is one use of the command.
type scheduling struct {
	*app
	*schedule.Service
	agent alias.Resolved
	slug  string // "" when no task was named
	opts  *scheduleOptions
}

func runSchedule(ctx context.Context, a *app, opts *scheduleOptions, args, forwarded []string) (int, error) {
	action, ref, slug := args[0], ".", ""
	if len(args) > 1 {
		ref = args[1]
	}
	if len(args) > 2 {
		slug = args[2]
	}
	if opts.json && action != "list" {
		return 0, usererr.New("--json goes with list").Hint("leave it out")
	}
	backend, err := schedule.BackendFor(a.platform, a.home, os.Getuid())
	if err != nil {
		return 0, err
	}
	if err := a.locate(); err != nil {
		return 0, err
	}
	agent, err := alias.Resolve(ref, a.cwd, a.home)
	if err != nil {
		a.warnAll(agent.Warnings)
		return 0, err
	}
	dir := state.ForFolder(agent.Dir, a.home, os.Getenv(state.RootEnv))
	if !filepath.IsAbs(dir.Root) { // a timer starts elsewhere
		dir.Root = filepath.Join(a.cwd, dir.Root)
	}
	s := &scheduling{app: a, agent: agent, slug: slug, opts: opts, Service: &schedule.Service{
		Folder: agent.Dir, Home: a.home, State: dir, Backend: backend, Now: time.Now,
		Find: func(program string) (string, bool) { return a.search().Find(program) }, // in the PATH of the moment
		Path: os.Getenv("PATH"), RuntimeDir: os.Getenv("XDG_RUNTIME_DIR"), Warnings: agent.Warnings,
	}}
	if len(forwarded) > 0 {
		s.Warnings = append(s.Warnings, "what stands after -- has no effect on schedules")
	}
	if action == "run" { // the run prints the warnings among its own
		if err := s.adoptEnvironment(); err != nil {
			return 0, err
		}
		return s.run(ctx)
	}
	do := map[string]func(context.Context) error{"list": s.list, "install": s.install, "remove": s.remove, "log": s.log}[action]
	err = do(ctx)
	a.warnAll(s.Warnings)
	return 0, err
}

// adoptEnvironment gives a timer's process what its timer couldn't, before programs are looked up and pi is started.
func (s *scheduling) adoptEnvironment() error {
	for name, value := range s.Environment() {
		if name == state.RootEnv {
			if os.Getenv(name) != "" {
				continue
			}
			s.State.Root = value
		}
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

func (s *scheduling) list(context.Context) error {
	rows, err := s.List()
	if err != nil {
		return err
	}
	if s.opts.json {
		return s.printJSON(rows)
	}
	_, err = fmt.Fprint(s.stdout, view.List(rows, time.Local, s.stdoutWidth))
	return err
}

func (s *scheduling) install(ctx context.Context) error {
	cradle := "cradle"
	if !s.opts.dryRun {
		var err error
		if cradle, err = s.search().Require("cradle"); err != nil {
			return err
		}
	}
	changes, err := s.PlanInstall(s.slug, cradle)
	if err != nil {
		return err
	}
	if !s.opts.dryRun {
		return s.Install(ctx, changes)
	}
	for _, c := range changes {
		for _, f := range c.Files {
			fmt.Fprintln(s.stdout, "write: "+f.Path)
		}
		for _, step := range c.Steps {
			fmt.Fprintln(s.stdout, "install: "+compose.Quote(step.Argv))
		}
	}
	return nil
}

func (s *scheduling) remove(ctx context.Context) error {
	changes, err := s.PlanRemove(s.slug)
	if err != nil {
		return err
	}
	if !s.opts.dryRun {
		return s.Remove(ctx, changes)
	}
	for _, c := range changes {
		for _, step := range c.Steps {
			fmt.Fprintln(s.stdout, "remove: "+compose.Quote(step.Argv))
		}
		for _, f := range c.Files {
			fmt.Fprintln(s.stdout, "delete: "+f.Path)
		}
	}
	return nil
}

// How much `schedule log` shows of each task: all of a single one would scroll the interesting end away.
const (
	logRuns  = 10
	logLines = 20
)

func (s *scheduling) log(context.Context) error {
	tasks, err := s.Tasks()
	logged, historyErr := s.Logged(tasks)
	if historyErr != nil {
		return historyErr
	}
	if err != nil && len(logged) == 0 {
		return err
	}
	slugs := logged
	if s.slug != "" {
		slugs = nil
		for _, slug := range logged {
			if slug == s.slug {
				slugs = []string{slug}
			}
		}
		if slugs == nil {
			_, err := schedule.Select(tasks, s.slug)
			return err
		}
	}
	logs := make([]view.Log, len(slugs))
	for i, slug := range slugs {
		if logs[i], err = s.LogEntry(slug, logRuns, logLines); err != nil {
			return err
		}
	}
	_, err = fmt.Fprint(s.stdout, view.Logs(logs, time.Local, s.stdoutWidth))
	return err
}

func (s *scheduling) run(ctx context.Context) (int, error) {
	t, err := s.task()
	if err != nil {
		s.warnAll(s.Warnings)
		if s.slug != "" && !s.opts.dryRun {
			err = errors.Join(err, s.Refuse(s.slug, err))
		}
		return 0, err
	}
	l := launch{agent: s.agent, warnings: s.Warnings, scheduled: &compose.Scheduled{Slug: t.Slug, Name: t.Name, CWD: t.Cwd, Prompt: t.Prompt}}
	if s.opts.dryRun {
		plan, err := s.plan(l, true)
		if err != nil {
			return 0, err
		}
		return 0, s.preview(plan, new(runOptions))
	}
	watch, err := s.Begin(ctx, t)
	var overlap *schedule.OverlapError
	if errors.As(err, &overlap) {
		return s.skipped(l.warnings, err)
	}
	if err != nil {
		s.warnAll(l.warnings)
		return 0, usererr.New(`can't begin schedule "%s": %w`, t.Slug, err)
	}
	s.warnAll(s.Warnings[len(l.warnings):])
	code := 0
	plan, failure := s.plan(l, false)
	if failure == nil {
		code, failure = s.carryOut(ctx, plan)
	}
	var interrupted *signalError
	if errors.As(failure, &interrupted) {
		code = 128 + int(interrupted.signal)
	} else if failure != nil {
		code = usererr.ExitCode(failure)
	}
	record, err := watch.End(code, failure)
	if err != nil {
		s.warn(fmt.Sprintf("the run could not be recorded: %v", err))
	}
	s.notify(ctx, t, record)
	return code, failure
}

// task finds the task that was named.
func (s *scheduling) task() (task.Task, error) {
	if s.slug == "" {
		return task.Task{}, usererr.New("A task slug is required: cradle schedule run <dir> <task>")
	}
	tasks, err := s.Tasks()
	if err != nil {
		return task.Task{}, err
	}
	selected, err := schedule.Select(tasks, s.slug)
	if err != nil {
		return task.Task{}, err
	}
	return selected[0], nil
}

// exitBusy tells a person's script that nothing ran, in the number that sysexits has for "try again later".
const exitBusy = 75

// skipped is no failure of a timer: the task is being done.
func (s *scheduling) skipped(warnings []string, overlap error) (int, error) {
	s.warnAll(warnings)
	if s.ByTimer() {
		s.warn(overlap.Error())
		return 0, nil
	}
	return 0, usererr.New("%w", overlap).Hint("wait for it to end, or see `cradle schedule log`").Exit(exitBusy)
}

// notify runs the task's own command for failures. What it says belongs to the task's log, and its failure changes nothing.
func (s *scheduling) notify(ctx context.Context, t task.Task, record history.Record) {
	if record.Outcome != history.Failed || len(t.OnFailure) == 0 {
		return
	}
	// A run that was told to stop has failed too, and its context has ended.
	output, err := s.NotifyFailure(context.WithoutCancel(ctx), t, record, os.Environ())
	for line := range strings.Lines(output) {
		fmt.Fprintln(s.stderr, printable.Line(strings.TrimRight(line, "\n")))
	}
	if err != nil {
		s.warn(err.Error())
	}
}
