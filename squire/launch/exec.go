package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pi-cradle/internal/durable"
	"pi-cradle/internal/run"
)

// exitNoStart is the launcher's own exit code when pi could not be started, as a shell has it.
const exitNoStart = 127

// limits of the end. They are long for a pi that saves its session, and short for whoever waits for the record.
var (
	endLimit   = 5 * time.Second // from the first signal that ends pi to SIGKILL
	killLimit  = time.Second     // from SIGKILL to giving up the wait
	groupLimit = 3 * time.Second // from pi's end to the end of what it left in its process group, when the pane was closed
)

// Exec is the whole of `cradle-helper exec <spec>`: it starts what the spec at path says, with the pane's terminal and in its own
// process group, waits, records the end at ExitPath(path), and gives the exit code. The record is there before Exec returns, also
// when the pane is being closed.
func Exec(path string) int {
	spec, err := take(path)
	if err != nil {
		return refuse(path, spec, err)
	}
	// Caught before pi starts, so that no signal ends the launcher while pi lives. A terminal sends SIGINT and SIGQUIT to
	// pi itself as well, so those two are caught only to survive them.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGINT, syscall.SIGQUIT)
	hadTerminal := hasTerminal()
	child, err := start(spec)
	if err != nil {
		return refuse(path, spec, err)
	}
	exit := await(child, signals)
	exit.ID = spec.ID
	// A program that reads the terminal can notice its loss, and end, before our own signal is delivered.
	exit.Hangup = exit.Hangup || hadTerminal && !hasTerminal()
	for _, file := range spec.Remove {
		_ = os.Remove(file)
	}
	pane := paneOf(os.Getenv, spec.Tmux)
	if !exit.Hangup && (exit.Code != 0 || exit.Signal != "") {
		exit.Screen = pane.lastLines()
	}
	record(path, exit)
	if exit.Hangup {
		endGroup()
	} else {
		// A user's remain-on-exit would keep a dead pane where the window should close.
		pane.closeOnExit()
	}
	return exit.status()
}

// hasTerminal is false once the pane around us was closed.
func hasTerminal() bool {
	_, err := unix.IoctlGetWinsize(int(os.Stdin.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

func start(s Spec) (*run.Foreground, error) {
	// On our own, because the error of a failed start does not tell a missing directory from a missing program.
	if err := os.Chdir(s.Cwd); err != nil {
		return nil, fmt.Errorf("working directory %q can't be entered: %w", s.Cwd, cause(err))
	}
	if path, ok := s.Env["PATH"]; ok {
		if err := os.Setenv("PATH", path); err != nil { // for the lookup of a bare program name
			return nil, err
		}
	}
	child, err := run.StartForeground(run.Cmd{Path: s.Argv[0], Args: s.Argv[1:], Env: environment(s, os.Environ())})
	if err != nil {
		return nil, fmt.Errorf("program %q can't be started: %w", s.Argv[0], cause(err))
	}
	return child, nil
}

// cause strips the operation and the path from a file error: our own sentence has them.
func cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// await passes signals on until pi has ended.
func await(child *run.Foreground, signals <-chan os.Signal) Exit {
	done := make(chan Exit, 1)
	go func() { done <- outcome(child.Wait()) }()
	var hangup bool
	var kill, giveUp <-chan time.Time
	for {
		select {
		case exit := <-done:
			exit.Hangup = hangup
			return exit
		case sig := <-signals:
			if sig == syscall.SIGINT || sig == syscall.SIGQUIT {
				continue
			}
			_ = child.Signal(sig)
			hangup = hangup || sig == syscall.SIGHUP
			if kill == nil && (sig == syscall.SIGHUP || sig == syscall.SIGTERM) {
				kill = time.After(endLimit)
			}
		case <-kill:
			_ = child.Signal(syscall.SIGKILL)
			giveUp = time.After(killLimit)
		case <-giveUp:
			return Exit{Code: -1, Signal: "SIGKILL", Hangup: hangup}
		}
	}
}

func outcome(code int, sig syscall.Signal, err error) Exit {
	switch {
	case err != nil:
		return Exit{Code: -1, Error: fmt.Sprintf("waiting for pi failed: %v", err)}
	case sig != 0:
		return Exit{Code: -1, Signal: unix.SignalName(sig)}
	default:
		return Exit{Code: code}
	}
}

func (e Exit) status() int {
	if e.Signal != "" {
		return 128 + int(unix.SignalNum(e.Signal))
	}
	return e.Code
}

// refuse tells in the pane and in the record why nothing was started.
func refuse(path string, s Spec, err error) int {
	fmt.Fprintf(os.Stderr, "cradle-helper: %v\n", err)
	for _, file := range s.Remove {
		_ = os.Remove(file)
	}
	// A pane that its user respawns finds its spec used up. That must not replace the record of the first run.
	if _, statErr := os.Lstat(ExitPath(path)); errors.Is(err, fs.ErrNotExist) && statErr == nil {
		return exitNoStart
	}
	if ours(filepath.Dir(path)) {
		record(path, Exit{ID: s.ID, Code: -1, Error: err.Error()})
	}
	return exitNoStart
}

// ours says whether the folder is safe to write into, whatever the path on our command line.
func ours(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

func record(path string, e Exit) {
	e.Version, e.At = version, time.Now().UTC()
	if err := durable.PlaceJSON(ExitPath(path), e); err != nil {
		fmt.Fprintf(os.Stderr, "cradle-helper: the end of this session could not be recorded: %v\n", err)
	}
}

// endGroup ends what pi left running in its process group after the pane was closed, ourselves included: programs that ignore
// SIGHUP and SIGTERM would otherwise live on with no terminal. What put itself into a group or session of its own is left alone.
func endGroup() {
	if unix.Getpgrp() != os.Getpid() {
		return // not a pane's own process: the group is somebody else's
	}
	ctx, cancel := context.WithTimeout(context.Background(), groupLimit)
	defer cancel()
	signal.Ignore(syscall.SIGTERM)
	_ = syscall.Kill(0, syscall.SIGTERM)
	<-ctx.Done()
	_ = syscall.Kill(0, syscall.SIGKILL)
}
