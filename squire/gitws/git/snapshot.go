package git

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"pi-cradle/squire/gitws"
)

// Snapshot looks at the checkout that was recorded at launch, and at no other; w is nil for a delegation that was recorded
// without one. It takes at most 5 seconds, plus half a second when git's children hold on, and never fails: whatever can't be told
// completely is Unknown, with the reason.
func (g Git) Snapshot(ctx context.Context, w *gitws.Workspace) gitws.Snapshot {
	switch {
	case w == nil:
		return gitws.UnsureNow(gitws.NoWorkspace)
	case w.Git.Kind == gitws.Unknown || w.Git.Kind == gitws.Checkout && w.Git.State == nil:
		return gitws.UnsureNow("its Git state at launch was unknown")
	}
	if reason := missing(w.Cwd); reason != "" {
		return gitws.UnsureNow(reason)
	}
	if w.Git.Kind == gitws.NonGit {
		return gitws.Snapshot{Kind: gitws.NonGit}
	}
	l := g.limit()
	whole, cancel := context.WithTimeout(ctx, l.snapshot)
	defer cancel()
	a := g.Patient(w.Cwd, l.command, l.output)
	tree, err := a.look(whole, w.Git.State)
	switch {
	case err == nil:
		return gitws.Snapshot{Kind: gitws.Checkout, Tree: tree}
	case errors.Is(whole.Err(), context.DeadlineExceeded) && ctx.Err() == nil:
		return gitws.UnsureNow(fmt.Sprintf("git did not finish within %v", l.snapshot))
	}
	return gitws.UnsureNow(a.Reason(err))
}

var (
	errMoved = errors.New("the checkout recorded at launch is no longer at its location")
	errBase  = errors.New("the launch commit is missing")
)

func (a *Asker) look(ctx context.Context, launch *gitws.State) (*gitws.Tree, error) {
	here, err := a.Where(ctx)
	if errors.Is(err, ErrNoCheckout) {
		return nil, errMoved
	}
	if err != nil {
		return nil, err
	}
	if here.Root != launch.Identity.CheckoutRoot || here.CommonDir != launch.Identity.CommonDir {
		return nil, errMoved
	}
	status, pos, err := a.Status(ctx)
	if err != nil {
		return nil, err
	}
	t := &gitws.Tree{Position: pos, Baseline: launch.Baseline, Committed: gitws.ListOf(nil), Pending: status.Pending()}
	t.WorkingState = t.Pending.State()
	if launch.Baseline != nil {
		found, err := a.Commit(ctx, *launch.Baseline)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, errBase
		}
	}
	if status.Head == "" {
		return t, nil // on a branch without a commit nothing has been committed since
	}
	t.Head = &status.Head
	t.Ahead, t.Committed, err = a.since(ctx, launch.Baseline, status.Head)
	return t, err
}

// Status is what has changed in the checkout, and where its HEAD points. Renames are a removal and an addition, so both paths are
// on the lists, and no file needs to be compared with another. extra are further options of git status.
func (a *Asker) Status(ctx context.Context, extra ...string) (gitws.Status, gitws.Position, error) {
	args := []string{"status", "--porcelain=v2", "--branch", "-z", "--no-ahead-behind", "--no-renames", "--untracked-files=all", "--ignore-submodules=none"}
	out, err := a.Ask(ctx, append(args, extra...)...)
	if err != nil {
		return gitws.Status{}, gitws.Position{}, err
	}
	status, err := gitws.ParseStatus(out)
	if err != nil {
		return status, gitws.Position{}, err
	}
	if status.Branch != gitws.DetachedHead {
		return status, gitws.OnBranch(status.Branch), nil
	}
	pos, err := a.Position(ctx)
	return status, pos, err
}

// Commit says whether the repository has that commit, by its full name.
func (a *Asker) Commit(ctx context.Context, sha string) (bool, error) {
	out, err := a.AskWith(ctx, strings.NewReader(sha+"\n"), "cat-file", "--batch-check=%(objecttype)")
	return string(out) == "commit\n", err
}

// since counts the commits from base to head and lists the paths that differ; base nil is before the first commit.
func (a *Asker) since(ctx context.Context, base *string, head string) (int, gitws.PathList, error) {
	none := gitws.ListOf(nil)
	count := []string{"rev-list", "--count", head, "--"}
	list := []string{"ls-tree", "-r", "-z", "--name-only", "--full-tree", head}
	if base != nil {
		if *base == head {
			return 0, none, nil
		}
		count = []string{"rev-list", "--count", *base + ".." + head, "--"}
		// diff-tree heeds no configuration of diff, such as diff.relative.
		list = []string{"diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules=none", *base, head, "--"}
	}
	number, err := a.Line(ctx, count...)
	if err != nil {
		return 0, none, err
	}
	ahead, err := strconv.Atoi(number)
	if err != nil {
		return 0, none, fmt.Errorf("git rev-list gave no number: %q", number)
	}
	out, err := a.Ask(ctx, list...)
	if err != nil {
		return 0, none, err
	}
	paths, err := gitws.SplitNUL(out)
	return ahead, gitws.ListOf(paths), err
}
