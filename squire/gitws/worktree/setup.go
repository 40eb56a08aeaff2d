package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pi-cradle/internal/durable"
	"pi-cradle/internal/run"
	"pi-cradle/squire/gitws/git"
)

// SetupLimit is how long a setup command may take, unless Setup says otherwise.
const SetupLimit = 10 * time.Minute

// setupOutput is how much it may print.
const setupOutput = 16 << 20

// Setup is the user's command that makes a new worktree ready, such as the installation of dependencies.
type Setup struct {
	Argv  []string
	Limit time.Duration // 0 means SetupLimit
	Log   string        // an absolute path; the file gets the output as it comes, and stays
}

// SetupError says that the setup command did not succeed. The worktree is as the command left it.
type SetupError struct {
	Argv  []string
	Cause error
	Tail  []string // the last lines of its output
	Log   string
}

func (e *SetupError) Error() string {
	return fmt.Sprintf("worktreeSetup %q failed: %v", strings.Join(e.Argv, " "), e.Cause)
}

func (e *SetupError) Unwrap() error { return e.Cause }

// Hints are for the user: the end of the output and where all of it is.
func (e *SetupError) Hints() []string {
	hints := append([]string{}, e.Tail...)
	return append(hints, "all of its output is in "+e.Log)
}

// Run runs the command in the worktree of a plan, without a shell and with nothing to read. It finds the worktree, its branch and
// the source checkout in SQUIRE_WORKTREE, SQUIRE_WORKTREE_BRANCH and SQUIRE_WORKTREE_SOURCE. At its limit, or at the end of ctx, it
// is killed with its process group; that, any exit but 0 and too much output give a *SetupError.
func (s Setup) Run(ctx context.Context, g git.Git, p Plan) error {
	limit := s.Limit
	if limit == 0 {
		limit = SetupLimit
	}
	if err := durable.MkdirAll(filepath.Dir(s.Log)); err != nil {
		return err
	}
	log, err := os.OpenFile(s.Log, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, durable.FileMode)
	if err != nil {
		return err
	}
	defer log.Close()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	res, err := run.Output(limited, run.Cmd{
		Path: s.Argv[0], Args: s.Argv[1:], Dir: p.Path, Limit: setupOutput, Tee: log,
		Env: g.Environ(p.Path, "SQUIRE_WORKTREE="+p.Path, "SQUIRE_WORKTREE_BRANCH="+p.Branch, "SQUIRE_WORKTREE_SOURCE="+p.Source.CheckoutRoot),
	})
	if err == nil {
		return nil
	}
	return &SetupError{Argv: s.Argv, Cause: cause(ctx, err, limit), Tail: tail(res), Log: s.Log}
}

// cause is shorter than the error of package run, which repeats the output.
func cause(ctx context.Context, err error, limit time.Duration) error {
	var exit *run.ExitError
	switch {
	case errors.As(err, &exit) && exit.Result.Signal != 0:
		return fmt.Errorf("it was ended by %v", exit.Result.Signal)
	case errors.As(err, &exit):
		return fmt.Errorf("exit status %d", exit.Result.Code)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return fmt.Errorf("it took longer than %v", limit)
	}
	return err
}

const tailLines = 10

// tail is the end of what a command printed: of stderr, or else of stdout.
func tail(res run.Result) []string {
	text := strings.TrimRight(string(res.Stderr), "\n")
	if text == "" {
		text = strings.TrimRight(string(res.Stdout), "\n")
	}
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-tailLines):]
}
