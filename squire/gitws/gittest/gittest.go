// Package gittest makes real repositories for tests, with a home of their own.
package gittest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pi-cradle/internal/run"
)

// Repo is a directory to run git in. Commands run with a private home, so no configuration of the machine's user counts.
type Repo struct {
	T   testing.TB
	Dir string // symlinks resolved
	Env []string
}

// Home makes an environment with an empty home that has an author's name in it.
func Home(t testing.TB) []string {
	t.Helper()
	home := Dir(t)
	config := "[user]\n\tname = Tester\n\temail = tester@example.invalid\n[init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = always\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
}

// Dir is a fresh directory with its symlinks resolved.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// New makes a repository called "repo" without a commit, in a folder of its own.
func New(t testing.TB) Repo {
	t.Helper()
	r := Repo{t, filepath.Join(Dir(t), "repo"), Home(t)}
	if err := os.Mkdir(r.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.Git("init", "-q")
	return r
}

// Committed is New with one commit of a file "README".
func Committed(t testing.TB) Repo {
	t.Helper()
	r := New(t)
	r.Write("README", "hello\n")
	r.Commit("first")
	return r
}

// At is the same world in another directory.
func (r Repo) At(dir string) Repo {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(r.Dir, dir)
	}
	return Repo{r.T, dir, r.Env}
}

// Try runs git and gives its trimmed stdout.
func (r Repo) Try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	res, err := run.Output(ctx, run.Cmd{Path: "git", Args: args, Dir: r.Dir, Env: r.Env, Limit: 64 << 20})
	return strings.TrimSuffix(string(res.Stdout), "\n"), err
}

// Git is Try for a command that must succeed.
func (r Repo) Git(args ...string) string {
	r.T.Helper()
	out, err := r.Try(args...)
	if err != nil {
		r.T.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// Path is an absolute path in the repository.
func (r Repo) Path(name string) string { return filepath.Join(r.Dir, name) }

// Write writes a file and makes its folders.
func (r Repo) Write(name, text string) {
	r.T.Helper()
	if err := os.MkdirAll(filepath.Dir(r.Path(name)), 0o755); err != nil {
		r.T.Fatal(err)
	}
	if err := os.WriteFile(r.Path(name), []byte(text), 0o644); err != nil {
		r.T.Fatal(err)
	}
}

// Commit commits everything and gives the commit's name.
func (r Repo) Commit(message string) string {
	r.T.Helper()
	r.Git("add", "-A")
	r.Git("commit", "-q", "--allow-empty", "-m", message)
	return r.Git("rev-parse", "HEAD")
}

// Script makes a program called git of a script for sh and gives its path. $REAL is the real git.
func Script(t testing.TB, script string) string {
	t.Helper()
	real, err := run.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(Dir(t), "git")
	// A process started while the file is open for writing would inherit that, and the file could not be run until it execs.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\nREAL='"+real+"'\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
