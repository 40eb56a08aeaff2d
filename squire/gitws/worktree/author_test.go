package worktree

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pi-cradle/squire/gitws/gittest"
)

// TestWithoutAnAuthor makes a worktree as a user whom git knows no name of.
func TestWithoutAnAuthor(t *testing.T) {
	t.Parallel()
	r := gittest.Committed(t)
	home := strings.TrimPrefix(r.Env[0], "HOME=")
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tuseConfigOnly = true\n[core]\n\tlogAllRefUpdates = false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _ := create(t, r, request(r, "b"))
	if left := RollBack(context.Background(), in(r), p); left.Any() || exists(p.Path) || hasBranch(r, "b") {
		t.Errorf("%+v", left)
	}
}

// BenchmarkCreate is one worktree and its removal; the floor is what git takes for the same.
func BenchmarkCreate(b *testing.B) {
	r := gittest.Committed(b)
	for b.Loop() {
		p, err := Prepare(context.Background(), in(r), request(r, "b"))
		if err == nil {
			_, err = Create(context.Background(), in(r), p)
		}
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if left := RollBack(context.Background(), in(r), p); left.Any() {
			b.Fatal(left.Text())
		}
		b.StartTimer()
	}
}

func BenchmarkGitWorktreeAdd(b *testing.B) {
	r := gittest.Committed(b)
	for b.Loop() {
		r.Git("worktree", "add", "-q", "-b", "b", "../made")
		b.StopTimer()
		r.Git("worktree", "remove", "../made")
		r.Git("branch", "-q", "-D", "b")
		b.StartTimer()
	}
}
