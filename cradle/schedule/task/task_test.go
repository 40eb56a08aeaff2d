package task

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const home = "/home/u"

func file(front, body string) string { return "---\n" + front + "\n---\n" + body }

func TestParse(t *testing.T) {
	const good = "cron: 0 9 * * 1-5\ncwd: ~/dev"
	for _, c := range []struct {
		name, content string
		want          Task // Slug and Path are the same in all
	}{
		{"minimal", file(good, "Hello."), Task{Name: "daily", Cron: "0 9 * * 1-5", Cwd: "/home/u/dev", Prompt: "Hello."}},
		{"all keys", file(good+"\nname: Daily\ndescription: What.\ntimezone: Europe/Berlin\nonFailure: [~/bin/notify, a b, '']", "Hello."),
			Task{Name: "Daily", Description: "What.", Cron: "0 9 * * 1-5", Cwd: "/home/u/dev", Prompt: "Hello.", Timezone: "Europe/Berlin", OnFailure: []string{"/home/u/bin/notify", "a b", ""}}},
		{"trimmed body", file(good, "\n\n  Line one.\nLine two. \n\n"), Task{Name: "daily", Cron: "0 9 * * 1-5", Cwd: "/home/u/dev", Prompt: "Line one.\nLine two."}},
		{"CRLF", strings.ReplaceAll(file(good, "Line one.\nLine two.\n"), "\n", "\r\n"), Task{Name: "daily", Cron: "0 9 * * 1-5", Cwd: "/home/u/dev", Prompt: "Line one.\nLine two."}},
		{"quoted tilde", file("cron: '@daily'\ncwd: '~'", "x"), Task{Name: "daily", Cron: "@daily", Cwd: "/home/u", Prompt: "x"}},
		{"cwd is cleaned", file("cron: '@daily'\ncwd: $HOME/a/../b/", "x"), Task{Name: "daily", Cron: "@daily", Cwd: "/home/u/b", Prompt: "x"}},
		{"empty name", file(good+"\nname: ''", "x"), Task{Cron: "0 9 * * 1-5", Cwd: "/home/u/dev", Prompt: "x"}},
		{"yes and dates are strings", file(good+"\nname: yes\ndescription: 2026-01-01", "x"), Task{Name: "yes", Description: "2026-01-01", Cron: "0 9 * * 1-5", Cwd: "/home/u/dev", Prompt: "x"}},
		{"last of two keys", file(good+"\nname: one\nname: two", "x"), Task{Name: "two", Cron: "0 9 * * 1-5", Cwd: "/home/u/dev", Prompt: "x"}},
		{"yaml alias", file("cron: &c '@daily'\nname: *c\ncwd: /w", "x"), Task{Name: "@daily", Cron: "@daily", Cwd: "/w", Prompt: "x"}},
		{"rule in the body", file(good, "a\n---\nb"), Task{Name: "daily", Cron: "0 9 * * 1-5", Cwd: "/home/u/dev", Prompt: "a\n---\nb"}},
		{"invalid cron is kept", file("cron: 99 * * * *\ncwd: /w", "x"), Task{Name: "daily", Cron: "99 * * * *", Cwd: "/w", Prompt: "x"}},
	} {
		got, warnings, ok := Parse("/a/schedule/daily.md", []byte(c.content), home)
		c.want.Slug, c.want.Path = "daily", "/a/schedule/daily.md"
		if !ok || len(warnings) > 0 || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: ok %v, warnings %q\n got %+v\nwant %+v", c.name, ok, warnings, got, c.want)
		}
	}
}

func TestParseWarnings(t *testing.T) {
	const (
		good      = "cron: '@daily'\ncwd: /w"
		noFront   = `missing YAML frontmatter block (a file starting with "---" and a closing "---") — ignored`
		badCwd    = "cwd must be an absolute, ~/, or $HOME/ path — ignored"
		nullCwd   = `cwd must be an absolute, ~/, or $HOME/ path (a bare "~" is YAML null — quote it as "~" or write ~/some/dir) — ignored`
		badCron   = "cron must be a non-empty string — ignored"
		badZone   = "timezone must be the name of a time zone, such as Europe/Berlin or UTC — ignored"
		badHook   = `onFailure must be a list of strings, a program and its arguments, such as ["notify-send", "report failed"] — ignored`
		notMap    = "frontmatter must be a YAML mapping — ignored"
		emptyBody = "body is empty — a schedule with no prompt does nothing — ignored"
	)
	for _, c := range []struct {
		content string
		want    []string // "…" at the end: any continuation
		kept    bool
	}{
		{"", []string{noFront}, false},
		{"hello", []string{noFront}, false},
		{"--- \n" + good + "\n---\nx", []string{noFront}, false},
		{"---\n" + good + "\n--- \nx", []string{noFront}, false},
		{"\n" + file(good, "x"), []string{noFront}, false},
		{file("cron: * * * * *\ncwd: /w", "x"), []string{"frontmatter is not valid YAML: …"}, false},
		{file("cron: */15 * * * *\ncwd: /w", "x"), []string{"frontmatter is not valid YAML: …"}, false},
		{file("cron: @daily\ncwd: /w", "x"), []string{"frontmatter is not valid YAML: …"}, false},
		{file("\xff: 1", "x"), []string{"frontmatter is not valid YAML: …"}, false},
		{"---\n---\nx", []string{notMap}, false},
		{file("# nothing", "x"), []string{notMap}, false},
		{file("- a", "x"), []string{notMap}, false},
		{file("just text", "x"), []string{notMap}, false},
		{file(good+"\n--- # two", "x"), []string{notMap}, false},
		{file(good+"\nmodel: x\nfoo: 1\nfoo: 2", "x"), []string{"unsupported keys ignored: model, foo"}, true},
		{file("cwd: /w", "x"), []string{badCron}, false},
		{file("cron: 5\ncwd: /w", "x"), []string{badCron}, false},
		{file("cron: '  '\ncwd: /w", "x"), []string{badCron}, false},
		{file("cron: [a]\ncwd: /w", "x"), []string{badCron}, false},
		{file("cron: '@daily'", "x"), []string{badCwd}, false},
		{file("cron: '@daily'\ncwd: rel/dir", "x"), []string{badCwd}, false},
		{file("cron: '@daily'\ncwd: ~", "x"), []string{nullCwd}, false},
		{file("cron: '@daily'\ncwd:", "x"), []string{nullCwd}, false},
		{file("cron: '@daily'\ncwd: true", "x"), []string{badCwd}, false},
		{file(good+"\nname: 5", "x"), []string{"name must be a string — ignored"}, true},
		{file(good+"\nname: 0x10", "x"), []string{"name must be a string — ignored"}, true},
		{file(good+"\nname:\ndescription: true", "x"), []string{"name must be a string — ignored", "description must be a string — ignored"}, true},
		{file("name: 5", ""), []string{badCron, badCwd, "name must be a string — ignored"}, false},
		{file(good, " \n\t\n"), []string{emptyBody}, false},
		{file(good, "a\x00b"), []string{"a NUL character can't be passed to a program — ignored"}, false},
		{file(good+"\ntimezone: Mars/Olympus", "x"), []string{badZone}, false},
		{file(good+"\ntimezone: Local", "x"), []string{badZone}, false},
		{file(good+"\ntimezone: ../../etc/passwd", "x"), []string{badZone}, false},
		{file(good+"\ntimezone:", "x"), []string{badZone}, false},
		{file(good+"\nonFailure: notify-send x", "x"), []string{badHook}, true},
		{file(good+"\nonFailure: []", "x"), []string{badHook}, true},
		{file(good+"\nonFailure: [a, 5]", "x"), []string{badHook}, true},
		{file(good+"\nonFailure: [./x]", "x"), []string{"onFailure must start with the name of a program on PATH or with an absolute, ~/, or $HOME/ path — ignored"}, true},
	} {
		got, warnings, ok := Parse("/a/schedule/x.md", []byte(c.content), home)
		matches := slices.EqualFunc(warnings, c.want, func(got, want string) bool {
			want = "/a/schedule/x.md: " + want
			if prefix, cut := strings.CutSuffix(want, "…"); cut {
				return strings.HasPrefix(got, prefix) && strings.HasSuffix(got, " — ignored")
			}
			return got == want
		})
		if !matches || ok != c.kept {
			t.Errorf("%q: ok %v, warnings %q, want %q", c.content, ok, warnings, c.want)
		}
		if ok && got.OnFailure != nil {
			t.Errorf("%q: a refused hook was kept: %q", c.content, got.OnFailure)
		}
	}
}

func TestLoad(t *testing.T) {
	folder := t.TempDir()
	dir := filepath.Join(folder, "schedule")
	var noDir *NoDirError
	if _, _, err := Load(folder, home); !errors.As(err, &noDir) || err.Error() != "No schedule/ directory in "+folder {
		t.Fatalf("without a directory: %v", err)
	}
	write(t, filepath.Join(folder, "schedules"), "even a file counts")
	if _, _, err := Load(folder, home); err == nil || err.Error() != "No schedule/ directory in "+folder+" — found schedules/, rename it to schedule/ (singular)" {
		t.Fatalf("with schedules: %v", err)
	}

	good := file("cron: '@daily'\ncwd: /w", "x")
	mkdir(t, filepath.Join(dir, "sub.md"))
	for _, name := range []string{"zebra.md", "alpha.md", "mid.md", "B.md", "notes.txt", "upper.MD", ".hidden.md", ".md", "a b.md"} {
		write(t, filepath.Join(dir, name), good)
	}
	write(t, filepath.Join(dir, "broken.md"), "no frontmatter")
	write(t, filepath.Join(dir, "huge.md"), good+strings.Repeat("x", maxFile))
	write(t, filepath.Join(folder, "elsewhere"), good)
	for link, target := range map[string]string{"linked.md": "../elsewhere", "dangling.md": "nowhere", "self.md": "self.md", "tofolder.md": "sub.md"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, pipe := range []string{filepath.Join(dir, "pipe.md"), filepath.Join(folder, "pipe")} {
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../pipe", filepath.Join(dir, "topipe.md")); err != nil {
		t.Fatal(err)
	}

	tasks, warnings, err := Load(folder, home)
	if err != nil {
		t.Fatal(err)
	}
	var slugs []string
	for _, task := range tasks {
		slugs = append(slugs, task.Slug)
	}
	if want := []string{"alpha", "B", "linked", "mid", "zebra"}; !slices.Equal(slugs, want) {
		t.Errorf("slugs %q, want %q", slugs, want)
	}
	const (
		link  = "could not be read — broken symlink? — ignored"
		onlyM = "only .md files are read from schedule/ — ignored"
		badN  = "filename must match ^[A-Za-z0-9][A-Za-z0-9._-]*$ — a schedule slug becomes a launchd label and a systemd unit name — ignored"
	)
	want := map[string]string{
		"sub.md": "subdirectories are not supported in schedule/ — ignored", "pipe.md": "only files are read from schedule/ — ignored",
		"notes.txt": onlyM, "upper.MD": onlyM, ".md": onlyM, ".hidden.md": badN, "a b.md": badN,
		"broken.md":   `missing YAML frontmatter block (a file starting with "---" and a closing "---") — ignored`,
		"huge.md":     "is larger than 1024 KiB — ignored",
		"dangling.md": link, "self.md": link, "tofolder.md": link, "topipe.md": link,
	}
	for name, text := range want {
		if !slices.Contains(warnings, filepath.Join(dir, name)+": "+text) {
			t.Errorf("no warning for %s: %q", name, text)
		}
	}
	if len(warnings) != len(want) {
		t.Errorf("%d warnings, want %d: %q", len(warnings), len(want), warnings)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	mkdir(t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(file("cron: '@daily'\ncwd: ~/x\nonFailure: [a, b]\ntimezone: UTC", "hello")))
	f.Add([]byte(file("a: &a [*a]\ncron: *a", "x")))
	f.Add([]byte(file("<<: {cron: x}", "x")))
	f.Add([]byte("---\r\n---\r\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		task, warnings, ok := Parse("/a/schedule/x.md", content, home)
		if !ok && len(warnings) == 0 {
			t.Fatal("dropped without a word")
		}
		for _, w := range warnings {
			if strings.ContainsAny(w, "\n\r") || !strings.HasPrefix(w, "/a/schedule/x.md: ") {
				t.Fatalf("warning %q", w)
			}
		}
		if ok && (task.Prompt == "" || !filepath.IsAbs(task.Cwd) && task.Cwd[1] != ':' && task.Cwd[0] != '\\' || task.Location() == nil) {
			t.Fatalf("unusable task %+v", task)
		}
	})
}
