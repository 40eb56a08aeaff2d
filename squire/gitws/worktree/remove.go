package worktree

import (
	"context"
	"errors"
	"slices"

	"pi-cradle/internal/usererr"
	"pi-cradle/squire/gitws"
	"pi-cradle/squire/gitws/git"
)

// Removal is what became of a wish to remove a worktree.
type Removal struct {
	Removed bool
	Losses  Losses // when not Removed: what stands against it; when Removed: what was agreed to
	Branch  string // the branch that was made for it, when that is still there
	Kept    string // why it is
}

// Remove removes a worktree that List gave. It does so only when nothing is lost, or when the losses are those that the user has
// agreed to: agreed is the Digest of an earlier Removal's Losses, "" at first. A result that is not Removed has the losses to ask
// about. The branch goes too when other branches have all of it, and stays otherwise.
//
// An error says that git refused, in its words, or that the worktree is locked; nothing has been removed then.
func Remove(ctx context.Context, g git.Git, w Worktree, agreed string) (Removal, error) {
	switch {
	case w.Unsure != "":
		return Removal{}, usererr.New("the worktree %q is not removed: %s", w.Path, w.Unsure)
	case w.Locked:
		return Removal{}, usererr.New("the worktree %q is locked", w.Path).Hint("git worktree unlock %q lets go of it", w.Path)
	}
	unlock, err := lock(ctx, w.place.CommonDir)
	if err != nil {
		return Removal{}, usererr.New("the worktree %q is not removed: %w", w.Path, err)
	}
	defer unlock()
	losses := assess(ctx, g, w.place, w.source, w.Made)
	if losses.Any() && losses.Digest != agreed {
		return Removal{Losses: losses}, nil
	}
	common := "--git-dir=" + w.place.CommonDir
	args := []string{common, "worktree", "remove", w.Path}
	_, err = g.Command(ctx, w.place.CommonDir, changeLimit, args...)
	// Git refuses whatever has changes, ignored files excepted, and whatever has submodules, even clean ones. Both have been looked at
	// and found to be no loss, or agreed to. It is not forced past a lock, which takes the option twice.
	if err != nil && ctx.Err() == nil && (losses.Any() || hasModules(ctx, g, w.Path)) {
		_, err = g.Command(ctx, w.place.CommonDir, changeLimit, append(args[:3:3], "--force", w.Path)...)
	}
	if err != nil {
		return Removal{Losses: losses}, usererr.New("git did not remove the worktree %q: %w", w.Path, why(err))
	}
	done := Removal{Removed: true, Losses: losses}
	done.Branch, done.Kept = w.takeMade(ctx, g)
	return done, nil
}

func hasModules(ctx context.Context, g git.Git, root string) bool {
	out, err := ask(g, root).Ask(ctx, "ls-files", "--stage", "-z")
	paths, err2 := gitws.Submodules(out)
	return err == nil && err2 == nil && len(paths) > 0
}

// takeMade deletes the branch that was made for the worktree when other branches have everything it has, or has ever had.
func (w Worktree) takeMade(ctx context.Context, g git.Git) (branch, kept string) {
	common := w.place.CommonDir
	a := ask(g, common)
	tips, err := reflog(ctx, a, common, w.Made)
	if err != nil {
		return w.Made, a.Reason(err)
	}
	there, err := a.Is(ctx, "--git-dir="+common, "show-ref", "--verify", "--quiet", ref(w.Made))
	if err == nil && !there {
		return "", ""
	}
	tip, err2 := a.Line(ctx, "--git-dir="+common, "rev-parse", "--verify", "--quiet", ref(w.Made))
	if err := errors.Join(err, err2); err != nil {
		return w.Made, a.Reason(err)
	}
	for _, commit := range slices.Compact(append([]string{tip}, tips...)) {
		refs, err := containing(ctx, a, common, commit)
		if err != nil {
			return w.Made, a.Reason(err)
		}
		if !slices.ContainsFunc(refs, func(r string) bool { return r != ref(w.Made) }) {
			if commit == tip {
				return w.Made, "it has commits that no other branch has"
			}
			return w.Made, "its reflog has commits that no other branch has"
		}
	}
	if kept = takeBranch(ctx, g, common, w.Made, tip); kept != "" {
		return w.Made, kept
	}
	return "", ""
}
