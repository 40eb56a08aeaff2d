package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"pi-cradle/internal/usererr"
	"pi-cradle/squire/gitws"
	"pi-cradle/squire/gitws/git"
	"pi-cradle/squire/gitws/gittest"
)

func in(r gittest.Repo) git.Git { return git.Git{Env: r.Env} }

func request(r gittest.Repo, branch string) Request {
	return Request{ID: "id-" + branch, Source: r.Dir, Branch: branch, Placement: gitws.Placement{Home: "/nonexistent", Dir: "/nonexistent"}}
}

func prepare(t *testing.T, r gittest.Repo, req Request) Plan {
	t.Helper()
	p, err := Prepare(context.Background(), in(r), req)
	if err != nil {
		t.Fatal(usererr.Text(err, "  "))
	}
	return p
}

// create makes a worktree and gives it as a repository to work in.
func create(t *testing.T, r gittest.Repo, req Request) (Plan, gittest.Repo) {
	t.Helper()
	p := prepare(t, r, req)
	if _, err := Create(context.Background(), in(r), p); err != nil {
		t.Fatal(err)
	}
	return p, r.At(p.Path)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func hasBranch(r gittest.Repo, name string) bool {
	_, err := r.Try("show-ref", "--verify", "--quiet", "refs/heads/"+name)
	return err == nil
}

func TestCreate(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	r.Write("sub/dir/file", "x")
	base := r.Commit("second")
	r.Git("tag", "feature/topic", "HEAD~1") // a tag of the same name leads nowhere else
	r.Write("README", "not committed\n")
	r.Write("new", "x")
	r.Write(".git/index.lock", "") // somebody is committing
	req := request(r, "feature/topic")
	req.Source = r.Path("sub/dir")
	p := prepare(t, r, req)
	want := filepath.Join(filepath.Dir(r.Dir), "repo-worktrees", "feature-topic")
	if p.Path != want || p.Base != base || p.SourceBranch != "main" || p.Left.Short() != "1 unstaged, 1 untracked" || exists(p.Path) || hasBranch(r, "feature/topic") {
		t.Fatalf("%+v", p)
	}
	data, err := json.Marshal(p)
	var back Plan
	if err != nil || json.Unmarshal(data, &back) != nil || !reflect.DeepEqual(p, back) {
		t.Errorf("came back as %+v (%v)", back, err)
	}
	if err := os.Remove(r.Path(".git/index.lock")); err != nil {
		t.Fatal(err)
	}
	r.Git("commit", "-qam", "HEAD moves on")
	r.Write(".git/index.lock", "")
	if _, err := Create(context.Background(), in(r), p); err != nil {
		t.Fatal(err)
	}
	w := r.At(p.Path)
	if head := w.Git("rev-parse", "HEAD"); head != base || w.Git("symbolic-ref", "HEAD") != "refs/heads/feature/topic" || w.Git("status", "--porcelain") != "" {
		t.Errorf("at %s", head)
	}
	if found := in(r).Inspect(context.Background(), p.Path); !reflect.DeepEqual(found, p.Workspace().Git) {
		t.Errorf("%+v\n%+v", found.State, p.Workspace().Git.State)
	}
	if _, err := r.Try("config", "--get-regexp", "^branch[.]feature"); err == nil {
		t.Error("the branch has a configuration")
	}
	if text := strings.Join(p.Notes(Copied{}), "\n"); !strings.Contains(text, "1 unstaged, 1 untracked in "+r.Dir) || strings.Contains(p.Context(), r.Dir+" ") {
		t.Errorf("%s\n%s", text, p.Context())
	}
	if text := SourceChanged(context.Background(), in(r), p); text == "" {
		t.Error("the source's move is not seen")
	}

	// From a linked worktree, the place is that of the main checkout.
	req = request(w, "second")
	q := prepare(t, w, req)
	if q.Path != filepath.Join(filepath.Dir(p.Path), "second") || q.Source.MainRoot != r.Dir || q.SourceBranch != "feature/topic" || q.Base != base {
		t.Errorf("%+v", q)
	}
	if text := SourceChanged(context.Background(), in(r), q); text != "" {
		t.Errorf("nothing has changed: %s", text)
	}
}

func TestBases(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	first := r.Git("rev-parse", "HEAD")
	second := r.Commit("second")
	r.Git("tag", "-a", "-m", "annotated", "v1", first)
	r.Git("update-ref", "refs/remotes/origin/main", first)
	r.Git("checkout", "-q", "--detach")
	for base, want := range map[string]string{"": second, "v1": first, "origin/main": first, "HEAD~1": first, first[:8]: first, "main": second} {
		req := request(r, "b")
		req.Base = base
		if p := prepare(t, r, req); p.Base != want || p.SourceBranch != "" {
			t.Errorf("%q: %s", base, p.Base)
		}
	}
	// Without a commit under HEAD only a named base will do.
	r.Git("checkout", "-q", "--orphan", "fresh")
	req := request(r, "b")
	if _, err := Prepare(context.Background(), in(r), req); err == nil || !strings.Contains(err.Error(), "no commits yet") {
		t.Errorf("unborn: %v", err)
	}
	req.Base = "v1"
	if _, w := create(t, r, req); w.Git("rev-parse", "HEAD") != first {
		t.Error("not at the tag")
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	r.Git("branch", "taken")
	r.Git("checkout", "-q", "-b", "other")
	r.Write("../repo-worktrees/full/x", "")
	if err := os.MkdirAll(r.Path("../repo-worktrees/empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	plain := gittest.Dir(t)
	for name, c := range map[string]struct {
		change func(*Request)
		why    string
	}{
		"outside":       {func(r *Request) { r.Source = plain }, "not in a Git checkout"},
		"gone":          {func(r *Request) { r.Source = plain + "/gone" }, "the directory is gone"},
		"taken":         {func(r *Request) { r.Branch = "taken" }, "exists already"},
		"name":          {func(r *Request) { r.Branch = "a..b" }, "not a valid branch name"},
		"no name":       {func(r *Request) { r.Branch = "" }, "not a valid branch name"},
		"option":        {func(r *Request) { r.Branch = "--detach" }, "not a valid branch name"},
		"expression":    {func(r *Request) { r.Branch = "@{-1}" }, "not a valid branch name"},
		"line break":    {func(r *Request) { r.Branch = "a\nb" }, "not a valid branch name"},
		"base":          {func(r *Request) { r.Base = "nowhere" }, "names no commit"},
		"base option":   {func(r *Request) { r.Base = "--all" }, "names no commit"},
		"base blob":     {func(r *Request) { r.Base = "HEAD:README" }, "names no commit"},
		"folder":        {func(r *Request) { r.Branch = "full" }, "exists already"},
		"empty folder":  {func(r *Request) { r.Branch = "empty" }, "exists already"},
		"template":      {func(r *Request) { r.Placement.Root = "{x}" }, "unknown placeholder"},
		"in git's own":  {func(q *Request) { q.Placement.Root = r.Path(".git/x") }, "inside of Git's own folder"},
		"below a file":  {func(q *Request) { q.Placement.Root = r.Path("README/x") }, "can't be used"},
		"the checkout":  {func(q *Request) { q.Placement.Root = r.Dir }, "exists already"},
		"two the same":  {func(q *Request) { q.Placement.ByRepo = map[string]string{r.Dir: "/a", r.Dir + "/.": "/b"} }, "same repository"},
		"through links": {func(q *Request) { q.Placement.ByRepo = map[string]string{r.Dir: "/a", link(t, r.Dir): "/b"} }, "same repository"},
	} {
		req := request(r, "fresh")
		c.change(&req)
		if p, err := Prepare(context.Background(), in(r), req); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, %+v", name, err, p)
		}
	}
	if r.Git("worktree", "list", "--porcelain") != "worktree "+r.Dir+"\nHEAD "+r.Git("rev-parse", "HEAD")+"\nbranch refs/heads/other\n" {
		t.Error("something was made")
	}
}

func link(t *testing.T, to string) string {
	t.Helper()
	path := filepath.Join(gittest.Dir(t), "link")
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTenAtOnce(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	errs := make([]error, 12)
	plans := make([]Plan, len(errs))
	for i := range plans {
		plans[i] = prepare(t, r, request(r, fmt.Sprintf("b%d", i)))
	}
	// One wants the place of another, and one its branch.
	plans[10].Path = plans[0].Path
	plans[11].Branch = plans[1].Branch
	var all sync.WaitGroup
	for i := range plans {
		all.Go(func() { _, errs[i] = Create(context.Background(), in(r), plans[i]) })
	}
	all.Wait()
	for i := 2; i < 10; i++ {
		if errs[i] != nil {
			t.Errorf("%d: %v", i, errs[i])
		}
	}
	for _, pair := range [][2]int{{0, 10}, {1, 11}} {
		if (errs[pair[0]] == nil) == (errs[pair[1]] == nil) {
			t.Errorf("%v: %v, %v", pair, errs[pair[0]], errs[pair[1]])
		}
		for _, i := range pair {
			var failed *FailedError
			if errs[i] != nil && (!errors.As(errs[i], &failed) || failed.Left.Any()) {
				t.Errorf("%d: %v", i, errs[i])
			}
		}
	}
	list, err := List(context.Background(), in(r), r.Dir)
	if err != nil || len(list) != 10 {
		t.Errorf("%d worktrees, %v", len(list), err)
	}
	if n := len(strings.Fields(r.Git("for-each-ref", "--format=%(refname)", "refs/heads"))); n != 11 {
		t.Errorf("%d branches", n)
	}
}

func TestSparseAndSubmodules(t *testing.T) {
	t.Parallel()
	r, other := gittest.Committed(t), gittest.Committed(t)
	r.Git("submodule", "add", "-q", other.Dir, "module")
	r.Write("in/x", "x")
	r.Write("out/y", "y")
	r.Commit("files")
	r.Git("config", "submodule.recurse", "true")
	r.Git("sparse-checkout", "set", "in")
	p, w := create(t, r, request(r, "b"))
	if exists(w.Path("out/y")) || !exists(w.Path("in/x")) || exists(w.Path("module/README")) || w.Git("status", "--porcelain") != "" {
		t.Error("neither sparse nor without submodules")
	}
	if left := RollBack(context.Background(), in(r), p); left.Any() || exists(p.Path) || hasBranch(r, "b") {
		t.Errorf("%+v", left)
	}
}

// hook installs a hook of the repository.
func hook(r gittest.Repo, dir, name, script string) {
	r.T.Helper()
	r.Write(dir+"/"+name, "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(r.Path(dir+"/"+name), 0o755); err != nil {
		r.T.Fatal(err)
	}
}

func TestHooks(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	hook(r, "my hooks", "post-checkout", `pwd >"`+r.Path("seen")+`"; env | grep ^GIT_INDEX_FILE= >>"`+r.Path("seen")+`"; sleep 1000 & exit 0`)
	r.Git("config", "core.hooksPath", r.Path("my hooks"))
	r.Env = append(r.Env, "GIT_INDEX_FILE=/nonexistent/index")
	p, _ := create(t, r, request(r, "good"))
	if seen, err := os.ReadFile(r.Path("seen")); err != nil || string(seen) != p.Path+"\n" {
		t.Errorf("the hook saw %q, %v", seen, err)
	}

	hook(r, "my hooks", "post-checkout", `echo no thanks >&2; exit 3`)
	p = prepare(t, r, request(r, "bad"))
	var failed *FailedError
	if _, err := Create(context.Background(), in(r), p); !errors.As(err, &failed) || !strings.Contains(err.Error(), "no thanks") || failed.Left.Any() || exists(p.Path) || hasBranch(r, "bad") {
		t.Errorf("a hook that fails: %v", err)
	}
	hook(r, "my hooks", "post-checkout", `echo precious >work; exit 3`)
	if _, err := Create(context.Background(), in(r), p); !errors.As(err, &failed) || failed.Left.Path != p.Path || failed.Left.Branch != "bad" || !exists(p.Path+"/work") || !strings.Contains(err.Error(), `untracked: 1 path: "work"`) {
		t.Errorf("a hook that leaves work: %v", err)
	}
	hook(r, "my hooks", "post-checkout", `git checkout -q -b elsewhere`)
	p = prepare(t, r, request(r, "moved"))
	if _, err := Create(context.Background(), in(r), p); !errors.As(err, &failed) || failed.Left.Path != p.Path || !exists(p.Path) {
		t.Errorf("a hook that moves: %v", err)
	}
	hook(r, "my hooks", "reference-transaction", `cat >/dev/null; echo frozen >&2; exit 1`)
	p = prepare(t, r, request(r, "frozen"))
	if _, err := Create(context.Background(), in(r), p); !errors.As(err, &failed) || failed.Left.Any() || exists(p.Path) {
		t.Errorf("a hook that forbids the branch: %v", err)
	}
}

func TestRollBackProvesWhatItTakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change       func(r, w gittest.Repo)
		path, branch bool // what stays
	}{
		"pristine":       {func(r, w gittest.Repo) {}, false, false},
		"folder deleted": {func(r, w gittest.Repo) { _ = os.RemoveAll(w.Dir) }, false, false},
		"edit":           {func(r, w gittest.Repo) { w.Write("README", "x") }, true, true},
		"untracked":      {func(r, w gittest.Repo) { w.Write("new", "x") }, true, true},
		"ignored":        {func(r, w gittest.Repo) { r.Write(".git/info/exclude", "secret"); w.Write("secret", "x") }, true, true},
		"commit":         {func(r, w gittest.Repo) { w.Commit("work") }, true, true},
		"detached":       {func(r, w gittest.Repo) { w.Git("checkout", "-q", "--detach") }, true, true},
		"came back":      {func(r, w gittest.Repo) { w.Commit("work"); w.Git("reset", "-q", "--hard", "HEAD~1") }, false, false},
		"branch elsewhere": {func(r, w gittest.Repo) {
			w.Git("worktree", "move", w.Dir, w.Dir+"-moved")
		}, false, true},
		"another's branch": {func(r, w gittest.Repo) {
			r.Git("worktree", "remove", w.Dir)
			r.Git("branch", "-D", "b")
			r.Git("worktree", "add", "-q", "-b", "b", w.Dir)
		}, true, false}, // the branch is left alone too, and not ours to report
		"another folder": {func(r, w gittest.Repo) {
			r.Git("worktree", "remove", w.Dir)
			w.Write("x", "x")
		}, true, true},
		"empty folder": {func(r, w gittest.Repo) {
			r.Git("worktree", "remove", w.Dir)
			_ = os.Mkdir(w.Dir, 0o755)
		}, false, false},
		"repository gone": {func(r, w gittest.Repo) { _ = os.RemoveAll(r.Path(".git")) }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := gittest.Committed(t)
			p, w := create(t, r, request(r, "b"))
			c.change(r, w)
			left := RollBack(context.Background(), in(r), p)
			if (left.Path != "") != c.path || (left.Branch != "") != c.branch || left.Any() != (left.Text() != "") {
				t.Errorf("%+v", left)
			}
			if c.path && (!exists(p.Path) || left.Reason == "") {
				t.Error("the folder is gone, or nobody says why it stays")
			}
			if c.branch && !hasBranch(r, "b") {
				t.Error("the branch is gone")
			}
			if !c.path && !c.branch && (exists(p.Path) || exists(filepath.Dir(p.Path)) || hasBranch(r, "b")) {
				t.Error("something is left")
			}
			if again := RollBack(context.Background(), in(r), p); again.Path != left.Path || again.Branch != left.Branch {
				t.Errorf("a second time: %+v", again)
			}
		})
	}
}

// TestDiesAnywhere kills git at each of its calls that change something: what is left is reported or gone, and a later roll-back
// from the record comes to the same.
func TestDiesAnywhere(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"update-ref", "worktree"} {
		for when, script := range map[string]string{
			"before": "kill -9 $$",
			"after":  `"$REAL" "$@"; kill -9 $$`,
		} {
			t.Run(when+" "+step, func(t *testing.T) {
				t.Parallel()
				r := gittest.Committed(t)
				p := prepare(t, r, request(r, "b"))
				once := filepath.Join(gittest.Dir(t), "once")
				g := git.Git{Env: r.Env, Bin: gittest.Script(t, `for a in "$@"; do [ "$a" = `+step+` ] && [ ! -e `+once+` ] && { : >`+once+`; `+script+"; }; done\nexec \"$REAL\" \"$@\"")}
				_, err := Create(context.Background(), g, p)
				var failed *FailedError
				if !errors.As(err, &failed) || failed.Left.Any() || exists(p.Path) || hasBranch(r, "b") {
					t.Errorf("%v", err)
				}
				if _, err := Create(context.Background(), in(r), p); err != nil {
					t.Errorf("a second attempt: %v", err)
				}
			})
		}
	}
}
