package schedule_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"pi-cradle/cradle/cli"
	"pi-cradle/cradle/state"
	"pi-cradle/internal/testenv"
)

var update = flag.Bool("update", false, "rewrite what the scripts compare with")

// TestMain lets the test binary play cradle and the programs it starts, each under its own name.
func TestMain(m *testing.M) {
	commands := map[string]func(){"cradle": func() { os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr)) }}
	for name, fake := range fakes {
		commands[name] = func() { os.Exit(play(name, fake)) }
	}
	// Built with the race detector, a process sleeps for a second before it ends; those played here are many.
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", quickEnd)
	}
	testscript.Main(m, commands)
}

const quickEnd = "atexit_sleep_ms=0"

// The fakes append their command lines to the file FAKE_LOG names. A call that begins with FAKE_FAIL prints FAKE_STDERR and
// fails.
var fakes = map[string]func(args []string) int{
	"systemctl": func([]string) int { fmt.Println("noise that nobody should see"); return 0 },
	"launchctl": func([]string) int { return 0 },
	"loginctl":  func([]string) int { fmt.Println("Linger=" + os.Getenv("FAKE_LINGER")); return 0 },
	"notify":    fakeNotify,
	"pi":        fakePi,
}

func play(name string, fake func([]string) int) int {
	line := strings.Join(append([]string{name}, os.Args[1:]...), " ")
	if path := os.Getenv("FAKE_LOG"); path != "" {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		if _, err := f.WriteString(line + "\n"); err != nil {
			panic(err)
		}
	}
	if fail := os.Getenv("FAKE_FAIL"); fail != "" && strings.HasPrefix(line, fail) {
		fmt.Fprintln(os.Stderr, os.Getenv("FAKE_STDERR"))
		return 1
	}
	return fake(os.Args[1:])
}

// fakePi says what it got, writes a session as pi does, and ends with FAKE_PI_EXIT. With FAKE_PI_HOLD it first makes that file
// and waits until it is gone.
func fakePi(args []string) int {
	for _, a := range args {
		fmt.Println("arg", a)
	}
	for i, a := range args {
		if a == "--session-dir" {
			cwd, _ := os.Getwd()
			path := filepath.Join(args[i+1], fmt.Sprintf("2026_%d.jsonl", os.Getpid()))
			if err := os.WriteFile(path, fmt.Appendf(nil, "{\"type\":\"session\",\"cwd\":%q}\n", cwd), 0o600); err != nil {
				panic(err)
			}
		}
	}
	if hold := os.Getenv("FAKE_PI_HOLD"); hold != "" {
		if err := os.WriteFile(hold, nil, 0o600); err != nil {
			panic(err)
		}
		for exists(hold) {
			time.Sleep(5 * time.Millisecond)
		}
	}
	code := 0
	_, _ = fmt.Sscan(os.Getenv("FAKE_PI_EXIT"), &code)
	return code
}

func fakeNotify(args []string) int {
	for _, a := range args {
		fmt.Println("notified", a)
	}
	for _, name := range []string{"TASK", "TASK_NAME", "OUTCOME", "EXIT_CODE", "REASON"} {
		fmt.Printf("%s=%s\n", name, os.Getenv("CRADLE_"+name))
	}
	return 0
}

// needLinux is for tests that go through the command line, which makes the timers of the machine it runs on.
func needLinux(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT CHECKED: the command line makes systemd timers on Linux only; service_test.go has what is said about launchd")
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Every script gets a home, a state root, a PATH with cradle and the fakes, and the agent folder from its archive.
func TestScripts(t *testing.T) {
	needLinux(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "../../testdata/script/schedule",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			work, err := filepath.EvalSymlinks(env.WorkDir)
			if err != nil {
				return err
			}
			home, bin := filepath.Join(work, "home"), filepath.Join(work, "bin")
			for name, value := range map[string]string{
				"WORK": work, "HOME": home, "PATH": bin + ":/usr/bin:/bin", state.RootEnv: filepath.Join(work, "state"),
				"FAKE_LOG": filepath.Join(work, "calls"), "FAKE_LINGER": "yes", "UNITS": filepath.Join(home, ".config/systemd/user"),
				"STATE":  state.ForFolder(filepath.Join(work, "agent"), home, filepath.Join(work, "state")).Path(),
				"GORACE": quickEnd,
				"ID":     state.ID(filepath.Join(work, "agent")), "TZ": "UTC", "XDG_RUNTIME_DIR": "",
			} {
				env.Setenv(name, value)
			}
			if err := os.MkdirAll(home, 0o700); err != nil {
				return err
			}
			return link(bin)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await": await, "tasks": makeTasks, "astimer": asTimer, "killrun": killRun,
			// calls wants the fakes to have been called as the file says since the last look, $USER standing for the account.
			"calls": func(ts *testscript.TestScript, _ bool, args []string) {
				got := ""
				if exists(ts.Getenv("FAKE_LOG")) {
					got = ts.ReadFile(ts.Getenv("FAKE_LOG"))
					ts.Check(os.Remove(ts.Getenv("FAKE_LOG")))
				}
				want := strings.ReplaceAll(ts.ReadFile(args[0]), "$ID", ts.Getenv("ID"))
				want = strings.ReplaceAll(want, "$USER", account(ts))
				if got != want {
					ts.Fatalf("called\n%swant\n%s", got, want)
				}
			},
		},
	})
}

func account(ts *testscript.TestScript) string {
	out, err := exec.Command("id", "-un").Output()
	ts.Check(err)
	return strings.TrimSpace(string(out))
}

func link(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name := range fakes {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return os.Symlink(self, filepath.Join(dir, "cradle"))
}

// await FILE waits until the file exists, ! await FILE until it does not.
func await(ts *testscript.TestScript, neg bool, args []string) {
	path := ts.MkAbs(args[0])
	deadline := time.Now().Add(testenv.Patience)
	for exists(path) == neg {
		if time.Now().After(deadline) {
			ts.Fatalf("waited for %s in vain", path)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// tasks DIR N makes N tasks in DIR.
func makeTasks(ts *testscript.TestScript, _ bool, args []string) {
	n := 0
	_, err := fmt.Sscan(args[1], &n)
	ts.Check(err)
	for i := range n {
		text := fmt.Sprintf("---\ncron: %d %d * * *\ncwd: /tmp\n---\nTask %d.\n", i%60, i%24, i)
		ts.Check(os.WriteFile(filepath.Join(ts.MkAbs(args[0]), fmt.Sprintf("task-%03d.md", i)), []byte(text), 0o600))
	}
}

// killrun TASK kills the process that runs the task; ! killrun TASK only asks it to stop.
func killRun(ts *testscript.TestScript, neg bool, args []string) {
	data := ts.ReadFile(filepath.Join(ts.Getenv("CRADLE_STATE_DIR"), "timers", ts.Getenv("ID"), args[0]+".lock"))
	_, data, _ = strings.Cut(data, `"pid":`)
	pid := 0
	_, err := fmt.Sscan(strings.SplitN(data, ",", 2)[0], &pid)
	ts.Check(err)
	sig := syscall.SIGKILL
	if neg {
		sig = syscall.SIGTERM
	}
	ts.Check(syscall.Kill(pid, sig))
}

// asTimer TASK runs what the task's installed unit says: its command line, with nothing in the environment but what the unit
// sets and what any user service has, and its output in the log.
func asTimer(ts *testscript.TestScript, neg bool, args []string) {
	unit := ts.ReadFile(filepath.Join(ts.Getenv("UNITS"), "cradle-"+ts.Getenv("ID")+"-"+args[0]+".service"))
	value := func(key string) string {
		_, rest, ok := strings.Cut(unit, "\n"+key+"=")
		if !ok {
			ts.Fatalf("no %s in\n%s", key, unit)
		}
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	argv := strings.Split(strings.Trim(value("ExecStart"), `"`), `" "`)
	log, err := os.OpenFile(strings.TrimPrefix(value("StandardOutput"), "append:"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	ts.Check(err)
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = value("WorkingDirectory"), log, log
	cmd.Env = []string{value("Environment"), "HOME=" + ts.Getenv("HOME"), "GORACE=" + quickEnd}
	// The units don't carry these; the fakes need them.
	for _, name := range []string{"FAKE_LOG", "FAKE_PI_EXIT", "FAKE_PI_HOLD"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	if err := cmd.Run(); (err != nil) != neg {
		ts.Fatalf("%q: %v", argv, err)
	}
}
