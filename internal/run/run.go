// Package run is the only user of os/exec. Every child gets a context, an output limit, its own process group when it runs
// unattended, and is dead when the call returns: nothing outlives its caller by accident. Arguments are never a shell string.
package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Cmd says what to run. The zero value of each optional field means the ordinary thing.
type Cmd struct {
	Path  string   // an absolute path, or a name looked up on PATH
	Args  []string // without the program's name
	Dir   string
	Env   []string      // the whole environment; nil inherits
	Stdin io.Reader     // nil is /dev/null
	Limit int           // bytes of stdout and stderr together; 0 means 1 MiB; past it the child is killed
	Tee   io.Writer     // gets both streams too, as they come; its errors count for nothing
	Wait  time.Duration // how long after the end to wait for pipes held open by grandchildren; 0 means 5 s
}

// Result is what a finished child left behind. Code is -1 when Signal is set.
type Result struct {
	Stdout, Stderr []byte
	Code           int
	Signal         syscall.Signal
}

// ExitError says that a child ran and did not exit 0.
type ExitError struct {
	Path   string
	Args   []string
	Result Result
}

func (e *ExitError) Error() string {
	what := fmt.Sprintf("exit status %d", e.Result.Code)
	if e.Result.Signal != 0 {
		what = "signal: " + e.Result.Signal.String()
	}
	if text := strings.TrimSpace(string(e.Result.Stderr)); text != "" {
		what += ": " + text
	}
	return fmt.Sprintf("%s %s: %s", e.Path, first(e.Args), what)
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// ErrOutputLimit says that a child wrote more than Cmd.Limit and was killed.
var ErrOutputLimit = errors.New("output limit exceeded")

const defaultLimit = 1 << 20

// Output runs c to its end. A child that can't start gives the cause (errors.Is fs.ErrNotExist for a missing program), one
// that is killed at the end of ctx gives ctx.Err(), one that exits otherwise than 0 gives an *ExitError; the Result is filled
// in all cases in which the child ran. A grandchild that goes on with the child's streams open is not waited for, beyond
// Cmd.Wait, and is no error.
func Output(ctx context.Context, c Cmd) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := c.Limit
	if limit == 0 {
		limit = defaultLimit
	}
	budget := &budget{left: limit, over: func() { cancel(ErrOutputLimit) }}
	var stdout, stderr bytes.Buffer
	cmd := command(ctx, c)
	cmd.Stdout = &limited{budget, &stdout, c.Tee}
	cmd.Stderr = &limited{budget, &stderr, c.Tee}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.WaitDelay = c.Wait
	if cmd.WaitDelay == 0 {
		// What the child wrote last may still be on its way: a machine that is busy enough takes long to read a pipe, and half an
		// answer must not be taken for a whole one.
		cmd.WaitDelay = 5 * time.Second
	}
	err := cmd.Run()
	res := Result{Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
	return finish(ctx, c, cmd, res, err)
}

// finish turns what cmd.Run returned into this package's results.
func finish(ctx context.Context, c Cmd, cmd *exec.Cmd, res Result, err error) (Result, error) {
	if cmd.ProcessState != nil {
		res.Code, res.Signal = status(cmd.ProcessState)
	}
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return res, fmt.Errorf("%s %s: %w", c.Path, first(c.Args), cause)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return res, nil // given only when the child itself exited 0
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return res, &ExitError{Path: c.Path, Args: c.Args, Result: res}
	}
	return res, notExist(err)
}

// notExist makes a name that is not on PATH look like a path that does not exist.
func notExist(err error) error {
	var e *exec.Error
	if errors.As(err, &e) && errors.Is(e.Err, exec.ErrNotFound) {
		return &fs.PathError{Op: "exec", Path: e.Name, Err: fs.ErrNotExist}
	}
	return err
}

func command(ctx context.Context, c Cmd) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Dir, cmd.Env, cmd.Stdin = c.Dir, c.Env, c.Stdin
	return cmd
}

func killGroup(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

func status(ps *os.ProcessState) (int, syscall.Signal) {
	if ws, ok := ps.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -1, ws.Signal()
	}
	return ps.ExitCode(), 0
}

// budget is shared by a child's two streams.
type budget struct {
	mu   sync.Mutex
	left int
	over func()
}

type limited struct {
	budget *budget
	to     *bytes.Buffer
	tee    io.Writer
}

func (l *limited) Write(p []byte) (int, error) {
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	if len(p) > l.budget.left {
		l.write(p[:l.budget.left])
		l.budget.left = 0
		l.budget.over()
		return 0, ErrOutputLimit
	}
	l.budget.left -= len(p)
	l.write(p)
	return len(p), nil
}

func (l *limited) write(p []byte) {
	l.to.Write(p)
	if l.tee != nil {
		_, _ = l.tee.Write(p)
	}
}

// Foreground is a child that has the caller's terminal: same process group, same stdin, stdout and stderr, so job control,
// resizing and raw mode are between it and the terminal.
type Foreground struct{ cmd *exec.Cmd }

// StartForeground starts c with the caller's own streams, except that a Stdin which is not nil takes the place of the caller's.
// Cmd.Limit and Wait play no part. The caller must Wait.
func StartForeground(c Cmd) (*Foreground, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.Env = c.Dir, c.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if c.Stdin != nil {
		cmd.Stdin = c.Stdin
	}
	if err := cmd.Start(); err != nil {
		return nil, notExist(err)
	}
	return &Foreground{cmd}, nil
}

// Signal passes sig on. A child that is already gone is no error.
func (f *Foreground) Signal(sig os.Signal) error {
	if err := f.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Wait waits for the end and tells it as an exit code, or as a signal with code -1.
func (f *Foreground) Wait() (code int, sig syscall.Signal, err error) {
	err = f.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return -1, 0, err
	}
	code, sig = status(f.cmd.ProcessState)
	return code, sig, nil
}

// LookPath finds an executable on PATH, as exec does.
func LookPath(name string) (string, error) { return exec.LookPath(name) }

// Attached runs c to its end with the caller's stdout and stderr and with nothing to read, in the caller's process group, so
// that a Ctrl-C at the terminal reaches it too. At the end of ctx it is asked to stop, and killed after Cmd.Wait. Errors are
// those of Output; the Result has no output.
func Attached(ctx context.Context, c Cmd) (Result, error) {
	cmd := command(ctx, c)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = c.Wait
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = 3 * time.Second
	}
	err := cmd.Run()
	return finish(ctx, c, cmd, Result{}, err)
}
