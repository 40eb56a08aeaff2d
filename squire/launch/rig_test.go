package launch

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pi-cradle/squire/tmux/tmuxtest"
)

// The test binary is also the launcher, and the programs that it starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "exec" {
		endLimit, groupLimit = 300*time.Millisecond, 300*time.Millisecond
		os.Exit(Exec(os.Args[2]))
	}
	if len(os.Args) > 2 && os.Args[1] == "dump" {
		dump(os.Args[2], os.Args[3:])
	}
	os.Exit(m.Run())
}

type dumped struct {
	Args, Env []string
	Cwd       string
	PID       int
	Group     int
	Terminal  bool
}

func dump(path string, args []string) {
	cwd, _ := os.Getwd()
	info, _ := os.Stdin.Stat()
	data, err := json.Marshal(dumped{args, os.Environ(), cwd, os.Getpid(), syscall.Getpgrp(), info.Mode()&fs.ModeCharDevice != 0})
	if err == nil {
		err = os.WriteFile(path+".tmp", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

var noRaceWait = []string{"GORACE", "atexit_sleep_ms=0"}

// rig is a private tmux server and a folder for launch files.
type rig struct {
	*tmuxtest.Server
	t    *testing.T
	self string
	dir  string
}

func newRig(t *testing.T, conf string) rig {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x := tmuxtest.Start(t, "s", conf)
	dir := filepath.Join(x.Dir, "launch")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// Or each program that was built with -race waits a second before it ends.
	x.Run("set-environment", "-g", noRaceWait[0], noRaceWait[1])
	return rig{x, t, self, dir}
}

func (r rig) write(s Spec) (path string) {
	r.t.Helper()
	path = filepath.Join(r.dir, s.ID+".json")
	if err := WriteSpec(path, s); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// spec runs a shell script.
func (r rig) spec(script string) Spec {
	return Spec{ID: "d1", Argv: []string{"/bin/sh", "-c", script}, Env: map[string]string{"PATH": os.Getenv("PATH")}, Cwd: r.Dir}
}

func (r rig) open(path string) (pane string) {
	r.t.Helper()
	return r.Run("new-window", "-d", "-P", "-F", "#{pane_id}", "-n", "w", "-t", "=main:", "--", r.self, "exec", path)
}

// direct runs the launcher without a terminal.
func (r rig) direct(path string) (status int, stderr string) {
	r.t.Helper()
	cmd := exec.Command(r.self, "exec", path)
	var out strings.Builder
	cmd.Stderr = &out
	cmd.Env = append(os.Environ(), strings.Join(noRaceWait, "="))
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

func (r rig) exit(path string) Exit {
	r.t.Helper()
	var e Exit
	tmuxtest.Await(r.t, "the exit record", func() bool {
		var err error
		e, err = ReadExit(ExitPath(path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.t.Fatal(err)
		}
		return err == nil
	})
	return e
}

func (r rig) awaitFile(name string) string {
	r.t.Helper()
	var data []byte
	tmuxtest.Await(r.t, name, func() bool {
		var err error
		data, err = os.ReadFile(filepath.Join(r.Dir, name))
		return err == nil && len(data) > 0
	})
	return strings.TrimSpace(string(data))
}

func (r rig) awaitNoWindow() {
	r.t.Helper()
	tmuxtest.Await(r.t, "the window's end", func() bool { return r.Run("list-windows", "-a", "-F", "#{window_name}") == "user" })
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func running(pid int) bool {
	if err := syscall.Kill(pid, 0); err != nil {
		return false
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) && !onLinux()
	}
	defer f.Close()
	line, _ := bufio.NewReader(f).ReadString('\n')
	return !strings.Contains(line, ") Z")
}

func onLinux() bool { _, err := os.Stat("/proc/self/stat"); return err == nil }
