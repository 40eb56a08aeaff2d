package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"pi-cradle/cradle/alias"
	"pi-cradle/cradle/compose"
	"pi-cradle/cradle/doctor"
	"pi-cradle/cradle/folder"
	"pi-cradle/cradle/pkgs"
	"pi-cradle/cradle/pkgs/install"
	"pi-cradle/cradle/sbx"
	"pi-cradle/cradle/state"
	"pi-cradle/internal/lockfile"
	"pi-cradle/internal/run"
	"pi-cradle/internal/usererr"
)

// launch is one run of an agent, asked for on the command line or by a timer.
type launch struct {
	agent     alias.Resolved
	warnings  []string // so far: of resolving the reference and of loading the schedule
	flags     compose.Flags
	forwarded []string           // what stood after "--"
	scheduled *compose.Scheduled // nil for a run by hand
}

// plan composes the run and prints the warnings, also beside an error. A preview looks for no programs.
func (a *app) plan(l launch, preview bool) (*compose.Plan, error) {
	agent, err := folder.Load(l.agent.Dir)
	if err != nil {
		a.warnAll(l.warnings)
		if agent != nil {
			a.warnAll(agent.Warnings)
		}
		return nil, err
	}
	in := compose.Input{
		Folder:           agent,
		State:            state.ForFolder(l.agent.Dir, a.home, os.Getenv(state.RootEnv)),
		Warnings:         l.warnings,
		Home:             a.home,
		CWD:              a.cwd,
		Alias:            l.agent.Name,
		AliasCWD:         l.agent.CWD,
		Flags:            l.flags,
		Passthrough:      l.forwarded,
		Scheduled:        l.scheduled,
		StdoutIsTerminal: a.stdoutTTY && l.scheduled == nil, // a task never has a terminal to type at
	}
	if !preview {
		in.Lookup = a.search().Require
	}
	plan, err := compose.Run(in)
	a.warnAll(plan.Warnings)
	return plan, err
}

// carryOut does what the plan says and returns pi's exit code, 128+n when signal n killed it.
func (a *app) carryOut(ctx context.Context, plan *compose.Plan) (int, error) {
	extensions, leave, err := a.materialise(ctx, plan)
	if err != nil {
		return 0, err
	}
	defer leave()
	if banner := plan.Banner(); banner != "" {
		fmt.Fprintln(a.stdout, banner)
	}
	argv := compose.Argv(plan.Command(extensions))
	// The environment is given even when nothing is added to it: an inherited one would get a PWD of its own.
	env := os.Environ()
	for _, e := range plan.Env {
		env = append(env, e.Name+"="+e.Value)
	}
	child, err := a.signals.handOver(ctx, func() (*run.Foreground, error) {
		cmd := run.Cmd{Path: argv[0], Args: argv[1:], Dir: plan.CWD, Env: env}
		if plan.Stdin != nil {
			cmd.Stdin = strings.NewReader(*plan.Stdin)
		}
		return run.StartForeground(cmd)
	})
	if err != nil {
		return 0, spawnFailure(argv[0], plan.CWD, err)
	}
	code, sig, err := child.Wait()
	if err != nil {
		return 0, err
	}
	if sig != 0 {
		return 128 + int(sig), nil
	}
	if code == notStarted && plan.Backend == compose.Nono && !plan.Verbose {
		a.warnHidden()
	}
	return code, nil
}

// notStarted is the exit code of nono, as of a shell, for a program that it could not start.
const notStarted = 127

// warnHidden says what nono, told to be silent, does not: that the sandbox probably hides pi from itself.
func (a *app) warnHidden() {
	pi, _ := a.search().Find("pi")
	a.warn(fmt.Sprintf("nothing could be started inside the sandbox: if %q can't be read there, grant its folder under filesystem.read in sandbox/nono.json; --verbose shows what nono says", pi))
}

func spawnFailure(program, dir string, err error) error {
	var interrupted *signalError
	if errors.As(err, &interrupted) {
		return err
	}
	if info, statErr := os.Stat(dir); statErr != nil || !info.IsDir() {
		return usererr.New("can't start %q: there is no directory %q to run in", program, dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return usererr.New("can't start %q: %w", program, err).Hint("if the file is there, the interpreter its first line names is not")
	}
	return usererr.New("can't start %q: %w", program, err)
}

// stateLockLimit is how long a run waits for another one of the same agent to finish its setup, an npm install included.
const stateLockLimit = 15 * time.Minute

// materialise makes on disk, and in the sbx sandbox, what the command line needs to be there. It returns the extension files
// of the installed packages, and what to call when the run has ended. Of two runs of one agent only one is in here at a time.
func (a *app) materialise(ctx context.Context, plan *compose.Plan) (extensions []string, leave func(), err error) {
	unlock, err := a.lockState(ctx, plan.State)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	leave, alone, err := plan.State.Use()
	if err != nil {
		return nil, nil, err
	}
	if extensions, err = a.setUp(ctx, plan, alone); err != nil {
		leave()
		return nil, nil, err
	}
	return extensions, leave, nil
}

func (a *app) setUp(ctx context.Context, plan *compose.Plan, alone bool) (extensions []string, err error) {
	if err := plan.State.WriteExtensions(plan.GeneratedFiles(), alone); err != nil {
		return nil, err
	}
	if err := plan.State.MakeSessions(); err != nil {
		return nil, err
	}
	if plan.Profile != nil {
		if err := plan.State.WriteProfile(plan.Profile.Content); err != nil {
			return nil, err
		}
	}
	if plan.Backend == compose.Sbx {
		if err := a.prepareSbx(ctx, plan); err != nil {
			return nil, err
		}
	}
	if plan.Packages == nil {
		return nil, nil
	}
	project := pkgs.Project{Dir: plan.Packages.Dir, Install: plan.Packages.Command(), Packages: plan.Packages.Specs}
	if err := install.Run(ctx, project, install.Options{Find: a.search().Require, Progress: a.progress}); err != nil {
		return nil, err
	}
	extensions, warnings := project.Extensions()
	a.warnAll(warnings)
	return extensions, nil
}

func (a *app) lockState(ctx context.Context, dir state.Dir) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, stateLockLimit)
	defer cancel()
	notice := time.AfterFunc(time.Second/2, func() { a.progress("waiting for another run of this agent to finish its setup") })
	defer notice.Stop()
	unlock, err = dir.Lock(ctx)
	var held *lockfile.HeldError
	if errors.As(err, &held) {
		return nil, usererr.New("another run of this agent does not finish its setup: %w", err).Hint("see what it waits for, or end it, and try again")
	}
	return unlock, err
}

// prepareSbx carries out the steps that make the sandbox, its policy and the pi inside.
func (a *app) prepareSbx(ctx context.Context, plan *compose.Plan) error {
	hostVersion := ""
	if pi, ok := a.search().Find("pi"); ok {
		hostVersion = doctor.PiVersion(ctx, pi)
	}
	steps, warning := plan.Steps(hostVersion)
	if warning != "" {
		a.warn(warning)
	}
	a.progress("preparing the sandbox %s", plan.Name)
	for _, step := range steps {
		if err := runStep(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// stepOutputLimit leaves room for what an npm install in the guest may print.
const stepOutputLimit = 16 << 20

func runStep(ctx context.Context, step sbx.Step) error {
	res, err := run.Output(ctx, run.Cmd{Path: step.Argv[0], Args: step.Argv[1:], Limit: stepOutputLimit})
	var exit *run.ExitError
	if errors.As(err, &exit) {
		return step.Failure(string(res.Stderr))
	}
	return err
}
