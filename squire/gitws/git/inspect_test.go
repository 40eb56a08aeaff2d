package git

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pi-cradle/squire/gitws"
	"pi-cradle/squire/gitws/gittest"
)

func in(r gittest.Repo) Git { return Git{Env: r.Env} }

func inspect(t *testing.T, r gittest.Repo) *gitws.State {
	t.Helper()
	found := in(r).Inspect(context.Background(), r.Dir)
	if found.Kind != gitws.Checkout {
		t.Fatalf("%s: %+v", r.Dir, found)
	}
	return found.State
}

func branch(p gitws.Position) string {
	if p.Branch == nil || p.Detached {
		return "(detached)"
	}
	return *p.Branch
}

func TestInspectPlaces(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	sha := r.Git("rev-parse", "HEAD")
	r.Write("sub/dir/file", "x")
	r.Git("worktree", "add", "-q", "-b", "topic/one", "../linked")
	linked := r.At(filepath.Join(filepath.Dir(r.Dir), "linked"))

	for _, c := range []struct {
		name, root, branch string
		at                 gittest.Repo
	}{
		{"main", r.Dir, "main", r},
		{"subdirectory", r.Dir, "main", r.At("sub/dir")},
		{"linked worktree", linked.Dir, "topic/one", linked},
	} {
		s := inspect(t, c.at)
		want := gitws.Identity{MainRoot: r.Dir, CommonDir: r.Path(".git"), CheckoutRoot: c.root}
		if s.Identity != want || branch(s.Position) != c.branch || *s.Head != sha || *s.Baseline != sha {
			t.Errorf("%s: %+v on %s", c.name, s, branch(s.Position))
		}
	}
	link := filepath.Join(gittest.Dir(t), "link")
	if err := os.Symlink(linked.Dir, link); err != nil {
		t.Fatal(err)
	}
	if s := inspect(t, r.At(link)); s.Identity.CheckoutRoot != linked.Dir {
		t.Errorf("through a symlink: %+v", s.Identity)
	}
	linked.Git("checkout", "-q", "--detach")
	if s := inspect(t, linked); !s.Position.Detached || s.Position.Branch != nil || *s.Head != sha {
		t.Errorf("detached: %+v", s)
	}
	linked.Git("checkout", "-q", "-b", "(detached)")
	if s := inspect(t, linked); branch(s.Position) != "(detached)" || s.Position.Detached {
		t.Errorf("a branch with an odd name: %+v", s.Position)
	}
}

func TestInspectOddRepositories(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	outer := filepath.Dir(r.Dir)

	unborn := gittest.New(t)
	if s := inspect(t, unborn); s.Head != nil || s.Baseline != nil || branch(s.Position) != "main" {
		t.Errorf("without commits: %+v", s)
	}
	r.Git("clone", "-q", "--separate-git-dir", filepath.Join(outer, "elsewhere"), r.Dir, filepath.Join(outer, "separate"))
	separate := r.At(filepath.Join(outer, "separate"))
	if s := inspect(t, separate); s.Identity != (gitws.Identity{MainRoot: separate.Dir, CommonDir: filepath.Join(outer, "elsewhere"), CheckoutRoot: separate.Dir}) {
		t.Errorf("separate git dir: %+v", s.Identity)
	}
	r.Git("submodule", "add", "-q", separate.Dir, "module")
	module := r.At("module")
	if s := inspect(t, module); s.Identity != (gitws.Identity{MainRoot: module.Dir, CommonDir: r.Path(".git/modules/module"), CheckoutRoot: module.Dir}) {
		t.Errorf("submodule: %+v", s.Identity)
	}
	module.Git("worktree", "add", "-q", filepath.Join(outer, "module-linked"))
	if s := inspect(t, r.At(filepath.Join(outer, "module-linked"))); s.Identity.MainRoot != module.Dir {
		t.Errorf("linked worktree of a submodule: %+v", s.Identity)
	}
	broken := r.At(filepath.Join(outer, "new\nline"))
	r.Git("worktree", "add", "-q", "-b", "broken", broken.Dir)
	if s := inspect(t, broken); s.Identity.CheckoutRoot != broken.Dir || s.Identity.MainRoot != r.Dir {
		t.Errorf("a line break in a path: %+v", s.Identity)
	}

	// Git names no main checkout for these.
	r.Git("clone", "-q", "--bare", r.Dir, filepath.Join(outer, "bare.git"))
	bare := r.At(filepath.Join(outer, "bare.git"))
	bare.Git("worktree", "add", "-q", filepath.Join(outer, "of-bare"), "main")
	separate.Git("worktree", "add", "-q", filepath.Join(outer, "of-separate"))
	for _, name := range []string{"of-bare", "of-separate"} {
		if found := in(r).Inspect(context.Background(), filepath.Join(outer, name)); found.Kind != gitws.Unknown || !strings.Contains(found.Reason, "main checkout") {
			t.Errorf("%s: %+v", name, found)
		}
	}
	for _, dir := range []string{bare.Dir, r.Path(".git"), gittest.Dir(t)} {
		if found := in(r).Inspect(context.Background(), dir); found.Kind != gitws.NonGit {
			t.Errorf("%s: %+v", dir, found)
		}
	}
	// A .git that leads nowhere is a broken checkout and not no checkout.
	r.Write("../astray/.git", "gitdir: /nonexistent/place\n")
	if found := in(r).Inspect(context.Background(), filepath.Join(outer, "astray")); found.Kind != gitws.Unknown || found.Reason == "" {
		t.Errorf("a .git that leads nowhere: %+v", found)
	}
	if found := in(r).Inspect(context.Background(), filepath.Join(outer, "gone")); found.Kind != gitws.Unknown {
		t.Errorf("no directory: %+v", found)
	}
}

func TestInheritedVariablesCountForNothing(t *testing.T) {
	t.Parallel()
	r, other := gittest.Committed(t), gittest.Committed(t)
	trace := filepath.Join(gittest.Dir(t), "trace")
	g := Git{Env: append(r.Env, "GIT_DIR="+other.Path(".git"), "GIT_WORK_TREE="+other.Dir, "GIT_INDEX_FILE=/nonexistent", "GIT_TRACE="+trace)}
	found := g.Inspect(context.Background(), r.Dir)
	if found.Kind != gitws.Checkout || found.Identity.CheckoutRoot != r.Dir {
		t.Fatalf("%+v", found)
	}
	if snap := g.Snapshot(context.Background(), &gitws.Workspace{Cwd: r.Dir, Git: found}); snap.Kind != gitws.Checkout || snap.WorkingState != gitws.Clean {
		t.Errorf("%+v", snap)
	}
	if _, err := os.Stat(trace); err == nil {
		t.Error("git saw GIT_TRACE")
	}
}

func TestInspectSaysWhyItCannotTell(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	for name, c := range map[string]struct {
		bin    string
		reason string
	}{
		"missing": {"/nonexistent/git", "git was not found"},
		"hangs":   {gittest.Script(t, "sleep 1000 & wait"), "git did not answer within 300ms"},
		"fails":   {gittest.Script(t, "echo 'fatal: detected dubious ownership' >&2; exit 128"), "fatal: detected dubious ownership"},
		"silent":  {gittest.Script(t, "exit 128"), "git rev-parse failed"},
		"floods":  {gittest.Script(t, "yes"), "git's output is larger than the limit"},
		"killed":  {gittest.Script(t, "kill -9 $$"), "git rev-parse failed"},
		"lies":    {gittest.Script(t, "echo true"), ""},
	} {
		g := Git{Bin: c.bin, Env: r.Env, limits: limits{question: 300 * time.Millisecond, output: 100 << 10}}
		if name != "hangs" {
			g.limits.question = time.Minute
		}
		found := g.Inspect(context.Background(), r.Dir)
		if found.Kind != gitws.Unknown || found.Reason == "" || !strings.Contains(found.Reason, c.reason) {
			t.Errorf("%s: %+v", name, found)
		}
		if data, err := json.Marshal(found); err != nil || !strings.HasPrefix(string(data), `{"kind":"unknown","reason":"`) || strings.Contains(string(data), "identity") {
			t.Errorf("%s: %s, %v", name, data, err)
		}
	}
}

func TestProjectName(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	client := r.At(filepath.Join(filepath.Dir(r.Dir), "Client API"))
	r.Git("clone", "-q", r.Dir, client.Dir)
	client.Git("worktree", "add", "-q", "../elsewhere")
	client.Write("sub/x", "")
	plain := filepath.Join(gittest.Dir(t), "…my notes!")
	if err := os.Mkdir(plain, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{client.Dir: "Client-API", client.Path("sub"): "Client-API", client.Path("../elsewhere"): "Client-API", plain: "my-notes"} {
		w := gitws.Workspace{Cwd: dir, Git: in(r).Inspect(context.Background(), dir)}
		if name, notice := w.Project(); name != want || notice != "" {
			t.Errorf("%s: %q, %q", dir, name, notice)
		}
	}
	g := Git{Bin: "/nonexistent/git"}
	w := gitws.Workspace{Cwd: client.Path("sub"), Git: g.Inspect(context.Background(), client.Path("sub"))}
	if name, notice := w.Project(); name != "sub" || !strings.Contains(notice, "git was not found") {
		t.Errorf("%q, %q", name, notice)
	}
}
