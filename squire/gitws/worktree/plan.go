// Package worktree makes the checkouts that delegates work in, and takes them away again. Its rules: a plan is made first and is
// data, to be recorded by the caller before anything exists; nothing that was there before is reused, moved or overwritten, and
// nothing is forced; what is removed was provably made here and holds nothing that is not kept elsewhere.
//
// What proves it: the branch was created by a git command that fails when the branch exists, and its reflog begins with the id of
// the plan. The folder was created by a mkdir that fails when it exists, so two plans can't end up in one place. The checkout
// carries a file with the plan's id in git's own folder for it.
package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pi-cradle/internal/usererr"
	"pi-cradle/squire/gitws"
	"pi-cradle/squire/gitws/git"
)

// Request is what somebody asks for.
type Request struct {
	ID        string // of the attempt, unique; one line
	Source    string // an absolute directory in the checkout to start from
	Branch    string
	Base      string // any name of a commit that git resolves locally; "" is the HEAD of the source
	Placement gitws.Placement
}

// Plan is a worktree that is going to be, with everything decided: it can be recorded as JSON, and rolled back from that record.
type Plan struct {
	ID       string         `json:"id"`
	Path     string         `json:"path"` // absolute, symlinks resolved; does not exist yet
	Branch   string         `json:"branch"`
	Base     string         `json:"base"`               // the frozen commit
	BaseName string         `json:"baseName,omitempty"` // as it was asked for; "" is the source's HEAD
	Source   gitws.Identity `json:"source"`
	// SourceBranch is "" when the source's HEAD is detached, SourceState a digest of its HEAD and changed paths.
	SourceBranch string        `json:"sourceBranch,omitempty"`
	SourceState  string        `json:"sourceState"`
	Left         gitws.Pending `json:"left"`              // changes in the source that are in no commit, and so not in the worktree
	Folders      []string      `json:"folders,omitempty"` // missing above Path, the deepest first
	Include      Include       `json:"include"`
}

// questions get more time than at an ordinary launch: a status of a large checkout whose files are not in memory takes a while.
const (
	questionLimit = 30 * time.Second
	outputLimit   = 16 << 20
)

func ask(g git.Git, dir string) *git.Asker { return g.Patient(dir, questionLimit, outputLimit) }

// Prepare decides everything and changes nothing. Its errors are refusals to show to the user.
func Prepare(ctx context.Context, g git.Git, r Request) (Plan, error) {
	p := Plan{ID: r.ID, Branch: r.Branch, BaseName: r.Base}
	source := g.Inspect(ctx, r.Source)
	switch source.Kind {
	case gitws.NonGit:
		return p, usererr.New("%q is not in a Git checkout, so there is nothing to make a worktree of", r.Source).
			Hint("name a checkout as the source, or leave the worktree out")
	case gitws.Unknown:
		return p, usererr.New("no worktree can be made from %q: %s", r.Source, source.Reason)
	}
	p.Source = source.Identity
	a := ask(g, p.Source.CheckoutRoot)
	if err := p.checkBranch(ctx, a); err != nil {
		return p, err
	}
	if err := p.freeze(ctx, a, source.Head); err != nil {
		return p, err
	}
	if err := p.place(r.Placement); err != nil {
		return p, err
	}
	status, pos, err := a.Status(ctx)
	if err != nil {
		return p, usererr.New("the changes in %q can't be listed: %s", p.Source.CheckoutRoot, a.Reason(err))
	}
	p.Left, p.SourceState = status.Pending(), p.sourceState(status)
	if pos.Branch != nil {
		p.SourceBranch = *pos.Branch
	}
	p.Include, err = findIncluded(ctx, g, p.Source.CheckoutRoot)
	return p, err
}

func (p *Plan) checkBranch(ctx context.Context, a *git.Asker) error {
	// Git expands names such as @{-1}: only a name that stays itself is one.
	name, err := a.Line(ctx, "check-ref-format", "--branch", p.Branch)
	if err != nil || name != p.Branch || strings.HasPrefix(p.Branch, "-") {
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		return usererr.New("%q is not a valid branch name", p.Branch)
	}
	taken, err := a.Is(ctx, "show-ref", "--verify", "--quiet", ref(p.Branch))
	if err != nil {
		return usererr.New("the branches of %q can't be looked at: %s", p.Source.CheckoutRoot, a.Reason(err))
	}
	if taken {
		return usererr.New("branch %q exists already", p.Branch).Hint("choose another name: existing branches are never reused")
	}
	return nil
}

func ref(branch string) string { return "refs/heads/" + branch }

// freeze turns the base into one commit, so that a HEAD that moves on makes no difference.
func (p *Plan) freeze(ctx context.Context, a *git.Asker, head *string) error {
	if p.BaseName == "" {
		if head == nil {
			return usererr.New("%q has no commits yet, so there is nothing to start from", p.Source.CheckoutRoot).
				Hint("commit something first, or name a base commit")
		}
		p.Base = *head
	}
	name := p.BaseName
	if name == "" {
		name = p.Base
	}
	sha, err := a.Line(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return usererr.New("%q names no commit in %q", name, p.Source.CheckoutRoot).
			Hint("a base is looked up among local branches, remote-tracking branches, tags and commits; git fetch brings new ones")
	}
	p.Base = sha
	return nil
}

func (p *Plan) place(where gitws.Placement) error {
	path, err := where.Path(p.Source.MainRoot, p.Branch, git.Canonical)
	if err != nil {
		return err
	}
	p.Path = git.Canonical(path)
	if within(p.Path, p.Source.CommonDir) {
		return usererr.New("worktree location %q is inside of Git's own folder", p.Path).Hint("change worktreeRoot in the settings")
	}
	if _, err := os.Lstat(p.Path); err == nil {
		return usererr.New("%q exists already, and a worktree is only made in a new place", p.Path).Hint("choose another branch name, or move it away")
	} else if !errors.Is(err, fs.ErrNotExist) {
		return usererr.New("worktree location %q can't be used: %w", p.Path, err)
	}
	for dir := filepath.Dir(p.Path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil {
			break
		}
		p.Folders = append(p.Folders, dir)
	}
	return nil
}

// within says whether path is dir or lies in it. Both are clean.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// digest stands for all of a value.
func digest(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error() // only values that always encode come here
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// sourceState stands for the source's HEAD and changed paths, the worktree itself aside, which can be an untracked folder of it.
func (p Plan) sourceState(status gitws.Status) string {
	status.Untracked = slices.DeleteFunc(slices.Clone(status.Untracked), func(name string) bool {
		return within(p.Path, filepath.Join(p.Source.CheckoutRoot, name))
	})
	return digest(status)
}

// Workspace is the record of the delegate that works in the worktree.
func (p Plan) Workspace() gitws.Workspace {
	id := gitws.Identity{MainRoot: p.Source.MainRoot, CommonDir: p.Source.CommonDir, CheckoutRoot: p.Path}
	return gitws.Workspace{Mode: gitws.Managed, Cwd: p.Path, Git: gitws.Git{Kind: gitws.Checkout, State: &gitws.State{
		Identity: id, Position: gitws.OnBranch(p.Branch), Head: &p.Base, Baseline: &p.Base,
	}}}
}

// Holds says whether the commit that the plan starts from has an entry in dir, a path from the root, besides those named.
func (p Plan) Holds(ctx context.Context, g git.Git, dir string, besides ...string) (bool, error) {
	a := ask(g, p.Source.CheckoutRoot)
	out, err := a.Ask(ctx, "ls-tree", "--name-only", "--full-tree", "-z", p.Base, "--", dir+"/")
	var names []string
	if err == nil {
		names, err = gitws.SplitNUL(out)
	}
	if err != nil {
		return false, usererr.New("it can't be told what %s holds at %s: %s", dir, p.Base, a.Reason(err))
	}
	return slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(besides, path.Base(name)) }), nil
}

// SourceChanged says what has changed in the source since the plan was made; "" when nothing has, or when that is not known.
// A delegate that strays out of its worktree usually strays there.
func SourceChanged(ctx context.Context, g git.Git, p Plan) string {
	status, _, err := g.In(p.Source.CheckoutRoot).Status(ctx)
	if err != nil || p.sourceState(status) == p.SourceState {
		return ""
	}
	return "the checkout that the worktree was made from has changed since launch: its HEAD or its changed paths are others now"
}
