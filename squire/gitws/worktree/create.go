package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pi-cradle/internal/durable"
	"pi-cradle/internal/lockfile"
	"pi-cradle/internal/run"
	"pi-cradle/squire/gitws"
	"pi-cradle/squire/gitws/git"
)

// changeLimit is for one git command that writes. Checking out a large tree, with filters and hooks, takes its time.
const changeLimit = 10 * time.Minute

// marker is the file, in git's own folder of a worktree, that says who made it. It goes with the worktree.
const marker = "squire-worktree.json"

const markerVersion = 1

// mark is what the marker holds: enough to list and remove a worktree when no other record of it is left.
type mark struct {
	Version    int    `json:"version"`
	ID         string `json:"id"`
	Branch     string `json:"branch"`
	Base       string `json:"base"`
	BaseBranch string `json:"baseBranch,omitempty"`
	Source     string `json:"source"` // root of the checkout it was made from
}

// reason is the first reflog entry of a branch made for a plan.
func reason(id string) string { return "squire: worktree " + id }

// FailedError says that a worktree could not be made, and what is left of the attempt.
type FailedError struct {
	Cause error
	Left  Leftover // zero when nothing is
}

func (e *FailedError) Error() string {
	text := "the worktree could not be made: " + e.Cause.Error()
	if e.Left.Any() {
		text += "; " + e.Left.Text()
	}
	return text
}

func (e *FailedError) Unwrap() error { return e.Cause }

// Create carries out a plan that has been recorded. When it fails with a *FailedError it has already taken back what it could. The
// end of ctx counts as a failure: git is killed, and the taking back goes on for a while without ctx.
func Create(ctx context.Context, g git.Git, p Plan) (Copied, error) {
	var copied Copied
	fail := func(err error) (Copied, error) {
		left := RollBack(context.WithoutCancel(ctx), g, p)
		return copied, &FailedError{err, left}
	}
	if err := claim(p.Path); err != nil {
		removeFolders(p)
		return copied, &FailedError{Cause: err}
	}
	if err := add(ctx, g, p); err != nil {
		return fail(why(err))
	}
	here, err := verify(ctx, g, p)
	if err != nil {
		return fail(err)
	}
	m := mark{markerVersion, p.ID, p.Branch, p.Base, p.SourceBranch, p.Source.CheckoutRoot}
	if err := durable.WriteJSON(filepath.Join(here.GitDir, marker), m); err != nil {
		return fail(err)
	}
	if copied, err = p.Include.copyTo(ctx, p.Source.CheckoutRoot, p.Path); err != nil {
		return fail(err)
	}
	return copied, nil
}

func add(ctx context.Context, g git.Git, p Plan) error {
	unlock, err := lock(ctx, p.Source.CommonDir)
	if err != nil {
		return err
	}
	defer unlock()
	// The empty last argument makes git fail if the branch exists.
	_, err = g.Command(ctx, p.Source.CheckoutRoot, changeLimit, "update-ref", "--create-reflog", "-m", reason(p.ID), ref(p.Branch), p.Base, "")
	if err == nil {
		_, err = g.Command(ctx, p.Source.CheckoutRoot, changeLimit, "-c", "submodule.recurse=false", "worktree", "add", "--quiet", p.Path, p.Branch)
	}
	return err
}

// lock keeps others who use this package from changing the worktrees of a repository at the same time: git reads what it keeps of
// all of them, and fails when another git has written half of one.
func lock(ctx context.Context, common string) (unlock func(), err error) {
	if _, err := os.Stat(common); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, changeLimit)
	defer cancel()
	return lockfile.Lock(ctx, filepath.Join(common, "squire-worktree.lock"), "making or removing a worktree")
}

// claim makes the folder, which must not exist: git would take an empty one that somebody else has just made, and so would a
// second plan for the same place.
func claim(path string) error {
	var err error
	for range 5 { // another attempt that is taken back may remove the folders above, which it had to make
		if err = os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err = os.Mkdir(path, 0o755); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// verify looks whether what git made is what was planned.
func verify(ctx context.Context, g git.Git, p Plan) (git.Place, error) {
	a := ask(g, p.Path)
	here, err := a.Where(ctx)
	if err != nil {
		return here, errors.New(a.Reason(err))
	}
	pos, err := a.Position(ctx)
	if err != nil {
		return here, errors.New(a.Reason(err))
	}
	head, err := a.Head(ctx)
	if err != nil {
		return here, errors.New(a.Reason(err))
	}
	switch {
	case here.Root != p.Path || here.CommonDir != p.Source.CommonDir || here.GitDir == here.CommonDir:
		return here, fmt.Errorf("git made no worktree of %q at %q", p.Source.MainRoot, p.Path)
	case pos.Branch == nil || *pos.Branch != p.Branch:
		return here, fmt.Errorf("the worktree is not on branch %q", p.Branch)
	case head == nil || *head != p.Base:
		return here, fmt.Errorf("the worktree does not start at %s", p.Base)
	}
	return here, nil
}

// why is git's own word for a failure, or at least what it was.
func why(err error) error {
	var exit *run.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	text := strings.TrimSpace(string(exit.Result.Stderr))
	if text == "" {
		return err
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = gitws.Inline(strings.TrimSpace(line))
	}
	return &gitError{strings.Join(lines[max(0, len(lines)-10):], "; "), err}
}

// gitError is a failure in git's words.
type gitError struct {
	text  string
	cause error
}

func (e *gitError) Error() string { return e.text }
func (e *gitError) Unwrap() error { return e.cause }

// removeFolders takes away the folders that a plan had to make above its worktree, as far as they are empty.
func removeFolders(p Plan) {
	for _, dir := range p.Folders {
		if unix.Rmdir(dir) != nil {
			return
		}
	}
}
