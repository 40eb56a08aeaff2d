package launch

import (
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

	"pi-cradle/squire/tmux/tmuxtest"
)

// Everything that would be in danger on tmux's command line.
var oddNames = []string{
	"plain", "two words", "d;", ";", "a#S", "x#{session_name}", "trail#", "p#(touch RAN)", "q'uo\"te", "$HOME", "ü 世界", "-dash", "%if", "~", "new\nline", `back\slash`,
}

func TestNothingIsExpandedOrLost(t *testing.T) {
	t.Parallel()
	for conf, text := range map[string]string{"plain": "", "hostile": tmuxtest.Hostile} {
		t.Run(conf, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, text)
			for i, name := range oddNames {
				cwd := filepath.Join(r.Dir, name)
				if err := os.MkdirAll(cwd, 0o700); err != nil {
					t.Fatal(err)
				}
				out := filepath.Join(r.Dir, fmt.Sprintf("out%d", i))
				args := []string{name, "", strings.Repeat("task ", 10_000), "--help", "@file"}
				path := r.write(Spec{
					ID: strconv.Itoa(i), Argv: append([]string{r.self, "dump", out}, args...), Cwd: cwd,
					Env:   map[string]string{noRaceWait[0]: noRaceWait[1], "X_API_KEY": "secret" + name, "PATH": "/custom:/bin", "TERM": "wrong", "TMUX": "wrong", "BIG": strings.Repeat("x", 40_000)},
					Unset: []string{"HOME", "NO_SUCH_NAME"},
				})
				r.open(path)
				if e := r.exit(path); e.Code != 0 || e.Error != "" || e.Signal != "" || e.ID != strconv.Itoa(i) || e.Screen != nil || e.Hangup {
					t.Fatalf("%q: %+v", name, e)
				}
				var got dumped
				data, _ := os.ReadFile(out)
				if err := json.Unmarshal(data, &got); err != nil {
					t.Fatal(err)
				}
				if got.Cwd != cwd || strings.Join(got.Args, "\x00") != strings.Join(args, "\x00") || !got.Terminal {
					t.Errorf("%q: cwd %q, terminal %v, %d arguments", name, got.Cwd, got.Terminal, len(got.Args))
				}
				env := map[string]string{}
				for _, kv := range got.Env {
					key, value, _ := strings.Cut(kv, "=")
					env[key] = value
				}
				_, home := env["HOME"]
				if env["X_API_KEY"] != "secret"+name || env["PATH"] != "/custom:/bin" || env["PWD"] != cwd || len(env["BIG"]) != 40_000 || home || env["TMUX_PANE"] == "" {
					t.Errorf("%q: environment %.200q", name, got.Env)
				}
				for _, kv := range got.Env {
					if kv == "TERM=wrong" || kv == "TMUX=wrong" {
						t.Errorf("the terminal's %s comes from the spec", kv)
					}
				}
				if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the launch file is still there: %v", err)
				}
			}
			r.awaitNoWindow()
			found, _ := filepath.Glob(filepath.Join(r.Dir, "*", "RAN"))
			if again, _ := filepath.Glob(filepath.Join(r.Dir, "RAN")); len(found)+len(again) > 0 {
				t.Error("tmux ran a command out of a directory's name")
			}
		})
	}
}

func TestSecretsAreNotOnShow(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	s := r.spec("echo $$ >pid; exec cat")
	s.Env["X_API_KEY"] = "hunter2"
	pane := r.open(r.write(s))
	r.awaitFile("pid")
	for _, what := range []string{
		r.Run("list-panes", "-a", "-F", "#{pane_start_command}"), r.Run("show-environment", "-g"),
		r.Run("show-environment", "-t", "=main:"), r.Run("capture-pane", "-p", "-t", pane),
	} {
		if strings.Contains(what, "hunter2") {
			t.Errorf("tmux shows it: %q", what)
		}
	}
	launcher := r.Run("display-message", "-p", "-t", pane, "#{pane_pid}")
	if data, err := os.ReadFile("/proc/" + launcher + "/cmdline"); err == nil && strings.Contains(string(data), "hunter2") {
		t.Errorf("the launcher's command line shows it")
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	for conf, text := range map[string]string{"plain": "", "hostile": tmuxtest.Hostile} {
		t.Run(conf, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, text)
			private := r.Write("prompt", "x", 0o600)
			for script, want := range map[string]Exit{
				"exit 0":                                  {},
				"echo not; echo shown; exit 0":            {},
				"exit 3":                                  {Code: 3},
				"kill -TERM $$":                           {Code: -1, Signal: "SIGTERM"},
				"echo $$; kill -KILL $$":                  {Code: -1, Signal: "SIGKILL"},
				"echo one; echo two >&2; exit 1":          {Code: 1, Screen: []string{"one", "two"}},
				`printf '\033[31mred\033[0m\a\n'; exit 1`: {Code: 1, Screen: []string{"red"}},
				"printf '\\033[?1049halternate'; exit 7":  {Code: 7, Screen: []string{"alternate"}},
				"i=0; while [ $i -lt 99 ]; do echo $i; i=$((i+1)); done; exit 4": {Code: 4},
			} {
				s := r.spec(script)
				s.Remove = []string{private, filepath.Join(r.Dir, "none")}
				path := r.write(s)
				r.open(path)
				e := r.exit(path)
				if e.Code != want.Code || e.Signal != want.Signal || e.Error != "" || e.Hangup || e.At.IsZero() {
					t.Errorf("%s: %+v", script, e)
				}
				if want.Screen != nil && strings.Join(e.Screen, "\n") != strings.Join(want.Screen, "\n") {
					t.Errorf("%s: screen %q", script, e.Screen)
				}
				if want.Code == 4 && conf == "plain" && (len(e.Screen) != screenLines || e.Screen[screenLines-1] != "98") {
					t.Errorf("%s: screen %q", script, e.Screen)
				}
				if want.Code == 0 && want.Signal == "" && e.Screen != nil {
					t.Errorf("%s: screen %q after success", script, e.Screen)
				}
				if _, err := os.Lstat(private); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: the private file is still there", script)
				}
				r.awaitNoWindow() // also with remain-on-exit
				if err := os.Remove(ExitPath(path)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	raw := func(id, text string, mode os.FileMode) string {
		path := filepath.Join(r.dir, id+".json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
		return path
	}
	spec := func(id string, change func(*Spec)) string {
		s := r.spec("touch " + filepath.Join(r.Dir, "ran"))
		s.ID = id
		change(&s)
		return r.write(s)
	}
	link := filepath.Join(r.dir, "link.json")
	if err := os.Symlink(spec("target", func(*Spec) {}), link); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(r.dir, "folder.json")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(r.dir, "none.json"):                            "is missing",
		raw("junk", `{"argv": ["hunter2`, 0o600):                     "not valid JSON",
		raw("empty", "", 0o600):                                      "not valid JSON",
		raw("future", `{"version": 99, "argv": ["hunter2"]}`, 0o600): "version 99",
		raw("noargv", `{"version": 1, "cwd": "/"}`, 0o600):           "no program",
		raw("open", `{"version": 1}`, 0o644):                         "open to others",
		link:                                                         "can't be opened",
		folder:                                                       "not a regular file",
		spec("nocwd", func(s *Spec) { s.Cwd = filepath.Join(r.Dir, "no such") }): "can't be entered",
		spec("filecwd", func(s *Spec) { s.Cwd = r.Socket }):                      "can't be entered",
		spec("relcwd", func(s *Spec) { s.Cwd = "x" }):                            "not absolute",
		spec("noprog", func(s *Spec) { s.Argv = []string{"/no/such/pi", "x"} }):  "can't be started",
		spec("nopath", func(s *Spec) { s.Argv = []string{"no-such-pi"} }):        "can't be started",
		spec("badenv", func(s *Spec) { s.Env["A"] = "x\x00y" }):                  "can't be started",
	} {
		status, stderr := r.direct(path)
		e := r.exit(path)
		if !strings.Contains(e.Error, want) || e.Code != -1 || strings.Contains(e.Error, "\n") || strings.Contains(e.Error, "hunter2") {
			t.Errorf("%s: %+v, want %q", path, e, want)
		}
		if status != exitNoStart || stderr != "cradle-helper: "+e.Error+"\n" {
			t.Errorf("%s: status %d, says %q", path, status, stderr)
		}
	}
	if _, err := os.Lstat(filepath.Join(r.Dir, "ran")); err == nil {
		t.Error("something was started")
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	for script, want := range map[string]int{"exit 0": 0, "exit 3": 3, "kill -KILL $$": 137, "kill -TERM $$": 143} {
		if got, stderr := r.direct(r.write(r.spec(script))); got != want || stderr != "" {
			t.Errorf("%s: %d, want %d; says %q", script, got, want, stderr)
		}
	}
}

// A user can start a dead pane's command again. What happened the first time stays on record.
func TestRespawnKeepsTheRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	path := r.write(r.spec("echo $$ >pid; exec cat"))
	pane := r.open(path)
	r.awaitFile("pid")
	r.Run("set-option", "-p", "-t", pane, "remain-on-exit", "on")
	if err := syscall.Kill(atoi(t, r.awaitFile("pid")), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	before := r.exit(path)
	r.awaitNoWindow()
	again := r.open(path)
	tmuxtest.Await(t, "the second launcher's end", func() bool { return !strings.Contains(r.Run("list-panes", "-a", "-F", "#{pane_id}"), again) })
	if after := r.exit(path); after.Signal != "SIGKILL" || !after.At.Equal(before.At) {
		t.Errorf("first %+v, then %+v", before, after)
	}
}

func TestAnUnsafeFolderGetsNoRecord(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if !ours(dir) {
		t.Error("a private folder of ours is refused")
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(filepath.Dir(dir), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{dir, link, filepath.Join(dir, "none"), "/dev/null"} {
		if ours(bad) {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestAClosedWindowIsRecorded(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	for script, want := range map[string]Exit{
		// Ends at the hangup, in its own way.
		"trap 'exit 5' HUP; echo $$ >pid; while :; do sleep 0.05; done": {Code: 5},
		"echo $$ >pid; exec cat": {Code: -1, Signal: "SIGHUP"},
		// Will not end.
		"trap '' HUP TERM; echo $$ >pid; while :; do sleep 0.05; done": {Code: -1, Signal: "SIGKILL"},
	} {
		path := r.write(r.spec(script))
		pane := r.open(path)
		pid := atoi(t, r.awaitFile("pid"))
		r.Run("kill-window", "-t", pane)
		e := r.exit(path)
		// A program that reads its terminal can notice the loss of it before the signal.
		readsEOF := strings.HasSuffix(script, "cat") && e.Code >= 0
		if (e.Code != want.Code || e.Signal != want.Signal) && !readsEOF || !e.Hangup || e.Error != "" || e.Screen != nil {
			t.Errorf("%s: %+v", script, e)
		}
		tmuxtest.Await(t, "the program's end", func() bool { return !running(pid) })
		_ = os.Remove(filepath.Join(r.Dir, "pid"))
		_ = os.Remove(ExitPath(path))
	}
}

func TestAClosedWindowTakesItsHelpersAlong(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	path := r.write(r.spec("sh -c 'trap \"\" HUP TERM; echo $$ >helper; while :; do sleep 0.05; done' & echo $$ >pid; exec cat"))
	pane := r.open(path)
	pid, helper := atoi(t, r.awaitFile("pid")), atoi(t, r.awaitFile("helper"))
	r.Run("kill-window", "-t", pane)
	r.exit(path)
	tmuxtest.Await(t, "the end of both", func() bool { return !running(pid) && !running(helper) })
}

func TestSignalsArePassedOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	path := r.write(r.spec("trap 'echo usr1 >got' USR1; trap 'exit 6' TERM; echo $$ >pid; while :; do sleep 0.05; done"))
	pane := r.open(path)
	pid := atoi(t, r.awaitFile("pid"))
	launcher := atoi(t, r.Run("display-message", "-p", "-t", pane, "#{pane_pid}"))
	if launcher == pid {
		t.Fatal("there is no launcher")
	}
	if group, err := syscall.Getpgid(pid); err != nil || group != launcher {
		t.Errorf("the program's group is %d, the launcher %d, %v", group, launcher, err)
	}
	if err := syscall.Kill(launcher, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	r.awaitFile("got")
	// What the keyboard sends reaches the program by itself; the launcher only survives it.
	if err := syscall.Kill(launcher, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(launcher, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if e := r.exit(path); e.Code != 6 || e.Hangup {
		t.Errorf("%+v", e)
	}
}

func TestTheTerminalIsTheProgramsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	path := r.write(r.spec("trap 'stty size >size' WINCH; trap 'echo int >int' INT; echo $$ >pid; while :; do sleep 0.05; done"))
	pane := r.open(path)
	r.awaitFile("pid")
	r.Run("resize-window", "-t", pane, "-x", "61", "-y", "17")
	if size := r.awaitFile("size"); size != "17 61" {
		t.Errorf("size %q", size)
	}
	r.Run("send-keys", "-t", pane, "C-c")
	r.awaitFile("int")
	// With nobody to continue it, a stop would hold the pane for ever.
	r.Run("send-keys", "-t", pane, "C-z")
	_ = os.Remove(filepath.Join(r.Dir, "int"))
	r.Run("send-keys", "-t", pane, "C-c")
	r.awaitFile("int")
}

// How much later a program starts by way of the launcher.
func BenchmarkStart(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	if helper := os.Getenv("CRADLE_HELPER"); helper != "" {
		self = helper
	}
	dir := b.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		b.Fatal(err)
	}
	program := []string{"/bin/sh", "-c", ": >" + fifo}
	start := func(b *testing.B, argv ...string) {
		cmd := exec.Command(argv[0], argv[1:]...)
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		f, err := os.Open(fifo) // until the program opens it too
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		_ = f.Close()
		_ = cmd.Wait()
		b.StartTimer()
	}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			start(b, program...)
		}
	})
	b.Run("launcher", func(b *testing.B) {
		path := filepath.Join(dir, "d.json")
		for b.Loop() {
			b.StopTimer()
			if err := WriteSpec(path, Spec{ID: "d", Argv: program, Cwd: dir}); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			start(b, self, "exec", path)
		}
	})
}
