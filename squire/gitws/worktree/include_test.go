package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pi-cradle/squire/gitws/gittest"
)

// includer makes a repository with ignored files of all sorts, and a folder outside of it that one of them would lead to.
func includer(t *testing.T) (r gittest.Repo, outside string) {
	t.Helper()
	r = gittest.Committed(t)
	r.Write(".gitignore", "*.env\n/cache/\n/link\n/pipe\n/.worktrees/\n/conf/\n")
	r.Write("tracked.env", "tracked")
	r.Git("add", "-f", "tracked.env")
	outside = gittest.Dir(t)
	if err := os.Symlink(outside, r.Path("conf")); err != nil {
		t.Fatal(err)
	}
	r.Git("add", "-f", "conf")
	r.Commit("base")
	if err := os.Remove(r.Path("conf")); err != nil {
		t.Fatal(err)
	}
	r.Write(".worktreeinclude", "*.env\n!b.env\ncache/\nlink\npipe\nnotes\nconf/\n")
	r.Write("a.env", "secret")
	r.Write("b.env", "not this one")
	r.Write("deep/down/ü\n.env", "odd name")
	r.Write("cache/one", "1")
	r.Write("cache/two", "2")
	r.Write("other-ignored.env/x", "in a folder")
	r.Write("notes", "named, and not ignored")
	r.Write("conf/x", "its place leads out of the worktree")
	if err := os.Chmod(r.Path("a.env"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(r.Path("cache/one"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nonexistent/target", r.Path("link")); err != nil {
		t.Fatal(err)
	}
	r.Git("worktree", "add", "-q", ".worktrees/nested")
	r.Write(".worktrees/nested/c.env", "another worktree's")

	return r, outside
}

func TestInclude(t *testing.T) {
	t.Parallel()
	r, outside := includer(t)
	p := prepare(t, r, request(r, "b"))
	copied, err := Create(context.Background(), in(r), p)
	if err != nil {
		t.Fatal(err)
	}
	w := r.At(p.Path)
	for name, want := range map[string]string{"a.env": "secret", "deep/down/ü\n.env": "odd name", "cache/one": "1", "cache/two": "2", "tracked.env": "tracked", "other-ignored.env/x": "in a folder"} {
		if got, err := os.ReadFile(w.Path(name)); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"b.env", "notes", ".worktreeinclude", ".worktrees"} {
		if exists(w.Path(name)) {
			t.Errorf("%s was copied", name)
		}
	}
	for name, want := range map[string]os.FileMode{"a.env": 0o640, "cache/one": 0o755} {
		if info, err := os.Stat(w.Path(name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if target, err := os.Readlink(w.Path("link")); err != nil || target != "/nonexistent/target" {
		t.Errorf("%q, %v", target, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
		t.Errorf("%d files outside of the worktree (%v)", len(entries), err)
	}
	if copied.Files != 6 || p.Include.Files != 7 || len(copied.Skipped) != 1 || !strings.Contains(copied.Skipped[0], "no place") {
		t.Errorf("%+v of %+v", copied, p.Include)
	}
	if text := strings.Join(p.Notes(copied), "\n"); !strings.Contains(text, "copied by .worktreeinclude: 6 files") || !strings.Contains(text, "not copied: ") {
		t.Errorf("%s", text)
	}

	// What was copied is in the source, so it does not keep the worktree from going; what was changed is not.
	w.Write("a.env", "other")
	left := RollBack(context.Background(), in(r), p)
	if left.Path == "" || !strings.Contains(left.Reason, `ignored: 1 path: "a.env"`) {
		t.Errorf("%+v", left)
	}
	w.Write("a.env", "secret")
	if left := RollBack(context.Background(), in(r), p); left.Any() {
		t.Errorf("%+v", left)
	}
}

func TestIncludeHasBounds(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	r.Write(".git/info/exclude", "many/\nlarge\n")
	r.Write(".worktreeinclude", "large\n")
	f, err := os.Create(r.Path("large"))
	if err == nil {
		err = errors.Join(f.Truncate(300<<20), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(context.Background(), in(r), request(r, "b")); err == nil || !strings.Contains(err.Error(), "1 files of 300.0 MiB") {
		t.Errorf("large: %v", err)
	}
	r.Write(".worktreeinclude", "many\n")
	for i := range maxIncluded + 1 {
		r.Write(fmt.Sprintf("many/%d", i), "")
	}
	if _, err := Prepare(context.Background(), in(r), request(r, "b")); err == nil || !strings.Contains(err.Error(), "5001 files") {
		t.Errorf("many: %v", err)
	}
	r.Write(".worktreeinclude", "nothing-like-it\n")
	if p := prepare(t, r, request(r, "b")); p.Include.Files != 0 {
		t.Errorf("%+v", p.Include)
	}
	if err := os.Remove(r.Path(".worktreeinclude")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(r.Path(".worktreeinclude"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(context.Background(), in(r), request(r, "b")); err == nil || !strings.Contains(err.Error(), "can't be read") {
		t.Errorf("a folder: %v", err)
	}
}

func TestSetup(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	p, w := create(t, r, request(r, "b"))
	log := filepath.Join(gittest.Dir(t), "logs", "setup.log")
	setup := func(limit time.Duration, argv ...string) error {
		return Setup{Argv: argv, Limit: limit, Log: log}.Run(context.Background(), in(r), p)
	}
	if err := setup(0, "/bin/sh", "-c", `pwd; echo "$SQUIRE_WORKTREE|$SQUIRE_WORKTREE_BRANCH|$SQUIRE_WORKTREE_SOURCE"; read x || echo nothing to read`); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(log)
	if want := p.Path + "\n" + p.Path + "|b|" + r.Dir + "\nnothing to read\n"; err != nil || string(data) != want {
		t.Errorf("%q, %v", data, err)
	}
	w.Write("scripts/setup", "#!/bin/sh\necho from the worktree\n")
	if err := os.Chmod(w.Path("scripts/setup"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := setup(0, "./scripts/setup"); err != nil {
		t.Errorf("relative: %v", err)
	}
	for name, c := range map[string]struct {
		limit time.Duration
		argv  []string
		why   string
		tail  string
	}{
		"fails":   {0, []string{"/bin/sh", "-c", "seq 20; echo no network >&2; exit 7"}, "exit status 7", "no network"},
		"stdout":  {0, []string{"/bin/sh", "-c", "seq 20; exit 7"}, "exit status 7", "11,12,13,14,15,16,17,18,19,20"},
		"hangs":   {300 * time.Millisecond, []string{"/bin/sh", "-c", "echo started; sleep 1000 & wait"}, "longer than 300ms", "started"},
		"killed":  {0, []string{"/bin/sh", "-c", "kill -9 $$"}, "killed", ""},
		"missing": {0, []string{"no-such-program"}, "no-such-program", ""},
	} {
		var failed *SetupError
		err := setup(c.limit, c.argv...)
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), c.why) || strings.Join(failed.Tail, ",") != c.tail || !strings.Contains(strings.Join(failed.Hints(), "\n"), log) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
