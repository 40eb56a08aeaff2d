package placetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pi-cradle/rpc/rpctest"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/gitws/gittest"
)

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDirectories(t *testing.T) {
	w := newWorld(t)
	sub := mkdir(t, w.repo.Path("sub dir"))
	home := mkdir(t, filepath.Join(w.home, "project"))
	other := gittest.Committed(t)
	link := filepath.Join(filepath.Dir(other.Dir), "link")
	if err := os.Symlink(other.Dir, link); err != nil {
		t.Fatal(err)
	}
	w.start()
	for name, c := range map[string]struct{ cwd, dir, mode, kind string }{
		"relative":  {"sub dir", sub, "existing", "git"},
		"upwards":   {"../repo/sub dir/.", sub, "existing", "git"},
		"home":      {"~", w.home, "existing", "non-git"},
		"in home":   {"~/project", home, "existing", "non-git"},
		"absolute":  {other.Dir, other.Dir, "existing", "git"},
		"a symlink": {link, other.Dir, "existing", "git"},
		"its own":   {".", w.repo.Dir, "inherited", "git"},
	} {
		res, d, a := w.started(args{"cwd": c.cwd})
		expect(t, name+": directory", d.Cwd, c.dir)
		expect(t, name+": where it starts", a.Cwd, c.dir)
		expect(t, name+": mode", d.Workspace.Mode, c.mode)
		expect(t, name+": workspace", d.Workspace.Cwd, c.dir)
		expect(t, name+": git", d.Workspace.Git.Kind, c.kind)
		expect(t, name+": window", d.WindowSession, "repo-delegates")
		told := c.mode != "inherited"
		expect(t, name+": it is told", strings.Contains(a.Prompt, c.dir), told)
		short := c.dir
		if rest, ok := strings.CutPrefix(short, w.home+"/"); ok {
			short = "~/" + rest
		}
		expect(t, name+": the parent is told", strings.Contains(res.Text, "it works in "+short), told)
		trust := "--no-approve"
		if c.dir == w.repo.Dir || c.dir == sub {
			trust = "--approve" // the parent's own repository
		}
		contains(t, name+": arguments", strings.Join(a.Args, " "), " "+trust+" ")
	}
	for _, none := range []any{nil, "", "null", "none", "false", "undefined"} {
		_, d, a := w.started(args{"cwd": none})
		if d.Cwd != w.repo.Dir || d.Workspace.Mode != "inherited" || strings.Contains(a.Prompt, w.repo.Dir) {
			t.Errorf("%v: %+v, %q", none, d, a.Prompt)
		}
	}
}

func TestDirectoriesThatAreRefused(t *testing.T) {
	w := newWorld(t).start()
	for _, c := range []struct {
		cwd  any
		says string
	}{
		{"nowhere", "does not exist"}, {"README", "is no directory"}, {"README/x", "can't be entered"}, {"~/nowhere", filepath.Join(w.home, "nowhere")},
		{"~nobody", "does not exist"}, {"$HOME", "does not exist"}, {"*", "does not exist"}, {"a\x00b", "not allowed"},
		{true, "true is no text"}, {3, "3 is no text"}, {[]string{"a"}, "is no text"}, {args{}, "is no text"},
	} {
		w.refused(args{"cwd": c.cwd}, c.says)
	}
	expect(t, "windows", w.windows(), "")
}

func TestDirectoryByCommand(t *testing.T) {
	w := newWorld(t)
	dir := mkdir(t, w.repo.Path(`sub "dir" \ here`))
	w.start()
	run := func(line string) {
		t.Helper()
		if err := w.pi.Command("delegate", line); err != nil {
			t.Fatal(err)
		}
	}
	run(`scout --cwd "sub \"dir\" \\ here" --label one Say "\x" twice; #{pane_id}`)
	run(`scout --label two --cwd "" look`)
	run(`scout --cwd null look`)
	list := w.record()
	expect(t, "delegations", len(list), 3)
	expect(t, "directory", list[0].Cwd, dir)
	w.arrived(list[0].ID)
	for _, d := range list[1:] {
		expect(t, "directory", d.Cwd, w.repo.Dir)
	}
	sent, err := filepath.Glob(filepath.Join(w.home, ".local/state/pi-session-mail", list[0].ID, "new", "*"))
	if err != nil || len(sent) != 1 {
		t.Fatalf("%v, %v", sent, err)
	}
	data, _ := os.ReadFile(sent[0])
	contains(t, "task", string(data), `"Say \"\\x\" twice; #{pane_id}"`)
	for line, says := range map[string]string{
		`scout --cwd "open look`: "no closing quote", "scout --cwd": "needs a value", "scout --cwd= look": "needs a value",
		"scout --cwd nowhere look": "does not exist", `scout --worktree "" look`: "needs a value",
	} {
		if err := w.pi.Command("delegate", line); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", line, err)
		}
	}
	expect(t, "delegations", len(w.record()), 3)
}

// A delegate leaves its directory as it is, and so does the launch.
func TestAnExistingDirectoryIsNotTouched(t *testing.T) {
	w := newWorld(t)
	other := gittest.Committed(t)
	other.Write("README", "edited\n")
	other.Write("new", "x")
	other.Git("add", "new")
	before := other.Git("status", "--porcelain=v2", "--branch")
	w.start()
	_, d, _ := w.started(args{"cwd": other.Dir})
	w.pi.Tool("delegation_close", args{"id": d.Delegation})
	w.fake("tmux", `case "$*" in *new-*) exit 1;; esac; exec $REAL "$@"`)
	w.refusedStart(args{"cwd": other.Dir}, "tmux opened no window")
	expect(t, "status", other.Git("status", "--porcelain=v2", "--branch"), before)
}

func TestTrustIsAskedForElsewhere(t *testing.T) {
	w := newWorld(t)
	other := gittest.Committed(t)
	mkdir(t, other.Path(".pi/extensions"))
	w.start()
	w.refused(args{"cwd": other.Dir}, "was cancelled")
	w.pi.On(wire.HostDialog, nil)
	w.pi.AnswerDialogs(wire.DialogResult{OK: true, Value: "Trust"})
	_, _, a := w.started(args{"cwd": other.Dir})
	contains(t, "arguments", strings.Join(a.Args, " "), " --approve ")
	if saved, err := rpctest.SavedTrust(w.agentDir); err != nil || !saved[other.Dir] {
		t.Errorf("saved %v, %v", saved, err)
	}
}

func TestCompletions(t *testing.T) {
	w := newWorld(t)
	mkdir(t, w.repo.Path("src/inner"))
	mkdir(t, w.repo.Path(".hidden"))
	mkdir(t, filepath.Join(w.home, "stuff"))
	w.repo.Write("srcfile", "")
	w.repo.Git("branch", "topic/x")
	w.start()
	for prefix, want := range map[string]string{
		"scout --cwd s":             "scout --cwd src/",
		"scout --cwd src/":          "scout --cwd src/inner/",
		"scout --cwd .h":            "scout --cwd .hidden/",
		"scout --cwd ~/st":          "scout --cwd ~/stuff/",
		"scout --cwd ~":             "scout --cwd ~/",
		"scout --cwd nowhere/":      "",
		"scout --worktree-source s": "scout --worktree-source src/",
		"scout --worktree-base top": "scout --worktree-base topic/x",
		"scout --worktree-b":        "scout --worktree-base",
		"scout --worktree x":        "",
		"scout --cw":                "scout --cwd",
	} {
		var got []string
		for _, item := range w.pi.Complete("delegate", prefix) {
			got = append(got, item.Value)
		}
		expect(t, prefix, strings.Join(got, ", "), want)
	}
}
