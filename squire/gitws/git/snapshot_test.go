package git

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pi-cradle/squire/gitws"
	"pi-cradle/squire/gitws/gittest"
)

func record(t *testing.T, r gittest.Repo) *gitws.Workspace {
	t.Helper()
	return &gitws.Workspace{Mode: gitws.Existing, Cwd: r.Dir, Git: gitws.Git{Kind: gitws.Checkout, State: inspect(t, r)}}
}

func snapshot(t *testing.T, r gittest.Repo, w *gitws.Workspace) gitws.Snapshot {
	t.Helper()
	s := in(r).Snapshot(context.Background(), w)
	if s.Kind != gitws.Checkout {
		t.Fatalf("%+v", s)
	}
	return s
}

func expect(t *testing.T, what string, got gitws.PathList, want ...string) {
	t.Helper()
	if want == nil {
		want = []string{}
	}
	if !slices.Equal(got.Paths, want) || got.Total != len(want) || got.Truncated {
		t.Errorf("%s: %+v, want %q", what, got, want)
	}
}

func TestSnapshotOfWork(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	r.Write("old name", strings.Repeat("line\n", 50))
	r.Write("sub/kept", "kept\n")
	base := r.Commit("second")
	sub := r.At("sub")
	w := record(t, sub)
	if s := snapshot(t, r, w); s.WorkingState != gitws.Clean || s.Ahead != 0 || *s.Head != base || *s.Baseline != base || s.Committed.Paths == nil {
		t.Errorf("at launch: %+v", s.Tree)
	}

	r.Git("mv", "old name", "new name")
	committed := r.Commit("rename")

	r.Git("mv", "new name", "newer name")
	r.Write("README", "changed\n")
	r.Write("both", "staged\n")
	r.Git("add", "both")
	r.Write("both", "and more\n")
	r.Write("two\nlines \"quoted\" ☃", "x")
	r.Write("sub/bytes-\xff", "x")

	// What a user may have configured changes nothing.
	for key, value := range map[string]string{
		"diff.relative": "true", "status.showUntrackedFiles": "no", "diff.ignoreSubmodules": "all", "diff.orderFile": "/nonexistent", "diff.renames": "copies",
		"core.quotePath": "true", "color.ui": "always", "core.fsmonitor": r.Path("evil"), "core.pager": r.Path("evil"), "diff.external": r.Path("evil"),
	} {
		r.Git("config", key, value)
	}
	r.Write(".git/info/exclude", "evil\nran\n")
	r.Write("evil", "#!/bin/sh\ntouch '"+r.Path("ran")+"'\n")
	if err := os.Chmod(r.Path("evil"), 0o755); err != nil {
		t.Fatal(err)
	}

	s := snapshot(t, r, w)
	if s.Ahead != 1 || *s.Head != committed || *s.Baseline != base || s.WorkingState != gitws.Dirty || branch(s.Position) != "main" {
		t.Errorf("%+v", s.Tree)
	}
	expect(t, "committed", s.Committed, "new name", "old name")
	expect(t, "staged", s.Pending.Staged, "both", "new name", "newer name")
	expect(t, "unstaged", s.Pending.Unstaged, "README", "both")
	expect(t, "untracked", s.Pending.Untracked, "sub/bytes-\ufffd", "two\nlines \"quoted\" ☃")
	expect(t, "conflicted", s.Pending.Conflicted)
	if _, err := os.Lstat(r.Path("ran")); err == nil {
		t.Error("a program of the repository's configuration ran")
	}
}

func TestSnapshotReadsOnly(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	w := record(t, r)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(r.Path("README"), old, old); err != nil { // git status would like to refresh the index now
		t.Fatal(err)
	}
	before, err := os.ReadFile(r.Path(".git/index"))
	if err != nil {
		t.Fatal(err)
	}
	r.Write(".git/index.lock", "")
	snapshot(t, r, w)
	if err := os.Remove(r.Path(".git/index.lock")); err != nil {
		t.Fatal(err)
	}
	snapshot(t, r, w)
	if after, err := os.ReadFile(r.Path(".git/index")); err != nil || !slices.Equal(before, after) {
		t.Errorf("the index changed (%v)", err)
	}
}

func TestSnapshotConflictsAndSubmodules(t *testing.T) {
	t.Parallel()
	r, other := gittest.Committed(t), gittest.Committed(t)
	r.Git("submodule", "add", "-q", other.Dir, "module")
	base := r.Commit("submodule")
	w := record(t, r)
	r.Git("checkout", "-q", "-b", "side")
	r.Write("README", "side\n")
	r.Commit("side")
	r.Git("checkout", "-q", "main")
	r.Write("README", "main\n")
	r.Commit("main")
	if _, err := r.Try("merge", "-q", "side"); err == nil {
		t.Fatal("no conflict")
	}
	r.Write("module/untracked", "x")
	s := snapshot(t, r, w)
	expect(t, "conflicted", s.Pending.Conflicted, "README")
	expect(t, "unstaged", s.Pending.Unstaged, "module")
	expect(t, "staged", s.Pending.Staged)
	r.Git("merge", "--abort")
	r.Git("checkout", "-q", "--detach", base)
	r.At("module").Commit("inside")
	r.Git("commit", "-qam", "move the submodule")
	s = snapshot(t, r, w)
	expect(t, "committed", s.Committed, "module")
	if !s.Position.Detached || s.Ahead != 1 || s.WorkingState != gitws.Clean {
		t.Errorf("detached: %+v", s.Tree)
	}
	moduleRecord := record(t, r.At("module"))
	r.Write("module/more", "x")
	expect(t, "in the submodule", snapshot(t, r, moduleRecord).Pending.Untracked, "more")
}

func TestSnapshotWithoutCommits(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	w := record(t, r)
	r.Write("staged", "x")
	r.Git("add", "staged")
	s := snapshot(t, r, w)
	if s.Head != nil || s.Baseline != nil || s.Ahead != 0 {
		t.Errorf("unborn: %+v", s.Tree)
	}
	expect(t, "staged", s.Pending.Staged, "staged")
	r.Commit("one")
	r.Write("sub/two", "x")
	r.Commit("two")
	s = snapshot(t, r, w)
	if s.Ahead != 2 || s.Baseline != nil {
		t.Errorf("two commits: %+v", s.Tree)
	}
	expect(t, "committed", s.Committed, "staged", "sub/two")

	w = record(t, r)
	r.Git("checkout", "-q", "--orphan", "fresh")
	s = snapshot(t, r, w)
	if s.Head != nil || s.Baseline == nil || branch(s.Position) != "fresh" || s.Ahead != 0 {
		t.Errorf("orphan branch: %+v", s.Tree)
	}
	data, err := json.Marshal(s)
	want := `{"kind":"git","position":{"branch":"fresh","detached":false},"head":null,"baseline":"` + *w.Git.Baseline + `","ahead":0,"workingState":"dirty","committed":{"paths":[],"total":0,"truncated":false},"pending":{"staged":{"paths":["staged","sub/two"],"total":2,"truncated":false},"unstaged":{"paths":[],"total":0,"truncated":false},"untracked":{"paths":[],"total":0,"truncated":false},"conflicted":{"paths":[],"total":0,"truncated":false}}}`
	if err != nil || string(data) != want {
		t.Errorf("%v\n%s\n%s", err, data, want)
	}
}

func TestSnapshotCountsAll(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	w := record(t, r)
	for i := range 250 {
		r.Write(fmt.Sprintf("f%03d", i), "")
	}
	s := snapshot(t, r, w)
	if l := s.Pending.Untracked; l.Total != 250 || len(l.Paths) != 100 || !l.Truncated || l.Paths[99] != "f099" {
		t.Errorf("%d of %d", len(l.Paths), l.Total)
	}
	for _, name := range []string{"committed", "renamed"} {
		dir := strings.Repeat(name[:1], 200)
		for i := range 90 {
			r.Write(fmt.Sprintf("%s/%03d", dir, i), name)
		}
	}
	r.Commit("long names")
	s = snapshot(t, r, w)
	size := len(strings.Join(s.Committed.Paths, ""))
	if s.Committed.Total != 430 || !s.Committed.Truncated || size > 16<<10 || size < 16<<10-204 {
		t.Errorf("%d bytes of %d paths", size, s.Committed.Total)
	}
}

func TestSnapshotOfAnotherPlace(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	outer := filepath.Dir(r.Dir)
	w := record(t, r)
	unknown := func(what string, w *gitws.Workspace, reason string) {
		t.Helper()
		if s := in(r).Snapshot(context.Background(), w); s.Kind != gitws.Unknown || !strings.Contains(s.Reason, reason) {
			t.Errorf("%s: %+v", what, s)
		}
	}
	r.Git("worktree", "add", "-q", "-b", "topic", "../linked")
	linked := record(t, r.At(filepath.Join(outer, "linked")))
	r.Git("worktree", "remove", "../linked")
	unknown("a removed worktree", linked, "the directory is gone")
	r.Write("../linked/x", "")
	unknown("a directory in its place", linked, "no longer at its location")
	r.Write("sub/x", "")
	sub := record(t, r.At("sub"))
	r.At("sub").Git("init", "-q")
	unknown("another repository in a subdirectory", sub, "no longer at its location")

	// A fresh clone in the place is as good as the old one when it has the launch commit.
	if err := os.Rename(r.Dir, r.Dir+"-moved"); err != nil {
		t.Fatal(err)
	}
	unknown("moved", w, "the directory is gone")
	moved := r.At(r.Dir + "-moved")
	moved.Git("clone", "-q", moved.Dir, r.Dir)
	if s := snapshot(t, r, w); s.WorkingState != gitws.Clean || s.Ahead != 0 {
		t.Errorf("a fresh clone: %+v", s.Tree)
	}
	if err := os.RemoveAll(r.Dir); err != nil {
		t.Fatal(err)
	}
	moved.Git("init", "-q", r.Dir)
	r.Write("other", "x")
	r.Commit("another history")
	unknown("another history", w, "the launch commit is missing")
	if err := os.RemoveAll(r.Path(".git")); err != nil {
		t.Fatal(err)
	}
	unknown("no repository any more", w, "no longer at its location")

	unknown("nothing recorded", nil, "recorded before its launch checkout was kept")
	unknown("unknown at launch", &gitws.Workspace{Cwd: r.Dir, Git: gitws.Unsure("why")}, "at launch was unknown")
	outside := &gitws.Workspace{Cwd: gittest.Dir(t), Git: gitws.Outside()}
	if s := in(r).Snapshot(context.Background(), outside); s.Kind != gitws.NonGit {
		t.Errorf("outside: %+v", s)
	}
	outside.Cwd = filepath.Join(outside.Cwd, "gone")
	unknown("outside and gone", outside, "the directory is gone")
}

// real passes everything but one subcommand on to git.
func except(subcommand, script string) string {
	return "for a in \"$@\"; do [ \"$a\" = " + subcommand + " ] && { " + script + "; }; done\nexec \"$REAL\" \"$@\""
}

func TestSnapshotLimits(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	w := record(t, r)
	r.Write("README", "changed")
	r.Commit("second")
	pids := filepath.Join(gittest.Dir(t), "pids")
	short := limits{command: 300 * time.Millisecond}
	for name, c := range map[string]struct {
		script string
		limits limits
		reason string
	}{
		"status hangs":     {except("status", "sleep 1000 & echo $! >>"+pids+"; wait"), short, "git did not answer within 300ms"},
		"rev-list hangs":   {except("rev-list", "sleep 1000 & echo $! >>"+pids+"; wait"), short, "git did not answer within 300ms"},
		"everything slow":  {"sleep 1000 & echo $! >>" + pids + "; wait", limits{snapshot: 300 * time.Millisecond}, "git did not finish within 300ms"},
		"status fails":     {except("status", "echo fatal: bad index >&2; exit 128"), limits{}, "fatal: bad index"},
		"floods stdout":    {except("status", "yes; exit"), limits{}, "output is larger"},
		"floods stderr":    {except("rev-list", "yes >&2; exit"), limits{}, "output is larger"},
		"floods in pieces": {except("status", "head -c 40000 /dev/zero; head -c 30000 /dev/zero >&2; exit"), limits{output: 65536}, "output is larger"},
		"half a list":      {except("diff-tree", "printf 'a\\0b'; exit"), limits{}, "middle"},
		"no number":        {except("rev-list", "echo many; exit"), limits{}, "number"},
		"odd status":       {except("status", "printf 'Z nonsense\\0'; exit"), limits{}, "not understood"},
	} {
		g := Git{Bin: gittest.Script(t, c.script), Env: r.Env, limits: c.limits}
		if c.limits.command == 0 {
			g.limits.command = time.Minute
		}
		if c.limits.snapshot == 0 {
			g.limits.snapshot = time.Minute
		}
		if s := g.Snapshot(context.Background(), w); s.Kind != gitws.Unknown || s.Tree != nil || !strings.Contains(s.Reason, c.reason) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	data, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(data)) {
		if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
			t.Errorf("process %s outlived its limit: %s", pid, stat)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if s := in(r).Snapshot(ctx, w); s.Kind != gitws.Unknown || !strings.Contains(s.Reason, "called off") {
		t.Errorf("called off: %+v", s)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	r := gittest.Committed(b)
	g := in(r)
	w := &gitws.Workspace{Cwd: r.Dir, Git: g.Inspect(context.Background(), r.Dir)}
	r.Write("README", "changed")
	r.Commit("second")
	for b.Loop() {
		if s := g.Snapshot(context.Background(), w); s.Kind != gitws.Checkout {
			b.Fatal(s.Reason)
		}
	}
}

func BenchmarkInspect(b *testing.B) {
	r := gittest.Committed(b)
	for b.Loop() {
		in(r).Inspect(context.Background(), r.Dir)
	}
}

// BenchmarkGitVersion is the floor: one git process.
func BenchmarkGitVersion(b *testing.B) {
	r := gittest.Committed(b)
	for b.Loop() {
		if _, err := in(r).In(r.Dir).Ask(context.Background(), "version"); err != nil {
			b.Fatal(err)
		}
	}
}
