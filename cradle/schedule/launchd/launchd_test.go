package launchd

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	howett "howett.net/plist"

	"pi-cradle/cradle/schedule/cron"
	"pi-cradle/cradle/schedule/timer"
)

func job(t testing.TB, expr string) timer.Job {
	t.Helper()
	e, err := cron.Parse(expr)
	if err != nil {
		t.Fatal(err)
	}
	return timer.Job{
		AgentID: "reporter-a1b2c3d4", Slug: "nightly", Name: "Nightly", Folder: "/agents/reporter", Cwd: "/work/project",
		Log: "/Users/u/.cradle/agents/reporter-a1b2c3d4/schedule/nightly.log", Cradle: "/Users/u/.local/bin/cradle", Cron: e,
	}
}

var backend = Backend{Home: "/Users/u", UID: 501}

func TestFileExactly(t *testing.T) {
	files, err := backend.Files(job(t, "0 9 * * 1"))
	if err != nil {
		t.Fatal(err)
	}
	want := timer.File{Path: "/Users/u/Library/LaunchAgents/com.cradle.reporter-a1b2c3d4.nightly.plist", Content: `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>ProgramArguments</key>
  <array>
    <string>/Users/u/.local/bin/cradle</string>
    <string>schedule</string>
    <string>run</string>
    <string>/agents/reporter</string>
    <string>nightly</string>
  </array>
  <key>WorkingDirectory</key>
  <string>/work/project</string>
  <key>StartCalendarInterval</key>
  <array>
    <dict>
      <key>Minute</key>
      <integer>0</integer>
      <key>Hour</key>
      <integer>9</integer>
      <key>Weekday</key>
      <integer>1</integer>
    </dict>
  </array>
  <key>StandardOutPath</key>
  <string>/Users/u/.cradle/agents/reporter-a1b2c3d4/schedule/nightly.log</string>
  <key>StandardErrorPath</key>
  <string>/Users/u/.cradle/agents/reporter-a1b2c3d4/schedule/nightly.log</string>
  <key>EnvironmentVariables</key>
  <dict>
    <key>PATH</key>
    <string>/Users/u/.local/bin:/Users/u/.local/share/mise/shims:/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin</string>
  </dict>
  <key>RunAtLoad</key>
  <false/>
  <key>ProcessType</key>
  <string>Background</string>
  <key>Label</key>
  <string>com.cradle.reporter-a1b2c3d4.nightly</string>
</dict>
</plist>
`}
	if len(files) != 1 || files[0] != want {
		t.Errorf("got\n%s", files[0].Content)
	}
}

// decoded is what a real parser makes of a file.
type decoded struct {
	ProgramArguments                                                         []string
	WorkingDirectory, StandardOutPath, StandardErrorPath, Label, ProcessType string
	StartCalendarInterval                                                    []map[string]int
	EnvironmentVariables                                                     map[string]string
	RunAtLoad                                                                bool
}

func decode(t *testing.T, content string) decoded {
	t.Helper()
	var d decoded
	if _, err := howett.Unmarshal([]byte(content), &d); err != nil {
		t.Fatalf("%v\n%s", err, content)
	}
	return d
}

func TestOddNamesComeBackFromThePlist(t *testing.T) {
	for _, name := range []string{"A&B<C>", "with space", "100%", "$HOME", `a"b\c`, "a'b", "a;b", "]]>", "&amp;", "<!--", "tab\there", "日本語", "line\u2028sep", " "} {
		j := job(t, "@daily")
		j.Folder, j.Cwd, j.Cradle, j.Log = "/agents/"+name, "/w/"+name, "/opt/"+name, "/log/"+name
		files, err := backend.Files(j)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		d := decode(t, files[0].Content)
		if !slices.Equal(d.ProgramArguments, []string{j.Cradle, "schedule", "run", j.Folder, j.Slug}) || d.WorkingDirectory != j.Cwd || d.StandardOutPath != j.Log || d.StandardErrorPath != j.Log {
			t.Errorf("%q: decodes to %+v", name, d)
		}
		if !backend.Starts(files[0].Content, j.Folder, j.Slug) || backend.Starts(files[0].Content, j.Folder+"x", j.Slug) {
			t.Errorf("%q: the file is not told from others", name)
		}
	}
}

func TestCalendar(t *testing.T) {
	for _, c := range []struct {
		expr string
		want []map[string]int
	}{
		{"30 4 * * *", []map[string]int{{"Minute": 30, "Hour": 4}}},
		{"0,30 * * * *", []map[string]int{{"Minute": 0}, {"Minute": 30}}},
		{"0 9 * * 1-5", []map[string]int{{"Minute": 0, "Hour": 9, "Weekday": 1}, {"Minute": 0, "Hour": 9, "Weekday": 2}, {"Minute": 0, "Hour": 9, "Weekday": 3}, {"Minute": 0, "Hour": 9, "Weekday": 4}, {"Minute": 0, "Hour": 9, "Weekday": 5}}},
		{"1,2 3,4 * * *", []map[string]int{{"Minute": 1, "Hour": 3}, {"Minute": 1, "Hour": 4}, {"Minute": 2, "Hour": 3}, {"Minute": 2, "Hour": 4}}},
		{"* * 1 6 *", []map[string]int{{"Day": 1, "Month": 6}}},
	} {
		files, err := backend.Files(job(t, c.expr))
		if err != nil {
			t.Fatal(err)
		}
		if got := decode(t, files[0].Content).StartCalendarInterval; fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%q: %v, want %v", c.expr, got, c.want)
		}
	}
	files, err := backend.Files(job(t, "* * * * *"))
	if err != nil {
		t.Fatal(err)
	}
	if got := decode(t, files[0].Content).StartCalendarInterval; len(got) != 60 || got[59]["Minute"] != 59 || len(got[59]) != 1 {
		t.Errorf("every minute: %v", got)
	}
}

func TestCap(t *testing.T) {
	if _, err := backend.Files(job(t, "0-49 0-9 * * *")); err != nil {
		t.Errorf("500 entries: %v", err)
	}
	_, err := backend.Files(job(t, "1-59 1-23 * * *"))
	if err == nil || err.Error() != "cron expression expands to 1357 StartCalendarInterval dicts, over the 500-dict cap" {
		t.Errorf("1357 entries: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	for want, change := range map[string]func(*timer.Job){
		`launchd property list values cannot contain a newline, got "/a\nb"`:                     func(j *timer.Job) { j.Folder = "/a\nb" },
		`launchd property list values cannot contain a control character, got "/\u0001"`:         func(j *timer.Job) { j.Cwd = "/\x01" },
		`launchd fires in the machine's own time zone only, so timezone "UTC" can't be honoured`: func(j *timer.Job) { j.Timezone = "UTC" },
	} {
		j := job(t, "@daily")
		change(&j)
		if _, err := backend.Files(j); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestSteps(t *testing.T) {
	var got []string
	for _, steps := range [][]timer.Step{backend.Install("a-12345678", "x"), backend.Remove("a-12345678", "x")} {
		for _, s := range steps {
			got = append(got, fmt.Sprint(strings.Join(s.Argv, " "), " ", s.MayFail))
		}
	}
	want := []string{
		"launchctl bootout gui/501/com.cradle.a-12345678.x true",
		"launchctl bootstrap gui/501 /Users/u/Library/LaunchAgents/com.cradle.a-12345678.x.plist false",
		"launchctl enable gui/501/com.cradle.a-12345678.x false",
		"launchctl bootout gui/501/com.cradle.a-12345678.x true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestSlugOf(t *testing.T) {
	for name, want := range map[string]string{
		"com.cradle.a-12345678.daily.plist": "daily", "com.cradle.a-12345678.a.b.plist": "a.b", "com.cradle.a-12345678..plist": "",
		"com.cradle.b-12345678.daily.plist": "", "com.apple.x.plist": "",
	} {
		if slug, ok := backend.SlugOf("a-12345678", name); slug != want && ok || ok != (want != "") {
			t.Errorf("%s: %q, %v", name, slug, ok)
		}
	}
}
