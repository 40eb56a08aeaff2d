package schedule_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"pi-cradle/cradle/schedule/history"
	"pi-cradle/cradle/state"
	"pi-cradle/internal/testenv"
)

// A real user manager knows only the real home, so this test puts two units there, and takes them away again. It has to be
// asked for.
func TestRealSystemd(t *testing.T) {
	if os.Getenv("CRADLE_REAL_SYSTEMD") == "" {
		t.Skip("NOT CHECKED: set CRADLE_REAL_SYSTEMD=1 to install, fire and remove a timer with this account's own systemd")
	}
	account, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	bin, folder := filepath.Join(root, "bin"), filepath.Join(root, "agent")
	if err := link(bin); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"systemctl", "loginctl"} {
		if err := os.Remove(filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{"SYSTEM.md": "x", "schedule/probe.md": "---\ncron: '@yearly'\ncwd: " + root + "\n---\nhello\n"} {
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cradle := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, "cradle"), append([]string{"schedule"}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+account.HomeDir, "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	systemctl := func(args ...string) string {
		out, err := exec.Command("systemctl", append([]string{"--user"}, args...)...).CombinedOutput()
		return fmt.Sprintf("%s%v", out, err)
	}
	dir := state.ForFolder(folder, account.HomeDir, "")
	unit := "cradle-" + dir.ID + "-probe"
	t.Cleanup(func() {
		cradle("remove", folder)
		for _, path := range []string{dir.Path(), filepath.Join(dir.Root, "timers", dir.ID), filepath.Join(dir.Root, "locks", dir.ID+".lock"), filepath.Join(dir.Root, "locks", dir.ID+".use")} {
			if err := os.RemoveAll(path); err != nil {
				t.Error(err)
			}
		}
		if out := systemctl("list-timers", "--all", unit+".timer"); !strings.Contains(out, "0 timers") {
			t.Errorf("after removal: %s", out)
		}
	})

	cradle("install", folder)
	if out := systemctl("list-timers", unit+".timer"); !strings.Contains(out, unit+".timer") {
		t.Errorf("after installation: %s", out)
	}
	if out := cradle("list", folder); !strings.Contains(out, "timer: installed") {
		t.Errorf("listed as %s", out)
	}
	systemctl("start", unit+".service")
	records := func() []history.Record {
		all, err := history.Dir{State: dir.Path()}.Read("probe")
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	testenv.Await(t, "the record of the run", func() bool { return len(records()) > 0 })
	if run := records()[0]; run.Outcome != history.OK || run.Trigger != history.Timer {
		t.Errorf("recorded as %+v", run)
	}
}
