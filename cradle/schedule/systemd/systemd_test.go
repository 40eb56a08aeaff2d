package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
		AgentID: "reporter-a1b2c3d4", Slug: "nightly-report", Name: "Nightly Report", Folder: "/agents/reporter", Cwd: "/work/project",
		Log: "/home/u/.cradle/agents/reporter-a1b2c3d4/schedule/nightly-report.log", Cradle: "/home/u/.local/bin/cradle", Cron: e,
	}
}

func TestFilesExactly(t *testing.T) {
	files, err := Backend{"/home/u"}.Files(job(t, "0 9 * * *"))
	if err != nil {
		t.Fatal(err)
	}
	want := []timer.File{{Path: "/home/u/.config/systemd/user/cradle-reporter-a1b2c3d4-nightly-report.service", Content: `[Unit]
Description=Nightly Report

[Service]
Type=oneshot
WorkingDirectory=/work/project
Environment=PATH=/home/u/.local/bin:/home/u/.local/share/mise/shims:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
ExecStart="/home/u/.local/bin/cradle" "schedule" "run" "/agents/reporter" "nightly-report"
StandardOutput=append:/home/u/.cradle/agents/reporter-a1b2c3d4/schedule/nightly-report.log
StandardError=append:/home/u/.cradle/agents/reporter-a1b2c3d4/schedule/nightly-report.log
`}, {Path: "/home/u/.config/systemd/user/cradle-reporter-a1b2c3d4-nightly-report.timer", Content: `[Unit]
Description=Nightly Report

[Timer]
OnCalendar=*-*-* 09:00:00
Persistent=true

[Install]
WantedBy=timers.target
`}}
	if !slices.Equal(files, want) {
		t.Errorf("got\n%s\n%s", files[0].Content, files[1].Content)
	}
}

func TestOnCalendar(t *testing.T) {
	for _, c := range []struct{ expr, zone, want string }{
		{"* * * * *", "", "*-*-* *:*:00"},
		{"0 9 * * *", "", "*-*-* 09:00:00"},
		{"0 9 * * *", "Europe/Berlin", "*-*-* 09:00:00 Europe/Berlin"},
		{"*/15 8-10 * * 5-7", "", "Sun,Fri,Sat *-*-* 08,09,10:00,15,30,45:00"},
		{"0 0 1,15 1 *", "", "*-01-01,15 00:00:00"},
		{"0 9 * * 1-5", "", "Mon,Tue,Wed,Thu,Fri *-*-* 09:00:00"},
		{"@hourly", "", "*-*-* *:00:00"},
	} {
		if got := OnCalendar(job(t, c.expr).Cron, c.zone); got != c.want {
			t.Errorf("%q: got %q, want %q", c.expr, got, c.want)
		}
	}
}

func TestSteps(t *testing.T) {
	b := Backend{"/home/u"}
	const unit = "cradle-a-12345678-x.timer"
	want := []timer.Step{{Argv: []string{"systemctl", "--user", "daemon-reload"}}, {Argv: []string{"systemctl", "--user", "enable", "--now", unit}}}
	if got := b.Install("a-12345678", "x"); !equalSteps(got, want) {
		t.Errorf("install: %v", got)
	}
	want = []timer.Step{{Argv: []string{"systemctl", "--user", "disable", "--now", unit}, MayFail: true}, {Argv: []string{"systemctl", "--user", "daemon-reload"}}}
	if got := b.Remove("a-12345678", "x"); !equalSteps(got, want) {
		t.Errorf("remove: %v", got)
	}
	if got := b.LingerProbe("u"); !slices.Equal(got, []string{"loginctl", "show-user", "u", "--property=Linger"}) {
		t.Errorf("linger: %v", got)
	}
}

func equalSteps(a, b []timer.Step) bool {
	return slices.EqualFunc(a, b, func(a, b timer.Step) bool { return a.MayFail == b.MayFail && slices.Equal(a.Argv, b.Argv) })
}

func TestRefusals(t *testing.T) {
	for want, change := range map[string]func(*timer.Job){
		`systemd unit values cannot contain a newline, got "a\nb"`:                              func(j *timer.Job) { j.Name = "a\nb" },
		`systemd unit values cannot contain a newline, got "/w\n<x>"`:                           func(j *timer.Job) { j.Cwd = "/w\n<x>" },
		`systemd unit values cannot contain a newline, got "/w\rx"`:                             func(j *timer.Job) { j.Folder = "/w\rx" },
		`systemd unit values cannot contain a control character, got "a\u0001"`:                 func(j *timer.Job) { j.Name = "a\x01" },
		`systemd unit values must be valid UTF-8, got "/\xff"`:                                  func(j *timer.Job) { j.Cwd = "/\xff" },
		`systemd unit values cannot end in a space or a backslash, got "/w\\"`:                  func(j *timer.Job) { j.Cwd = `/w\` },
		`systemd unit values cannot end in a space or a backslash, got "/w "`:                   func(j *timer.Job) { j.Cwd = `/w ` },
		`systemd starts no program whose path holds a quote, a backslash or a tab, got "/a\"b"`: func(j *timer.Job) { j.Cradle = `/a"b` },
	} {
		j := job(t, "@daily")
		change(&j)
		if _, err := (Backend{"/home/u"}).Files(j); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// oddNames are what users, other tools and other languages put into paths.
var oddNames = []string{
	"plain", "with space", "100%", "%h", "$HOME", "a$b", "${HOME}", "$$", "a'b", `a"b\c`, `back\slash`, `quote"`, "a;b", ";", "&<>", "#x", "tab\there",
	"日本語", "naïve", "~", "-x", "a=b", "[x]", "*?", "`id`", "!", "line\u2028sep",
}

func TestOddNamesComeBackFromTheUnit(t *testing.T) {
	for _, name := range oddNames {
		j := job(t, "@daily")
		j.Folder, j.Cwd, j.Name, j.Cradle = "/agents/"+name, "/w/"+name, name, "/opt/100% $HOME $$ ${X}/cradle"
		b := Backend{"/home/" + name}
		files, err := b.Files(j)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		service := files[0].Content
		if got, want := decodeExec(t, value(t, service, "ExecStart")), []string{j.Cradle, "schedule", "run", j.Folder, j.Slug}; !slices.Equal(got, want) {
			t.Errorf("%q: ExecStart decodes to %q", name, got)
		}
		for key, want := range map[string]string{"WorkingDirectory": j.Cwd, "Description": j.Name, "StandardOutput": "append:" + j.Log} {
			if got := strings.ReplaceAll(value(t, service, key), "%%", "%"); got != want {
				t.Errorf("%q: %s is %q", name, key, got)
			}
		}
		if !b.Starts(service, j.Folder, j.Slug) || b.Starts(service, j.Folder+"x", j.Slug) || b.Starts(service, j.Folder, "other") {
			t.Errorf("%q: the unit is not told from others", name)
		}
	}
}

func value(t *testing.T, unit, key string) string {
	t.Helper()
	for line := range strings.Lines(unit) {
		if v, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), key+"="); ok {
			return v
		}
	}
	t.Fatalf("no %s in\n%s", key, unit)
	return ""
}

// decodeExec reads a command line as systemd.service(5) has it, with an environment in which every variable is empty.
func decodeExec(t *testing.T, line string) (argv []string) {
	t.Helper()
	for line != "" {
		body, ok := strings.CutPrefix(line, `"`)
		if !ok {
			t.Fatalf("unquoted argument at %q", line)
		}
		var arg strings.Builder
		for {
			if body == "" {
				t.Fatalf("unclosed quote in %q", line)
			}
			c := body[0]
			if c == '"' {
				body = body[1:]
				break
			}
			if c == '\\' || c == '%' {
				if c == '%' && body[1] != '%' || c == '\\' && body[1] != '\\' && body[1] != '"' {
					t.Fatalf("bad escape at %q", body)
				}
				c, body = body[1], body[1:]
			}
			arg.WriteByte(c)
			body = body[1:]
		}
		if argv == nil {
			argv = append(argv, arg.String())
		} else {
			argv = append(argv, expand(arg.String()))
		}
		line = strings.TrimPrefix(body, " ")
	}
	return argv
}

func expand(arg string) string {
	var b strings.Builder
	for i := 0; i < len(arg); i++ {
		rest := arg[i:]
		switch {
		case strings.HasPrefix(rest, "$$"):
			b.WriteByte('$')
			i++
		case strings.HasPrefix(rest, "${") && strings.Contains(rest, "}"):
			i += strings.IndexByte(rest, '}')
		default:
			b.WriteByte(arg[i])
		}
	}
	return b.String()
}

// systemd itself reads the units and has nothing to say about them.
func TestVerify(t *testing.T) {
	analyze := systemdAnalyze(t)
	for _, name := range oddNames {
		home := filepath.Join(t.TempDir(), "home")
		j := job(t, "0 9 * * 1-5")
		j.Name, j.Cradle = name, filepath.Join(home, "100% $$ ${X}", "cradle")
		j.Folder, j.Cwd = filepath.Join(home, name), filepath.Join(home, name)
		files, err := Backend{home}.Files(j)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(j.Cwd, "SYSTEM.md"), "x", 0o600)
		write(t, j.Cradle, "#!/bin/sh\n", 0o700)
		for _, f := range files {
			write(t, f.Path, f.Content, 0o600)
		}
		cmd := exec.Command(analyze, "--user", "verify", files[0].Path, files[1].Path)
		cmd.Env = []string{"HOME=" + home, "XDG_RUNTIME_DIR=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "SYSTEMD_LOG_LEVEL=warning"}
		if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "cradle-reporter") {
			t.Errorf("%q: %v\n%s\n%s", name, err, out, files[0].Content)
		}
	}
}

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func systemdAnalyze(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("NOT CHECKED: this machine has no systemd-analyze, so nothing here compares our units with systemd's own reading")
	}
	return path
}

func TestSlugOf(t *testing.T) {
	b := Backend{"/home/u"}
	for name, want := range map[string]string{
		"cradle-a-12345678-daily.service": "daily", "cradle-a-12345678-a.b-c.service": "a.b-c",
		"cradle-a-12345678-daily.timer": "", "cradle-a-12345678-.service": "", "cradle-b-12345678-daily.service": "", "other.service": "",
	} {
		if slug, ok := b.SlugOf("a-12345678", name); slug != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", name, slug, ok)
		}
	}
}
