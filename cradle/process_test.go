package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pi-cradle/cradle/state"
	"pi-cradle/internal/testenv"
)

// systemPath is PATH before testscript puts the fakes in front of it.
var systemPath = os.Getenv("PATH")

// world is a home with an agent in it and fakes on PATH.
type world struct {
	t                *testing.T
	root, agent, bin string
	env              []string
}

func newWorld(t *testing.T, files map[string]string, programs ...string) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return newWorldIn(t, root, files, programs...)
}

func newWorldIn(t *testing.T, root string, files map[string]string, programs ...string) *world {
	t.Helper()
	w := &world{t: t, root: root, agent: filepath.Join(root, "agent"), bin: filepath.Join(root, "bin")}
	w.write("agent/SYSTEM.md", "x")
	for _, dir := range []string{"bin", "home", "work"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		w.write(name, text)
	}
	if err := link(w.bin, append(programs, "cradle")...); err != nil {
		t.Fatal(err)
	}
	w.env = []string{"HOME=" + root + "/home", "PATH=" + w.bin + ":" + systemPath, state.RootEnv + "=" + root + "/state", logEnv + "=" + root + "/log", "GORACE=" + os.Getenv("GORACE")}
	return w
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) cradle(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(w.bin, "cradle"), args...)
	cmd.Env, cmd.Dir = w.env, filepath.Join(w.root, "work")
	return cmd
}

func (w *world) logged(prefix string) (n int) {
	data, _ := os.ReadFile(filepath.Join(w.root, "log"))
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return -1
}

func TestSignalsAreThePis(t *testing.T) {
	w := newWorld(t, nil, "pi")
	w.env = append(w.env, "FAKE_PI_AWAIT=4")
	cmd := w.cradle("run", w.agent, "--no-sandbox")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("got %q, want %q", lines.Text(), want)
		}
	}
	next("ready")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		next(sig.String())
	}
	if code := exitCode(t, cmd.Wait()); code != 42 {
		t.Errorf("exit code %d: cradle must wait for pi and take its code", code)
	}
}

// Started by nohup or the like, cradle leaves ignored signals alone.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	w := newWorld(t, nil, "pi")
	w.env = append(w.env, "FAKE_PI_AWAIT=1")
	cradle := w.cradle("run", w.agent, "--no-sandbox")
	cmd := exec.Command("/bin/sh", append([]string{"-c", `trap "" HUP; exec "$@"`, "sh"}, cradle.Args...)...)
	cmd.Env, cmd.Dir = cradle.Env, cradle.Dir
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	lines.Scan() // ready
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	if lines.Scan(); lines.Text() != syscall.SIGTERM.String() {
		t.Errorf("pi got %q", lines.Text())
	}
	if code := exitCode(t, cmd.Wait()); code != 42 {
		t.Errorf("exit code %d", code)
	}
}

// During an installation there is no pi to ask, so cradle stops the installer, leaves nothing that a later run would trust, and
// says by its exit code what ended it.
func TestSignalDuringTheInstallation(t *testing.T) {
	w := newWorld(t, map[string]string{"agent/settings.json": `{"packages":["npm:a"]}`}, "pi", "npm")
	pipe := filepath.Join(w.root, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	env := w.env
	w.env = append(w.env[:len(w.env):len(w.env)], "FAKE_NPM_HOLD="+pipe)
	cmd := w.cradle("run", w.agent, "--no-sandbox")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testenv.Await(t, "npm", func() bool { return w.logged("npm ") == 1 })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != 143 {
		t.Errorf("exit code %d, output %q", code, &out)
	}
	if w.logged("pi") != 0 {
		t.Error("pi was started")
	}
	if err := syscall.Unlink(pipe); err != nil {
		t.Fatal(err)
	}
	w.env = env
	if text, err := w.cradle("run", w.agent, "--no-sandbox").Output(); err != nil || !strings.Contains(string(text), "added 1\n") {
		t.Errorf("the next run: %v, %s", err, text)
	}
}

// Killed without notice, the same holds.
func TestKilledDuringTheInstallation(t *testing.T) {
	w := newWorld(t, map[string]string{"agent/settings.json": `{"packages":["npm:a"]}`, "state/keep": ""}, "pi", "npm")
	pipe := filepath.Join(w.root, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	env := w.env
	w.env = append(w.env[:len(w.env):len(w.env)], "FAKE_NPM_HOLD="+pipe)
	cmd := w.cradle("run", w.agent, "--no-sandbox")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testenv.Await(t, "npm", func() bool { return w.logged("npm ") == 1 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if _, err := os.ReadFile(pipe); err != nil { // npm, an orphan now, goes on and makes node_modules
		t.Fatal(err)
	}
	dir := w.state().NPM()
	testenv.Await(t, "node_modules", func() bool { _, err := os.Stat(dir + "/node_modules/a/package.json"); return err == nil })
	w.env = env
	if text, err := w.cradle("run", w.agent, "--no-sandbox").Output(); err != nil || !strings.Contains(string(text), "added 1\n") {
		t.Errorf("the next run must not trust what is there: %v, %s", err, text)
	}
}

func TestRunsAtTheSameMoment(t *testing.T) {
	w := newWorld(t, map[string]string{
		"agent/settings.json":     `{"packages":["npm:a","npm:b"]}`,
		"agent/models.json":       `{"providers":{"local":{"baseUrl":"http://localhost:1"}}}`,
		"agent/sandbox/nono.json": `{}`,
	}, "pi", "npm", "nono")
	const runs = 8
	var wg sync.WaitGroup
	failures := make([]error, runs)
	for i := range runs {
		wg.Go(func() {
			out, err := w.cradle("run", w.agent).CombinedOutput()
			if err != nil || strings.Count(string(out), "node_modules/") != 2 {
				failures[i] = fmt.Errorf("run %d: %w\n%s", i, err, out)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Error(err)
	}
	if n := w.logged("npm "); n != 1 {
		t.Errorf("npm ran %d times", n)
	}
	if n := w.logged("pi "); n != runs {
		t.Errorf("pi ran %d times", n)
	}
	var litter []string
	err := filepath.WalkDir(filepath.Join(w.root, "state"), func(path string, _ os.DirEntry, err error) error {
		if strings.Contains(path, ".tmp-") || strings.Contains(path, "unfinished") {
			litter = append(litter, path)
		}
		return err
	})
	if err != nil || litter != nil {
		t.Errorf("left behind: %q, %v", litter, err)
	}
}

// A run that needs less takes nothing from another that is going on, and the next one on its own tidies up.
func TestRunsOfDifferentKinds(t *testing.T) {
	w := newWorld(t, map[string]string{"agent/sandbox/nono.json": `{}`}, "pi", "nono")
	quick := w.env
	w.env = append(w.env[:len(w.env):len(w.env)], "FAKE_PI_AWAIT=1")
	cmd := w.cradle("run", w.agent)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && lines.Text() != "ready" {
	}
	w.env = quick
	bare := func() (generated bool) {
		t.Helper()
		if out, err := w.cradle("run", w.agent, "--no-sandbox").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		_, err := os.Stat(filepath.Join(w.state().Extensions(), "agent-browser-nono-fallback.ts"))
		return err == nil
	}
	if !bare() {
		t.Error("a run took away what another one loads")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != 42 {
		t.Errorf("exit code %d", code)
	}
	if bare() {
		t.Error("what nobody needs any more is still there")
	}
}

func TestWhatCannotStartIsExplained(t *testing.T) {
	w := newWorld(t, map[string]string{"bin/pi": "#!/no/such/interpreter\n"})
	if err := os.Chmod(filepath.Join(w.bin, "pi"), 0o755); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := w.cradle("run", w.agent, "--no-sandbox")
	cmd.Stderr = &stderr
	if code := exitCode(t, cmd.Run()); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if text := stderr.String(); !strings.HasPrefix(text, `can't start "`+w.bin+`/pi": `) || !strings.Contains(text, "\nhint: ") {
		t.Errorf("stderr %q", text)
	}
}
