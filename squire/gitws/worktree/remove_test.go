package worktree

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pi-cradle/internal/run"
	"pi-cradle/squire/gitws"
	"pi-cradle/squire/gitws/gittest"
)

// only lists the one worktree there is.
func only(t *testing.T, r gittest.Repo) Worktree {
	t.Helper()
	list, err := List(context.Background(), in(r), r.Dir)
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	return list[0]
}

func remove(t *testing.T, r gittest.Repo, agreed string) Removal {
	t.Helper()
	done, err := Remove(context.Background(), in(r), only(t, r), agreed)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// work is what a delegate may have done, and what a removal comes to then.
type work struct {
	work   func(t *testing.T, r, w gittest.Repo)
	loss   string // "" when it is removed without a question
	branch string // why the branch is kept then; "" when it goes
}

var works = map[string]work{
	"nothing":      {func(t *testing.T, r, w gittest.Repo) {}, "", ""},
	"edits":        {func(t *testing.T, r, w gittest.Repo) { w.Write("README", "x") }, `unstaged: 1 path: "README"`, ""},
	"staged":       {func(t *testing.T, r, w gittest.Repo) { w.Write("a", "x"); w.Git("add", "a") }, `staged: 1 path: "a"`, ""},
	"untracked":    {func(t *testing.T, r, w gittest.Repo) { w.Write("a", "x") }, `untracked: 1 path: "a"`, ""},
	"ignored":      {func(t *testing.T, r, w gittest.Repo) { w.Write("out/a", "x") }, `ignored: 1 path: "out/"`, ""},
	"ignored copy": {func(t *testing.T, r, w gittest.Repo) { w.Write("out/a", "x"); r.Write("out/a", "x") }, "", ""},
	"committed":    {func(t *testing.T, r, w gittest.Repo) { w.Write("a", "x"); w.Commit("work") }, "", "it has commits that no other branch has"},
	"merged":       {func(t *testing.T, r, w gittest.Repo) { w.Commit("work"); r.Git("merge", "-q", "b") }, "", ""},
	"pushed": {func(t *testing.T, r, w gittest.Repo) {
		w.Commit("work")
		r.Git("update-ref", "refs/remotes/origin/b", "b")
	}, "", ""},
	"only tagged": {func(t *testing.T, r, w gittest.Repo) { w.Commit("work"); r.Git("tag", "v1", "b") }, "", "it has commits that no other branch has"},
	"amended": {func(t *testing.T, r, w gittest.Repo) {
		w.Commit("x")
		w.Git("commit", "-q", "--amend", "--allow-empty", "-m", "y")
		r.Git("merge", "-q", "b")
	}, "", "its reflog has commits that no other branch has"},
	"another branch": {func(t *testing.T, r, w gittest.Repo) { w.Git("checkout", "-q", "-b", "c"); w.Commit("work") }, "", ""},
	"detached":       {func(t *testing.T, r, w gittest.Repo) { w.Git("checkout", "-q", "--detach"); w.Commit("precious") }, "precious", ""},
	"left behind": {func(t *testing.T, r, w gittest.Repo) {
		w.Git("checkout", "-q", "--detach")
		w.Commit("precious")
		w.Git("checkout", "-q", "b")
	}, "precious", ""},
	"rebase": {func(t *testing.T, r, w gittest.Repo) {
		w.Write("README", "theirs")
		w.Commit("work")
		r.Write("README", "ours")
		r.Commit("other work")
		if _, err := w.Try("rebase", "main"); err == nil {
			t.Error("no conflict")
		}
	}, "unfinished: rebase", ""},
	"hidden": {func(t *testing.T, r, w gittest.Repo) {
		w.Git("update-index", "--assume-unchanged", "README")
		w.Write("README", "x")
	}, `hidden from git status: 1 path: "README"`, ""},
	"own ref": {func(t *testing.T, r, w gittest.Repo) {
		w.Git("checkout", "-q", "--detach")
		w.Git("update-ref", "refs/worktree/mine", w.Commit("precious"))
		w.Git("checkout", "-q", "b")
		w.Git("reflog", "expire", "--expire=all", "HEAD")
	}, "precious", ""},
	"orphan": {func(t *testing.T, r, w gittest.Repo) {
		w.Git("checkout", "-q", "--orphan", "fresh")
		w.Git("reset", "-q", "--hard")
	}, "on a branch without a commit", ""},
}

func TestRemoveLosesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range works {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := gittest.Committed(t)
			r.Write(".git/info/exclude", "out/\n")
			p, w := create(t, r, request(r, "b"))
			c.work(t, r, w)
			done := remove(t, r, "")
			text := strings.Join(done.Losses.Lines(), "\n")
			if c.loss != "" {
				if done.Removed || !strings.Contains(text, c.loss) || !exists(p.Path) {
					t.Fatalf("%+v\n%s", done, text)
				}
				if again := remove(t, r, "another digest"); again.Removed || again.Losses.Digest != done.Losses.Digest {
					t.Fatalf("without agreement: %+v", again)
				}
				if agreed := remove(t, r, done.Losses.Digest); !agreed.Removed || exists(p.Path) {
					t.Errorf("with agreement: %+v", agreed)
				}
				return
			}
			if !done.Removed || exists(p.Path) || done.Kept != c.branch || hasBranch(r, "b") != (c.branch != "") || (done.Branch == "b") != (c.branch != "") {
				t.Errorf("%+v\n%s", done, text)
			}
		})
	}
}

func TestAgreementIsToWhatWasShown(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	p, w := create(t, r, request(r, "b"))
	w.Write("a", "x")
	first := remove(t, r, "")
	w.Write("b", "more")
	if done := remove(t, r, first.Losses.Digest); done.Removed || !exists(p.Path) || done.Losses.Pending.Untracked.Total != 2 {
		t.Errorf("%+v", done)
	}
}

func TestRemoveWithSubmodules(t *testing.T) {
	t.Parallel()
	r, other := gittest.Committed(t), gittest.Committed(t)
	r.Git("submodule", "add", "-q", other.Dir, "module")
	r.Commit("submodule")
	p, w := create(t, r, request(r, "b"))
	w.Git("submodule", "update", "-q", "--init")
	module := w.At("module")
	module.Write("untracked", "x")
	if done := remove(t, r, ""); done.Removed || !strings.Contains(strings.Join(done.Losses.Lines(), "\n"), `submodule "module": 1 untracked`) {
		t.Errorf("%+v", done)
	}
	module.Commit("inside")
	w.Git("checkout", "-q", "--", ".")
	module.Git("checkout", "-q", "--detach", "HEAD~1")
	if done := remove(t, r, ""); done.Removed || !strings.Contains(strings.Join(done.Losses.Lines(), "\n"), `submodule "module": 1 commits on no remote branch`) {
		t.Errorf("%+v", done)
	}
	module.Git("push", "-q", "origin", "HEAD@{1}:refs/heads/saved")
	if done := remove(t, r, ""); !done.Removed || exists(p.Path) {
		t.Errorf("clean: %+v", done)
	}
}

func TestRemoveInUse(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	p, w := create(t, r, request(r, "b"))
	if err := os.Mkdir(w.Path("sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(gittest.Dir(t), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = run.Output(ctx, run.Cmd{Path: "/bin/sh", Args: []string{"-c", `echo >"$1"; exec sleep 1000`, "sh", pipe}, Dir: w.Path("sub")})
	}()
	if _, err := os.ReadFile(pipe); err != nil { // returns once the program runs
		t.Fatal(err)
	}
	if done := remove(t, r, ""); done.Removed || len(done.Losses.Processes) != 1 || !strings.Contains(strings.Join(done.Losses.Lines(), "\n"), "in use by process") {
		t.Errorf("%+v", done)
	}
	if left := RollBack(context.Background(), in(r), p); left.Path == "" || !exists(p.Path) {
		t.Errorf("%+v", left)
	}
	cancel()
	<-ended
	if done := remove(t, r, ""); !done.Removed {
		t.Errorf("%+v", done)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	r.Git("worktree", "add", "-q", "-b", "by-hand", "../by-hand")
	if list, err := List(context.Background(), in(r), r.Dir); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	_, one := create(t, r, request(r, "one"))
	w := only(t, one)
	if w.Path != one.Dir || w.Made != "one" || *w.Position.Branch != "one" || w.Ahead != 0 || w.State != gitws.Clean || !w.Merged || w.BaseBranch != "main" || w.ID != "id-one" {
		t.Errorf("%+v", w)
	}
	if text := w.Text(); text != one.Dir+": branch one, 0 commits ahead, clean, merged into main" {
		t.Errorf("%s", text)
	}
	one.Commit("work")
	one.Write("x", "x")
	if w = only(t, r); w.Ahead != 1 || w.State != gitws.Dirty || w.Merged || w.On != nil {
		t.Errorf("%+v", w)
	}
	r.Git("update-ref", "refs/remotes/origin/one", "one")
	r.Git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/one")
	r.Git("branch", "copy", "one")
	one.Git("checkout", "-q", "--detach")
	if text := only(t, r).Text(); text != one.Dir+": detached HEAD, 1 commit ahead, dirty, on copy and 2 more" {
		t.Errorf("%s", text)
	}
	one.Git("checkout", "-q", "one")
	r.Git("merge", "-q", "one")
	if w = only(t, r); !w.Merged {
		t.Errorf("%+v", w)
	}
	moved := one.At(one.Dir + " moved")
	r.Git("worktree", "move", one.Dir, moved.Dir)
	if w = only(t, r); w.Path != moved.Dir || w.Unsure != "" {
		t.Errorf("%+v", w)
	}
	r.Git("worktree", "lock", moved.Dir)
	if w = only(t, r); !w.Locked {
		t.Errorf("%+v", w)
	}
	if _, err := Remove(context.Background(), in(r), w, ""); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("%v", err)
	}
	r.Git("worktree", "unlock", moved.Dir)

	if err := os.RemoveAll(moved.Dir); err != nil {
		t.Fatal(err)
	}
	if w = only(t, r); !w.Missing || !strings.Contains(w.Text(), "its folder is gone") {
		t.Errorf("%+v", w)
	}
	moved.Write("x", "another folder in its place")
	if w = only(t, r); w.Unsure == "" {
		t.Errorf("%+v", w)
	}
	if _, err := Remove(context.Background(), in(r), w, ""); err == nil || !exists(moved.Path("x")) {
		t.Errorf("%v", err)
	}
	if err := os.RemoveAll(moved.Dir); err != nil {
		t.Fatal(err)
	}
	if done := remove(t, r, ""); !done.Removed || done.Branch != "" {
		t.Errorf("a folder that is gone: %+v", done)
	}
	if list, err := List(context.Background(), in(r), r.Dir); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := List(context.Background(), in(r), gittest.Dir(t)); err == nil {
		t.Error("outside of a repository")
	}
}

func TestParseLsof(t *testing.T) {
	t.Parallel()
	out := "p12\x00czsh\x00\nfcwd\x00n/w/sub\x00\np13\x00cvi\x00\nfcwd\x00n/work\x00\np14\x00cmake\x00\nfcwd\x00n/w\x00\n"
	found := parseLsof([]byte(out), "/w")
	if len(found) != 2 || found[0] != (Process{12, "zsh"}) || found[1] != (Process{14, "make"}) {
		t.Errorf("%+v", found)
	}
}

func FuzzParseLsof(f *testing.F) {
	f.Add("p12\x00czsh\x00\nfcwd\x00n/w/sub\x00\n", "/w")
	f.Fuzz(func(t *testing.T, out, dir string) {
		for _, p := range parseLsof([]byte(out), dir) {
			if p.PID <= 0 {
				t.Fatalf("%+v", p)
			}
		}
	})
}
