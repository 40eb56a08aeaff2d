package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pi-cradle/cradle/state"
	"pi-cradle/internal/testenv"
)

// realNono finds nono. A fresh machine may lack it: it takes ten minutes to build.
func realNono(t *testing.T) string {
	t.Helper()
	home, _ := os.UserHomeDir()
	for _, dir := range append(filepath.SplitList(systemPath), filepath.Join(home, ".cargo", "bin")) {
		if path, err := exec.LookPath(filepath.Join(dir, "nono")); err == nil {
			return path
		}
	}
	fmt.Fprintf(os.Stderr, "\n*** %s DID NOT RUN: nono is not installed; internal/testenv/install-nono.sh installs it ***\n\n", t.Name())
	t.Skip("nono is not installed")
	return ""
}

// newSandboxWorld is a world that nono can sandbox: its home is not below /tmp, which nono's default profile opens for writing.
func newSandboxWorld(t *testing.T, files map[string]string, programs ...string) *world {
	t.Helper()
	base := filepath.Join(testenv.Repo(), ".cache")
	if strings.HasPrefix(base, "/tmp/") {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		base = filepath.Join(cache, "cradle-test")
	}
	if err := os.MkdirAll(base, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp(base, "nono-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(root); err != nil {
			t.Error(err)
		}
	})
	return newWorldIn(t, root, files, programs...)
}

// Every shape of profile that cradle writes is one that nono reads.
func TestRealNonoTakesEveryProfile(t *testing.T) {
	nono := realNono(t)
	for name, c := range map[string]struct {
		config string
		flags  []string
	}{
		"plain":       {`{}`, nil},
		"forced on":   {"", []string{"--sandbox"}},
		"offline":     {`{"network":{"allow_domain":["a.example"]}}`, []string{"--offline"}},
		"hosts":       {`{}`, []string{"--allow-host", "a.example", "--allow-host", "localhost"}},
		"network":     {`{"network":{"block":false,"network_profile":"developer","allow_domain":["a.example","b.example"],"open_port":[8080,0],"listen_port":[3000]}}`, nil},
		"filesystem":  {`{"filesystem":{"read":["~/a","$HOME/b","/opt/x y"],"write":["~/w"],"allow":["~"],"unix_socket_dir_bind":["~/s"]}}`, nil},
		"seatbelt":    {`{"unsafe_macos_seatbelt_rules":["(allow mach-register)","(allow iokit-open)"]}`, nil},
		"odd names":   {`{"filesystem":{"read":["/a\"b\\c","/ünï","/tab\there"]}}`, nil},
		"all dropped": {`{"network":"x","filesystem":7,"net":1,"bogus":true}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			if c.config != "" {
				files["agent/sandbox/nono.json"] = c.config
			}
			w := newWorld(t, files, "pi", "nono")
			if out, err := w.cradle(append([]string{"run", w.agent}, c.flags...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			validate := exec.Command(nono, "profile", "validate", w.state().Profile())
			validate.Env = w.env
			if out, err := validate.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestRealNonoHoldsTheNetwork(t *testing.T) {
	w := newShellWorld(t, realNono(t))
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	script := fmt.Sprintf("bash -c 'exec 3<>/dev/tcp/%s' 2>/dev/null && echo connected || echo refused", strings.Replace(server.Listener.Addr().String(), ":", "/", 1))
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{nil, "connected\n"},
		{[]string{"--offline"}, "refused\n"},
		{[]string{"--allow-host", "elsewhere.example"}, "refused\n"},
		{[]string{"--no-sandbox"}, "connected\n"},
	} {
		cmd := w.cradle(append(append([]string{"run", w.agent}, c.flags...), "--", script)...)
		if out, err := cmd.Output(); err != nil || !strings.HasSuffix(string(out), c.want) {
			t.Errorf("%q: %v, %q", c.flags, err, out)
		}
	}
}

// newShellWorld is a sandbox world in which a shell plays pi, and may read itself.
func newShellWorld(t *testing.T, nono string) *world {
	t.Helper()
	w := newSandboxWorld(t, map[string]string{"shell/pi": shellPi})
	shell := filepath.Join(w.root, "shell")
	if err := os.Chmod(filepath.Join(shell, "pi"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(nono, filepath.Join(w.bin, "nono")); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "PATH="+shell+":"+w.bin+":/usr/bin:/bin", "ROOT="+w.root)
	w.write("agent/sandbox/nono.json", fmt.Sprintf(`{"filesystem":{"read":[%q]}}`, shell))
	return w
}

// A shell stands in for pi and carries out the last argument inside the sandbox.
const shellPi = "#!/bin/sh\nfor last; do :; done\neval \"$last\"\n"

func TestRealNonoHoldsPi(t *testing.T) {
	nono := realNono(t)
	w := newShellWorld(t, nono)
	for name, text := range map[string]string{
		"granted/file": "granted\n", "readable/file": "readable\n", "secret/file": "secret\n", "agent/sandbox/sbx.json": `{"sandbox":false}`,
		"home/.gitconfig": "[user]\n\tname = t\n\temail = t@example.com\n[init]\n\tdefaultBranch = main\n",
	} {
		w.write(name, text)
	}
	w.write("agent/sandbox/nono.json", fmt.Sprintf(`{"filesystem":{"read":[%q,%q],"allow":[%q]}}`,
		filepath.Join(w.root, "shell"), filepath.Join(w.root, "readable"), filepath.Join(w.root, "granted")))
	// nono hides /etc/gitconfig, and git gives up when it is there and can't be read.
	w.env = append(w.env, "GIT_CONFIG_NOSYSTEM=1")
	git := exec.Command("git", "init", "-q", filepath.Join(w.root, "repo"))
	git.Env = w.env
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, args := range [][]string{{"commit", "-q", "--allow-empty", "-m", "x"}, {"worktree", "add", "-q", filepath.Join(w.root, "linked")}} {
		git := exec.Command("git", append([]string{"-C", filepath.Join(w.root, "repo")}, args...)...)
		git.Env = w.env
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}

	for name, c := range map[string]struct {
		script, stdout string
		code           int
	}{
		"granted is readable":          {`cat "$ROOT/granted/file"`, "granted\n", 0},
		"granted is writable":          {`echo new >"$ROOT/granted/new" && cat "$ROOT/granted/new"`, "new\n", 0},
		"read is readable":             {`cat "$ROOT/readable/file"`, "readable\n", 0},
		"read is not writable":         {`echo x 2>/dev/null >"$ROOT/readable/file" || echo refused`, "refused\n", 0},
		"the rest is not readable":     {`cat "$ROOT/secret/file" 2>/dev/null || echo refused`, "refused\n", 0},
		"the rest is not writable":     {`echo x 2>/dev/null >"$ROOT/secret/new" || echo refused`, "refused\n", 0},
		"the account file is hidden":   {`cat /etc/passwd 2>/dev/null || echo refused`, "refused\n", 0},
		"the project is writable":      {`echo mine >here && cat here && rm here`, "mine\n", 0},
		"the agent is readable":        {`cat "$ROOT/agent/SYSTEM.md"`, "x", 0},
		"the agent is not writable":    {`echo x 2>/dev/null >"$ROOT/agent/SYSTEM.md" || echo refused`, "refused\n", 0},
		"the state is writable":        {`: >"$MISE_CACHE_DIR.probe" && echo ok`, "ok\n", 0},
		"the alias table is not":       {`mkdir "$HOME/.cradle/x" 2>/dev/null || echo refused`, "refused\n", 0},
		"the exit code comes through":  {`exit 9`, "", 9},
		"the signal comes through":     {`kill -TERM $$`, "", 143},
		"git status in a linked tree":  {`cd "$ROOT/linked" 2>/dev/null && git status --short && echo clean`, "clean\n", 0},
		"git commit in a linked tree":  {`echo x >file && git add file && git commit -q -m y && git log --format=%s -1`, "y\n", 0},
		"another checkout is not ours": {`git -C "$ROOT/repo" log -1 2>/dev/null >/dev/null || echo refused`, "refused\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := w.cradle("run", w.agent, "--", c.script)
			if strings.HasPrefix(name, "git ") {
				cmd.Dir = filepath.Join(w.root, "linked")
			}
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			code := exitCode(t, cmd.Run())
			if want := "🔒 Sandbox Active\n" + c.stdout; code != c.code || stdout.String() != want || stderr.String() != "" {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, &stdout, &stderr)
			}
		})
	}
}

// nono says nothing about a pi that it keeps from starting, so cradle does.
func TestRealNonoThatHidesPi(t *testing.T) {
	nono := realNono(t)
	w := newShellWorld(t, nono)
	w.write("agent/sandbox/nono.json", "{}")
	var stderr bytes.Buffer
	cmd := w.cradle("run", w.agent)
	cmd.Stderr = &stderr
	if code := exitCode(t, cmd.Run()); code != 127 || !strings.Contains(stderr.String(), filepath.Join(w.root, "shell")) {
		t.Errorf("exit code %d, stderr %q", code, &stderr)
	}
}

func (w *world) state() state.Dir {
	return state.ForFolder(w.agent, filepath.Join(w.root, "home"), filepath.Join(w.root, "state"))
}

// The doctor asks nono beforehand what a run would find out the hard way.
func TestRealNonoTellsTheDoctor(t *testing.T) {
	nono := realNono(t)
	for _, c := range []struct{ pi, want string }{
		{"home/.local/share/mise/shims/pi", "✓ pi in nono    "},
		{"home/elsewhere/pi", "○ pi in nono    "},
	} {
		w := newSandboxWorld(t, map[string]string{c.pi: shellPi})
		pi := filepath.Join(w.root, c.pi)
		if err := os.Chmod(pi, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(nono, filepath.Join(w.bin, "nono")); err != nil {
			t.Fatal(err)
		}
		w.env = append(w.env, "PATH="+filepath.Dir(pi)+":"+w.bin+":/usr/bin:/bin")
		out, err := w.cradle("doctor").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "\n"+c.want+pi+"\n") {
			t.Errorf("%v, want %q in\n%s", err, c.want+pi, out)
		}
	}
}
