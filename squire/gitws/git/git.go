// Package git asks git about checkouts. Each question is one process with a limit on its time and on its output, killed with its
// whole group at either. Questions read only: no optional locks are taken, no hook, pager, prompt or network is used, and nothing
// of the caller's GIT_* environment reaches them.
package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pi-cradle/internal/run"
	"pi-cradle/squire/gitws"
)

// Git is how to run git. The zero value is the ordinary way.
type Git struct {
	Bin string   // the program; "" is git on PATH
	Env []string // what the environment is made from; nil is this process's own

	limits limits // zero fields mean the defaults; only tests set them
}

type limits struct {
	question time.Duration // of one question at launch
	command  time.Duration // of one question of a snapshot
	snapshot time.Duration // of a whole snapshot
	output   int           // bytes of a whole snapshot, and of any other question
}

var defaults = limits{question: 5 * time.Second, command: 2 * time.Second, snapshot: 5 * time.Second, output: 4 << 20}

func (g Git) limit() limits {
	l := g.limits
	if l.question == 0 {
		l.question = defaults.question
	}
	if l.command == 0 {
		l.command = defaults.command
	}
	if l.snapshot == 0 {
		l.snapshot = defaults.snapshot
	}
	if l.output == 0 {
		l.output = defaults.output
	}
	return l
}

// environ is Env without GIT_*, and with dir as its working directory.
func (g Git) environ(dir string, set ...string) []string {
	from := g.Env
	if from == nil {
		from = os.Environ()
	}
	env := make([]string, 0, len(from)+len(set)+1)
	for _, entry := range from {
		if !strings.HasPrefix(entry, "GIT_") && !strings.HasPrefix(entry, "PWD=") {
			env = append(env, entry)
		}
	}
	return append(append(env, "PWD="+dir), set...)
}

func (g Git) bin() string {
	if g.Bin == "" {
		return "git"
	}
	return g.Bin
}

// Asker puts questions to git in one directory. It is for one goroutine; Close is not needed.
type Asker struct {
	git  Git
	dir  string
	each time.Duration
	left int // bytes of output that remain; all questions share them
}

// In gives an Asker with the limits of a launch: 5 seconds for each question, and 4 MiB of output for all of them.
func (g Git) In(dir string) *Asker {
	return &Asker{git: g, dir: dir, each: g.limit().question, left: g.limit().output}
}

// Patient gives an Asker with limits of the caller's choice.
func (g Git) Patient(dir string, each time.Duration, output int) *Asker {
	return &Asker{git: g, dir: dir, each: each, left: output}
}

// Ask gives what git prints to stdout. Errors are those of run.Output: fs.ErrNotExist without git, context.DeadlineExceeded,
// run.ErrOutputLimit, *run.ExitError; stdout is what there was of it.
func (a *Asker) Ask(ctx context.Context, args ...string) ([]byte, error) {
	return a.AskWith(ctx, nil, args...)
}

// AskWith is Ask for a question that reads its standard input.
func (a *Asker) AskWith(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	if a.left <= 0 {
		return nil, run.ErrOutputLimit
	}
	ctx, cancel := context.WithTimeout(ctx, a.each)
	defer cancel()
	// A configured fsmonitor is a program of the repository's choice, and nobody has decided to trust it yet. A configured order
	// of paths fails when its file is missing.
	fixed := []string{"--no-pager", "-c", "core.fsmonitor=false", "-c", "diff.orderFile=/dev/null"}
	res, err := run.Output(ctx, run.Cmd{
		Path: a.git.bin(), Args: append(fixed, args...), Dir: a.dir, Stdin: stdin, Limit: a.left,
		Env: a.git.environ(a.dir, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "GIT_PAGER=cat",
			// A partial clone would fetch what it lacks in the middle of a question.
			"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none"),
	})
	a.left -= len(res.Stdout) + len(res.Stderr)
	return res.Stdout, err
}

// Is asks a question that git answers by its exit code: 0 is yes, 1 is no, anything else an error.
func (a *Asker) Is(ctx context.Context, args ...string) (bool, error) {
	_, err := a.Ask(ctx, args...)
	if No(err) {
		return false, nil
	}
	return err == nil, err
}

// Line is Ask for an answer of one line, of which the line break is taken off.
func (a *Asker) Line(ctx context.Context, args ...string) (string, error) {
	out, err := a.Ask(ctx, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// Command is a git that changes something: the caller's environment without GIT_*, git's own language, hooks as configured.
// Both streams are in the result; limit is of time.
func (g Git) Command(ctx context.Context, dir string, limit time.Duration, args ...string) (run.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return run.Output(ctx, run.Cmd{
		Path: g.bin(), Args: append([]string{"--no-pager"}, args...), Dir: dir, Limit: g.limit().output,
		Env: g.environ(dir, "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "GIT_PAGER=cat", "GIT_EDITOR=true"),
	})
}

// Environ is the environment for a program that works in dir on behalf of the caller, with set on top.
func (g Git) Environ(dir string, set ...string) []string { return g.environ(dir, set...) }

func exitCode(err error) (code int, exited bool) {
	var exit *run.ExitError
	if !errors.As(err, &exit) || exit.Result.Signal != 0 {
		return 0, false
	}
	return exit.Result.Code, true
}

// Reason puts into a few words why git could not be asked.
func (a *Asker) Reason(err error) string {
	var exit *run.ExitError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("git did not answer within %v", a.each)
	case errors.Is(err, context.Canceled):
		return "the look at it was called off"
	case errors.Is(err, run.ErrOutputLimit):
		return "git's output is larger than the limit"
	case errors.Is(err, fs.ErrNotExist):
		return "git was not found"
	case errors.As(err, &exit):
		line, _, _ := strings.Cut(strings.TrimSpace(string(exit.Result.Stderr)), "\n")
		if line == "" {
			return fmt.Sprintf("git %s failed", verb(exit.Args))
		}
		return gitws.Inline(line)
	}
	return gitws.Inline(err.Error())
}

// verb is git's subcommand.
func verb(args []string) string {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-c":
			i++
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		}
	}
	return "command"
}

// Canonical is path with its symlinks resolved, as far as it exists, so that all spellings of one place are the same.
func Canonical(path string) string {
	path = filepath.Clean(path)
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// No says whether err is an exit code of 1, by which many of git's commands say no, or nothing found.
func No(err error) bool {
	code, exited := exitCode(err)
	return exited && code == 1
}
