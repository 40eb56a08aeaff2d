package schedule_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pi-cradle/cradle/schedule"
	"pi-cradle/cradle/schedule/history"
	"pi-cradle/cradle/schedule/view"
	"pi-cradle/cradle/state"
	"pi-cradle/internal/usererr"
)

// world is a service of a platform's timers with fake programs on the process's PATH.
type world struct {
	*schedule.Service
	t     *testing.T
	calls string
}

func newWorld(t *testing.T, platform string) *world {
	root := t.TempDir()
	bin, home, folder := filepath.Join(root, "bin"), filepath.Join(root, "home"), filepath.Join(root, "reporter")
	if err := link(bin); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, calls: filepath.Join(root, "calls")}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	t.Setenv("FAKE_LOG", w.calls)
	t.Setenv("FAKE_LINGER", "yes")
	backend, err := schedule.BackendFor(platform, home, 501)
	if err != nil {
		t.Fatal(err)
	}
	w.Service = &schedule.Service{
		Folder: folder, Home: home, State: state.ForFolder(folder, home, ""), Backend: backend, Path: os.Getenv("PATH"),
		Find: func(name string) (string, bool) { return filepath.Join(bin, name), true },
		Now:  func() time.Time { return time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC) },
	}
	return w
}

func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) task(slug, front string) {
	w.t.Helper()
	w.write(filepath.Join(w.Folder, "schedule", slug+".md"), "---\n"+front+"\n---\nhello\n")
}

func (w *world) install(slug string) error {
	w.t.Helper()
	changes, err := w.PlanInstall(slug, "/bin/cradle")
	if err != nil {
		w.t.Fatal(err)
	}
	return w.Install(w.t.Context(), changes)
}

// called returns what the fakes were called with since the last time, the timers' own names left out.
func (w *world) called() []string {
	w.t.Helper()
	data, err := os.ReadFile(w.calls)
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	_ = os.Remove(w.calls)
	text := strings.NewReplacer(w.State.ID, "ID", w.Home, "HOME").Replace(strings.TrimSuffix(string(data), "\n"))
	return strings.Split(text, "\n")
}

func (w *world) row(slug string) view.Row {
	w.t.Helper()
	rows, err := w.List()
	if err != nil {
		w.t.Fatal(err)
	}
	i := slices.IndexFunc(rows, func(r view.Row) bool { return r.Slug == slug })
	if i < 0 {
		w.t.Fatalf("no row for %s: %+v", slug, rows)
	}
	return rows[i]
}

func TestPlatforms(t *testing.T) {
	for platform, want := range map[string]string{"windows": "win32", "freebsd": "freebsd"} {
		_, err := schedule.BackendFor(platform, "/h", 1)
		if err == nil || err.Error() != "Scheduled tasks are not supported on "+want+" — launchd (macOS) and systemd (Linux) are the supported timer backends" {
			t.Errorf("%s: %v", platform, err)
		}
	}
}

func TestLaunchdLifecycle(t *testing.T) {
	w := newWorld(t, "darwin")
	w.task("daily", "cron: 0 9 * * 1\ncwd: $HOME")
	const plist = "HOME/Library/LaunchAgents/com.cradle.ID.daily.plist"
	bootout, bootstrap, enable := "launchctl bootout gui/501/com.cradle.ID.daily", "launchctl bootstrap gui/501 "+plist, "launchctl enable gui/501/com.cradle.ID.daily"

	// A failing bootout means that there was nothing to take out.
	t.Setenv("FAKE_FAIL", "launchctl bootout")
	if err := w.install("daily"); err != nil || len(w.Warnings) > 0 {
		t.Fatalf("install: %v, %q", err, w.Warnings)
	}
	if got := w.called(); !slices.Equal(got, []string{bootout, bootstrap, enable}) {
		t.Errorf("install called %q", got)
	}

	// With the program's name as it was composed, it is installed; the listing compares with the one it would compose.
	w.Find = func(string) (string, bool) { return "/bin/cradle", true }
	if row := w.row("daily"); row.Timer != view.Installed || row.Next == nil {
		t.Errorf("after install: %+v", row)
	}
	w.task("daily", "cron: 0 10 * * 1\ncwd: $HOME")
	if row := w.row("daily"); row.Timer != view.Stale {
		t.Errorf("after a change: %+v", row)
	}

	for _, step := range []string{"launchctl bootstrap", "launchctl enable"} {
		t.Setenv("FAKE_FAIL", step)
		t.Setenv("FAKE_STDERR", "Bootstrap failed: 5: Input/output error")
		err := w.install("daily")
		if err == nil || !strings.HasPrefix(err.Error(), `Failed to install schedule "daily" (`+step) || !strings.HasSuffix(err.Error(), "): Bootstrap failed: 5: Input/output error") {
			t.Errorf("%s fails: %v", step, err)
		}
		if row := w.row("daily"); row.Timer != view.Incomplete {
			t.Errorf("%s failed and the timer is %s", step, row.Timer)
		}
	}
	t.Setenv("FAKE_FAIL", "")
	if err := w.install(""); err != nil || w.row("daily").Timer != view.Installed {
		t.Errorf("the second try: %v, %+v", err, w.row("daily"))
	}
	w.called()

	changes, err := w.PlanRemove("daily")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Remove(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	if got := w.called(); !slices.Equal(got, []string{bootout}) || w.row("daily").Timer != view.NotInstalled {
		t.Errorf("remove called %q, the timer is %s", got, w.row("daily").Timer)
	}
}

func TestLaunchdCannot(t *testing.T) {
	w := newWorld(t, "darwin")
	w.task("busy", "cron: 1-59 1-23 * * *\ncwd: $HOME")
	w.task("zoned", "cron: '@daily'\ncwd: $HOME\ntimezone: Europe/Berlin")
	for slug, want := range map[string]string{
		"busy":  "cron expression expands to 1357 StartCalendarInterval dicts, over the 500-dict cap",
		"zoned": `launchd fires in the machine's own time zone only, so timezone "Europe/Berlin" can't be honoured`,
	} {
		_, err := w.PlanInstall(slug, "/bin/cradle")
		var refusal *usererr.Error
		if !errors.As(err, &refusal) || err.Error() != want || len(refusal.Hints) == 0 {
			t.Errorf("%s: %v", slug, err)
		}
		if row := w.row(slug); row.Error != want || row.Timer != view.NotInstalled || len(row.Hints) == 0 {
			t.Errorf("%s is listed as %+v", slug, row)
		}
	}
}

func TestTimezone(t *testing.T) {
	w := newWorld(t, "linux")
	w.task("zoned", "cron: 0 9 * * *\ncwd: $HOME\ntimezone: Asia/Kathmandu")
	if row := w.row("zoned"); row.Next == nil || !row.Next.Equal(time.Date(2026, 3, 3, 3, 15, 0, 0, time.UTC)) {
		t.Errorf("next is %v", row.Next)
	}
}

// Two conversations appear while a task runs; the record names the task's own.
func TestRecordFindsItsSession(t *testing.T) {
	w := newWorld(t, "linux")
	w.Path = w.Backend.SearchPath()
	w.task("daily", "name: ' The daily '\ncron: 0 9 * * *\ncwd: $HOME/work")
	tasks, err := w.Tasks()
	if err != nil {
		t.Fatal(err)
	}
	sessions := w.State.Sessions()
	session := func(file, cwd, name string) {
		w.write(filepath.Join(sessions, file), `{"type":"session","cwd":"`+cwd+`"}`+"\n"+`{"type":"session_info","name":"`+name+`"}`+"\n")
	}
	session("a.jsonl", w.Home+"/work", "The daily") // of an earlier run
	watch, err := w.Begin(t.Context(), tasks[0])
	if err != nil {
		t.Fatal(err)
	}
	session("b.jsonl", w.Home+"/work", "Other")
	session("c.jsonl", w.Home+"/work", "The daily")
	session("d.jsonl", "/elsewhere", "The daily")
	record, err := watch.End(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if record.Session != filepath.Join(sessions, "c.jsonl") {
		t.Errorf("session %q", record.Session)
	}
	if record.Trigger != history.Timer || record.Planned == nil || record.Planned.In(time.Local).Hour() != 9 || record.Planned.After(record.Start) {
		t.Errorf("recorded as %+v", record)
	}

	watch, err = w.Begin(t.Context(), tasks[0])
	if err != nil {
		t.Fatal(err)
	}
	if record, err = watch.End(1, errors.New("one\ntwo")); err != nil || record.Session != "" || record.Reason != "one" {
		t.Errorf("without a session: %+v, %v", record, err)
	}
}

// What a sandboxed agent can write does not decide what cradle runs.
func TestEnvironmentIsNotTheAgentsToSay(t *testing.T) {
	w := newWorld(t, "linux")
	w.task("daily", "cron: '@daily'\ncwd: $HOME")
	w.Path = "/opt/pi/bin:relative::" + w.Path
	if err := w.install(""); err != nil {
		t.Fatal(err)
	}
	if got := w.Environment(); got != nil {
		t.Errorf("by hand: %q", got)
	}
	own := w.Path
	w.Path = w.Backend.SearchPath()
	got := w.Environment()["PATH"]
	if !strings.HasPrefix(got, "/opt/pi/bin:"+strings.Split(own, "::")[1]) || !strings.HasSuffix(got, "/usr/sbin:/sbin") || strings.Contains(got, "relative") {
		t.Errorf("by a timer: %q", got)
	}
	var kept []string
	err := filepath.WalkDir(w.State.Path(), func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			kept = append(kept, path)
		}
		return err
	})
	if err != nil || len(kept) > 0 {
		t.Errorf("in the agent's reach: %q, %v", kept, err)
	}
}

func TestListNoticesFiringsWithoutARun(t *testing.T) {
	w := newWorld(t, "linux")
	w.Find = func(string) (string, bool) { return "/bin/cradle", true }
	w.task("daily", "cron: 0 9 * * *\ncwd: $HOME\ntimezone: UTC")
	if err := w.install(""); err != nil {
		t.Fatal(err)
	}
	day := func(d, hour, minute int) time.Time { return time.Date(2026, 3, d, hour, minute, 0, 0, time.UTC) }
	for _, path := range w.Backend.Paths(w.State.ID, "daily") {
		if err := os.Chtimes(path, time.Time{}, day(1, 12, 0)); err != nil {
			t.Fatal(err)
		}
	}
	look := func(now time.Time) *time.Time {
		w.Now = func() time.Time { return now }
		return w.row("daily").Missed
	}
	if missed := look(day(2, 8, 0)); missed != nil {
		t.Errorf("before the first firing: %v", missed)
	}
	if missed := look(day(2, 9, 3)); missed != nil {
		t.Errorf("just after it: %v", missed)
	}
	if missed := look(day(2, 12, 0)); missed == nil || !missed.Equal(day(2, 9, 0)) || len(w.row("daily").Inspect) == 0 {
		t.Errorf("three hours after it: %v", missed)
	}
	end := day(2, 9, 10)
	if err := w.History().Append(history.Record{Task: "daily", Trigger: history.Timer, Start: day(2, 8, 59), End: &end, Outcome: history.OK}); err != nil {
		t.Fatal(err)
	}
	if missed := look(day(2, 12, 0)); missed != nil {
		t.Errorf("with a run at the time: %v", missed)
	}
	if missed := look(day(3, 12, 0)); missed == nil || !missed.Equal(day(3, 9, 0)) {
		t.Errorf("a day later: %v", missed)
	}
}
