package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// tool writes a program that runs script.
func tool(t *testing.T, name, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadVersion(t *testing.T) {
	for script, want := range map[string]string{
		`echo 'nono 0.68.0'`:                       "0.68.0",
		`echo 1.6.0`:                               "1.6.0",
		`echo 'sbx version: v0.35.0 abc'`:          "v0.35.0",
		`echo 'systemd 252 (252.38-1~deb12u1)'`:    "252.38-1~deb12u1)",
		`echo 'tmux next-3.5'`:                     "3.5",
		`echo 'no version'; echo 1.2.3`:            "",
		`echo 1.2.3 >&2`:                           "",
		`echo 1.2.3; exit 1`:                       "",
		`[ "$1" = --version ] && echo "2.0.0-rc1"`: "2.0.0-rc1",
	} {
		if got := readVersion(context.Background(), tool(t, "x", script), []string{"--version"}); got != want {
			t.Errorf("%s: got %q, want %q", script, got, want)
		}
	}
	if got := readVersion(context.Background(), "/no/such/program", nil); got != "" {
		t.Errorf("missing program: %q", got)
	}
}

func TestLeastRelease(t *testing.T) {
	for _, c := range []struct {
		name, prints string
		want         Status
	}{
		{"tmux", "tmux 3.2", OK}, {"tmux", "tmux 3.2a", OK}, {"tmux", "tmux 10.0", OK}, {"tmux", "tmux next-3.5", OK},
		{"tmux", "tmux 3.1c", Outdated}, {"tmux", "tmux 2.9", Outdated}, {"tmux", "tmux master", OK},
		{"node", "v22.19.0", OK}, {"node", "v24.0.0", OK}, {"node", "v22.18.9", Outdated}, {"node", "v20.20.2", Outdated},
	} {
		path := tool(t, c.name, "echo '"+c.prints+"'")
		r := Examine(context.Background(), Host{Find: func(name string) (string, bool) { return path, name == c.name }})
		for _, f := range r.More {
			if f.Name == c.name && (f.Status != c.want || (f.Hint == "") != (c.want == OK)) {
				t.Errorf("%s: %+v, want %s", c.prints, f, c.want)
			}
		}
		if r.Healthy {
			t.Error("healthy without pi")
		}
	}
}

func TestTextHasTheContractsLinesFirst(t *testing.T) {
	r := Report{Cradle: []Finding{
		{Name: "pi", Required: true, Status: OK, Path: "/shims/pi", Version: "1.2.3"},
		{Name: "nono", Status: OK, Path: "/shims/nono"},
		{Name: "sbx", Status: Missing, Hint: "note"},
	}}
	const want = "✓ pi       1.2.3  /shims/pi\n✓ nono     /shims/nono\n○ sbx      not found (recommended)\n  ⚠ note\n"
	if got := r.Text(); !strings.HasPrefix(got, want) {
		t.Errorf("got %q", got)
	}
	r.Cradle = append(r.Cradle, Finding{Name: "launchctl", Status: OK, Path: "/bin/launchctl"})
	if got := r.Text(); !strings.HasPrefix(got, "✓ pi        1.2.3  /shims/pi\n") || !strings.Contains(got, "✓ launchctl /bin/launchctl\n") {
		t.Errorf("got %q", got)
	}
	r.Cradle[0] = Finding{Name: "pi", Required: true, Status: Missing}
	if got := r.Text(); !strings.HasPrefix(got, "✗ pi        MISSING (required)\n") {
		t.Errorf("got %q", got)
	}
}

func TestNotes(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	for platform, want := range map[string][]string{
		"linux":   {"required for sandboxed runs", "required for sbx-backend runs", "recommended for `cradle schedule`", "systemd --user timers"},
		"darwin":  {"recommended for `cradle schedule`", "launchd LaunchAgents"},
		"freebsd": nil,
	} {
		r := Examine(context.Background(), Host{Platform: platform, Find: none})
		rows := 5
		if want == nil {
			rows = 4
		}
		if len(r.Cradle) != rows {
			t.Errorf("%s: %d rows", platform, len(r.Cradle))
		}
		text := r.Text()
		for _, fragment := range want {
			if !strings.Contains(text, fragment) {
				t.Errorf("%s: no %q in\n%s", platform, fragment, text)
			}
		}
		for _, f := range append(r.Cradle, r.More...) {
			if f.Hint == "" {
				t.Errorf("%s is missing without a hint", f.Name)
			}
		}
	}
}

// What nono answers decides, and an answer that can't be understood is no finding.
func TestInside(t *testing.T) {
	pi := tool(t, "pi", "")
	for script, want := range map[string]Status{
		`echo '{"status":"allowed"}'`: OK,
		`echo '{"status":"denied"}'`:  Hidden,
		`echo '{"status":"maybe"}'`:   "",
		`echo nonsense`:               "",
		`exit 3`:                      "",
	} {
		nono := tool(t, "nono", script)
		f, asked := inside(context.Background(), Host{Home: "/home/u", Find: func(name string) (string, bool) {
			return map[string]string{"pi": pi, "nono": nono}[name], name != "node"
		}})
		if asked != (want != "") || asked && (f.Status != want || (f.Hint == "") != (want == OK)) {
			t.Errorf("%s: %+v, %v", script, f, asked)
		}
	}
}

func TestHintsFitEightyColumns(t *testing.T) {
	checks := append(cradleChecks("darwin"), append(cradleChecks("linux"), squireChecks()...)...)
	for _, c := range checks {
		for _, hint := range []string{c.missing, c.outdated} {
			if n := utf8.RuneCountInString("  ⚠ " + hint); n > 80 {
				t.Errorf("%s: %d columns: %s", c.name, n, hint)
			}
		}
	}
}
