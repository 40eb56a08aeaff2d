package alias

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// place is a home, a working directory and a table.
type place struct{ home, cwd, settings string }

func newPlace(t *testing.T, settings string) place {
	t.Helper()
	p := place{home: filepath.Join(t.TempDir(), "home"), cwd: t.TempDir()}
	p.settings = SettingsPath(p.home)
	if err := os.MkdirAll(filepath.Dir(p.settings), 0o700); err != nil {
		t.Fatal(err)
	}
	if settings != "" {
		if err := os.WriteFile(p.settings, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p place) mkdir(t *testing.T, name string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(p.cwd, name), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestPathsAreNeverLookedUp(t *testing.T) {
	for ref, want := range map[string]string{
		"./my-agent": "/work/my-agent", "../x": "/x", "/abs/x/": "/abs/x", "~/x": "/work/~/x", ".": "/work", "..": "/", "a/b": "/work/a/b",
		"_x": "/work/_x", "a b": "/work/a b", "": "/work", "-x": "/work/-x", ".hidden": "/work/.hidden", "日本": "/work/日本",
	} {
		got, err := Resolve(ref, "/work", "/nowhere")
		if err != nil || !reflect.DeepEqual(got, Resolved{Dir: want}) {
			t.Errorf("%q: got %+v, %v; want %q", ref, got, err, want)
		}
	}
	p := newPlace(t, "not JSON")
	if _, err := Resolve("./a", p.cwd, p.home); err != nil {
		t.Errorf("the table was read for a path: %v", err)
	}
}

func TestAliasBecomesAbsoluteAndClean(t *testing.T) {
	p := newPlace(t, `{"agents":{
		"plain":{"path":"/abs/agents/my-agent"}, "slash":{"path":"/abs/agents/x/../my-agent/"}, "tilde":{"path":"~/agents/a"},
		"var":{"path":"$HOME/x","cwd":"$HOME/work"}, "home":{"path":"~","cwd":"~/dev/project/"}, "007":{"path":"/bond"}}}`)
	for ref, want := range map[string]Resolved{
		"plain": {Dir: "/abs/agents/my-agent"}, "slash": {Dir: "/abs/agents/my-agent"}, "tilde": {Dir: p.home + "/agents/a"},
		"var": {Dir: p.home + "/x", CWD: p.home + "/work"}, "home": {Dir: p.home, CWD: p.home + "/dev/project"}, "007": {Dir: "/bond"},
	} {
		want.Name = ref
		got, err := Resolve(ref, p.cwd, p.home)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", ref, got, err, want)
		}
	}
}

// TestWarningsAndFallback gives tables that can't serve the name, so that the directory of that name does.
func TestWarningsAndFallback(t *testing.T) {
	for settings, warning := range map[string]string{
		"":                                      "",
		"{}":                                    "",
		"[1,2,3]":                               "PATH: settings must be a JSON object — ignored",
		"null":                                  "PATH: settings must be a JSON object — ignored",
		`{"bogus":1,"more":2}`:                  "PATH: unsupported keys ignored: bogus, more",
		`{"agents":"nope"}`:                     "PATH: agents must be an object — ignored",
		`{"agents":null}`:                       "PATH: agents must be an object — ignored",
		`{"agents":{"hello":"nope"}}`:           `PATH: agents.hello must be an object with a "path" — ignored`,
		`{"agents":{"hello":[]}}`:               `PATH: agents.hello must be an object with a "path" — ignored`,
		`{"agents":{"hello":{}}}`:               "PATH: agents.hello.path must be a non-empty string — ignored",
		`{"agents":{"hello":{"path":3}}}`:       "PATH: agents.hello.path must be a non-empty string — ignored",
		`{"agents":{"hello":{"path":"   "}}}`:   "PATH: agents.hello.path must be a non-empty string — ignored",
		`{"agents":{"hello":{"path":"rel/x"}}}`: "PATH: agents.hello.path must be an absolute, ~/, or $HOME/ path — ignored: rel/x",
	} {
		p := newPlace(t, settings)
		p.mkdir(t, "hello")
		got, err := Resolve("hello", p.cwd, p.home)
		want := Resolved{Dir: filepath.Join(p.cwd, "hello")}
		if warning != "" {
			want.Warnings = []string{strings.ReplaceAll(warning, "PATH", p.settings)}
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", settings, got, err, want)
		}
	}
}

func TestBadWorkingDirectoryKeepsTheAlias(t *testing.T) {
	for _, cwd := range []string{`"relative/path"`, `""`, `"  "`, `3`, `null`, `{}`} {
		p := newPlace(t, `{"agents":{"a":{"path":"/abs/a","cwd":`+cwd+`}}}`)
		got, err := Resolve("a", p.cwd, p.home)
		want := Resolved{Dir: "/abs/a", Name: "a", Warnings: []string{p.settings + ": agents.a.cwd must be an absolute, ~/, or $HOME/ path — ignored"}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", cwd, got, err, want)
		}
	}
}

func TestEveryEntryIsChecked(t *testing.T) {
	p := newPlace(t, `{"agents":{"bad":7,"good":{"path":"/g","cwwd":"/x"},"1":{"path":""}}}`)
	got, err := Resolve("good", p.cwd, p.home)
	want := Resolved{Dir: "/g", Name: "good", Warnings: []string{
		p.settings + ": agents.1.path must be a non-empty string — ignored", // JavaScript lists a number first
		p.settings + `: agents.bad must be an object with a "path" — ignored`,
		p.settings + ": agents.good: unsupported keys ignored: cwwd",
	}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestShadowedDirectoryIsNamed(t *testing.T) {
	p := newPlace(t, `{"agents":{"hello":{"path":"/abs/agents/hello/"}}}`)
	p.mkdir(t, "hello")
	got, err := Resolve("hello", p.cwd, p.home)
	want := []string{`started alias "hello" (/abs/agents/hello) — a directory named hello exists in the current directory; use ./hello to run it instead`}
	if err != nil || got.Dir != "/abs/agents/hello" || !reflect.DeepEqual(got.Warnings, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestNothingFound(t *testing.T) {
	for settings, known := range map[string]string{
		"": "", `{"agents":{"x":1}}`: "", `{"agents":{"alpha":{"path":"/a"},"bad":{},"beta":{"path":"/b"},"2":{"path":"/c"}}}`: " (known agents: 2, alpha, beta)",
	} {
		p := newPlace(t, settings)
		got, err := Resolve("ghost", p.cwd, p.home)
		want := "Agent folder not found: " + p.cwd + `/ghost — and no "agents.ghost" entry in ` + p.settings + known
		if err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
		if bad := strings.Contains(settings, `"x"`) || strings.Contains(settings, "bad"); bad != (len(got.Warnings) == 1) {
			t.Errorf("%s: warnings beside the error: %q", settings, got.Warnings)
		}
	}
}

func TestUnusableTable(t *testing.T) {
	for settings, want := range map[string]string{
		"{": "is not valid JSON: ", "\ufeff{}": "is not valid JSON: ", "{\"agents\":\xff}": "is not valid JSON: ",
		strings.Repeat("[", 100000): "is not valid JSON: ", `"` + strings.Repeat("x", 10<<20) + `"`: "could not be read: ",
	} {
		p := newPlace(t, settings)
		p.mkdir(t, "hello")
		if _, err := Resolve("hello", p.cwd, p.home); err == nil || !strings.HasPrefix(err.Error(), p.settings+" "+want) {
			t.Errorf("%.20q: %v", settings, err)
		}
	}
	p := newPlace(t, "")
	if err := os.Symlink("gone", p.settings); err != nil {
		t.Fatal(err)
	}
	if _, err := Resolve("hello", p.cwd, p.home); err == nil || err.Error() != p.settings+" could not be read — broken symlink?" {
		t.Errorf("dangling: %v", err)
	}
}

func TestPathShapes(t *testing.T) {
	for _, p := range []string{"/", "/a", "~", "~/", "~/a", "$HOME", "$HOME/a", `C:\a`, "c:/a", `\\server\share`} {
		if !PathShaped(p) {
			t.Errorf("%q was refused", p)
		}
	}
	for _, p := range []string{"", "a", "./a", "../a", "--flag", "~a", "$HOMEx", "C:", "C:rel", `\a`, " /a", "$home/a"} {
		if PathShaped(p) {
			t.Errorf("%q was taken", p)
		}
	}
}

func TestExpandHomeIsTextual(t *testing.T) {
	for in, want := range map[string]string{
		"~": "/h", "~/x": "/h/x", "$HOME": "/h", "$HOME/x/../y/": "/h/x/../y/", "a~b": "a~b", "~x": "~x", "$HOMEx": "$HOMEx", "/a/~": "/a/~", "": "",
	} {
		if got := ExpandHome(in, "/h"); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzResolve(f *testing.F) {
	for _, ref := range []string{"a", "", ".", "~/x", "a/../..", "a\x00b", "007", "agent.v2"} {
		f.Add(ref, `{"agents":{"a":{"path":"~/x","cwd":"/y/../z"}}}`)
	}
	f.Add("a", `{"agents":{"a":{"path":"\ud800"}}}`)
	f.Fuzz(func(t *testing.T, ref, settings string) {
		p := newPlace(t, settings)
		got, err := Resolve(ref, p.cwd, p.home)
		if err != nil {
			return
		}
		if !filepath.IsAbs(got.Dir) || filepath.Clean(got.Dir) != got.Dir || (got.CWD != "" && !filepath.IsAbs(got.CWD)) {
			t.Fatalf("%q gives %+v", ref, got)
		}
		if got.Name != "" && !IsName(ref) {
			t.Fatalf("the path %q was looked up", ref)
		}
	})
}
