package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pi-cradle/squire/gitws"
	"pi-cradle/squire/gitws/git"
)

// Leftover is what a failed attempt has left, and why it was not taken back.
type Leftover struct {
	Path   string // "" when no folder is left
	Branch string // "" when no branch is left
	Base   string
	Reason string
}

// Any says whether there is anything.
func (l Leftover) Any() bool { return l.Path != "" || l.Branch != "" }

// Text says where to find it.
func (l Leftover) Text() string {
	var what []string
	if l.Path != "" {
		what = append(what, "the worktree "+gitws.Inline(l.Path))
	}
	if l.Branch != "" {
		what = append(what, "the branch "+gitws.Inline(l.Branch))
	}
	if len(what) == 0 {
		return ""
	}
	return fmt.Sprintf("kept %s, made from commit %s, because %s", strings.Join(what, " and "), l.Base, l.Reason)
}

// rollBackLimit is for all of RollBack.
const rollBackLimit = 2 * time.Minute

// RollBack takes back what an attempt at a plan made, in this process or one that died: the worktree if it is the plan's and holds
// nothing but its commit and copies from the source, and then the branch if it is the plan's and has not moved. Whatever is not
// certain stays. It never forces git, and is safe to call when there is nothing.
func RollBack(ctx context.Context, g git.Git, p Plan) Leftover {
	ctx, cancel := context.WithTimeout(ctx, rollBackLimit)
	defer cancel()
	left := Leftover{Base: p.Base}
	unlock, err := lock(ctx, p.Source.CommonDir)
	ours := false
	if err == nil {
		defer unlock()
		ours, err = made(ctx, g, p)
	}
	if reason := takeCheckout(ctx, g, p, ours, err); reason != "" {
		left.Path, left.Reason = p.Path, reason
		if ours {
			left.Branch = p.Branch
		}
		return left
	}
	removeFolders(p)
	switch {
	case errors.Is(err, fs.ErrNotExist): // no repository, no branch
	case err != nil:
		left.Branch, left.Reason = p.Branch, "git could not be asked about it: "+err.Error()
	case ours:
		if reason := takeBranch(ctx, g, p.Source.CommonDir, p.Branch, p.Base); reason != "" {
			left.Branch, left.Reason = p.Branch, reason
		}
	}
	return left
}

// made says whether the branch is there and was created for this plan.
func made(ctx context.Context, g git.Git, p Plan) (bool, error) {
	a := ask(g, p.Source.CommonDir)
	there, err := a.Is(ctx, "--git-dir="+p.Source.CommonDir, "show-ref", "--verify", "--quiet", ref(p.Branch))
	if err != nil {
		return false, errors.New(a.Reason(err))
	}
	if !there {
		return false, nil
	}
	out, err := a.Line(ctx, "--git-dir="+p.Source.CommonDir, "log", "--walk-reflogs", "--format=%gs", ref(p.Branch), "--")
	if err != nil {
		return false, errors.New(a.Reason(err))
	}
	return out[strings.LastIndexByte(out, '\n')+1:] == reason(p.ID), nil
}

// takeCheckout removes the worktree, and gives the reason when it stays.
func takeCheckout(ctx context.Context, g git.Git, p Plan, ours bool, asked error) string {
	_ = unix.Rmdir(p.Path) // an empty folder, such as a git that failed at once leaves, holds nothing
	if _, err := os.Lstat(p.Path); errors.Is(err, fs.ErrNotExist) {
		if ours {
			// Git may remember a worktree whose folder it has not come to make, or has removed itself.
			_, _ = g.Command(ctx, p.Source.CommonDir, changeLimit, "--git-dir="+p.Source.CommonDir, "worktree", "remove", p.Path)
		}
		return ""
	}
	switch {
	case asked != nil:
		return "git could not be asked about it: " + asked.Error()
	case !ours:
		return "it can't be shown that this launch made it"
	}
	here, err := verify(ctx, g, p)
	if err != nil {
		return err.Error()
	}
	if losses := assess(ctx, g, here, p.Source.CheckoutRoot, p.Branch); losses.Any() {
		return "it holds something: " + strings.Join(losses.Lines(), "; ")
	}
	if _, err := g.Command(ctx, p.Source.CommonDir, changeLimit, "--git-dir="+p.Source.CommonDir, "worktree", "remove", p.Path); err != nil {
		return why(err).Error()
	}
	return ""
}

// takeBranch deletes a branch that is still at tip and checked out nowhere, and gives the reason when it stays.
func takeBranch(ctx context.Context, g git.Git, common, branch, tip string) string {
	a := ask(g, common)
	used, err := a.Line(ctx, "--git-dir="+common, "for-each-ref", "--format=%(worktreepath)", ref(branch))
	if err != nil {
		return a.Reason(err)
	}
	if used != "" {
		return "it is checked out at " + gitws.Inline(used)
	}
	// Git compares and deletes in one step.
	if _, err := g.Command(ctx, common, changeLimit, "--git-dir="+common, "update-ref", "-d", ref(branch), tip); err != nil {
		return why(err).Error()
	}
	return ""
}
