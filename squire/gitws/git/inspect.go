package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"pi-cradle/internal/run"
	"pi-cradle/squire/gitws"
)

// Inspect tells which checkout dir, an absolute path, is in, and what is checked out there. It never fails: what git does not
// tell is Unknown, with the reason. A bare repository and the inside of a .git folder are no checkout.
func (g Git) Inspect(ctx context.Context, dir string) gitws.Git {
	if reason := missing(dir); reason != "" {
		return gitws.Unsure(reason)
	}
	var place Place
	var pos gitws.Position
	var head *string
	var posErr, headErr error
	ask := g.In(dir)
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		place, err = ask.Where(gctx)
		return err
	})
	group.Go(func() error {
		pos, posErr = g.In(dir).Position(gctx)
		return nil
	})
	group.Go(func() error {
		head, headErr = g.In(dir).Head(gctx)
		return nil
	})
	// Outside of a repository the other two fail as well: where we are decides.
	err := group.Wait()
	if errors.Is(err, ErrNoCheckout) {
		return gitws.Outside()
	}
	if err = errors.Join(err, posErr, headErr); err != nil {
		return gitws.Unsure(ask.Reason(err))
	}
	if head == nil && pos.Detached {
		return gitws.Unsure("HEAD names no commit")
	}
	main, err := g.mainRoot(ctx, place)
	if err != nil {
		return gitws.Unsure(ask.Reason(err))
	}
	return gitws.Git{Kind: gitws.Checkout, State: &gitws.State{
		Identity: gitws.Identity{MainRoot: main, CommonDir: place.CommonDir, CheckoutRoot: place.Root}, Position: pos, Head: head, Baseline: head,
	}}
}

// missing says what is wrong with dir as a directory; "" when nothing is.
func missing(dir string) string {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "the directory is gone"
	case err != nil:
		return "the directory can't be read"
	case !info.IsDir():
		return "it is no directory"
	}
	return ""
}

// Place is where a checkout lies, by absolute paths with symlinks resolved.
type Place struct {
	Root      string // of the checkout
	GitDir    string // of this checkout alone
	CommonDir string // of the repository; the same as GitDir unless the checkout is a linked worktree
}

// ErrNoCheckout is git's word that there is no checkout.
var ErrNoCheckout = errors.New("not in a git checkout")

var whereabouts = []string{"--is-inside-work-tree", "--absolute-git-dir", "--git-common-dir", "--show-toplevel"}

// Where tells in which checkout the asker's directory is: ErrNoCheckout when in none, and the errors of Ask.
func (a *Asker) Where(ctx context.Context) (Place, error) {
	out, err := a.Ask(ctx, append([]string{"rev-parse"}, whereabouts...)...)
	if inside, _, _ := strings.Cut(string(out), "\n"); inside == "false" || err != nil && noRepository(err) {
		return Place{}, ErrNoCheckout // in a bare repository the last question fails after the first was answered
	}
	if err != nil {
		return Place{}, err
	}
	lines, ok := gitws.Lines(out, len(whereabouts))
	if !ok { // a path holds a line break
		lines = make([]string, len(whereabouts))
		for i, question := range whereabouts {
			if lines[i], err = a.Line(ctx, "rev-parse", question); err != nil {
				return Place{}, err
			}
		}
	}
	if !filepath.IsAbs(lines[1]) || !filepath.IsAbs(lines[3]) || lines[2] == "" {
		return Place{}, errors.New("git rev-parse gave no absolute paths")
	}
	common := lines[2]
	if !filepath.IsAbs(common) {
		common = filepath.Join(a.dir, common)
	}
	return Place{Root: Canonical(lines[3]), GitDir: Canonical(lines[1]), CommonDir: Canonical(common)}, nil
}

// noRepository tells git's "there is nothing here" from its other failures. Both exit with 128; the text, which is in English
// because we ask for it, is all there is. A .git that leads nowhere reads otherwise and is a failure.
func noRepository(err error) bool {
	var exit *run.ExitError
	return errors.As(err, &exit) && strings.HasPrefix(string(exit.Result.Stderr), "fatal: not a git repository (or any ")
}

// Position is where HEAD points.
func (a *Asker) Position(ctx context.Context) (gitws.Position, error) {
	ref, err := a.Line(ctx, "symbolic-ref", "--quiet", "HEAD")
	if No(err) {
		return gitws.Detached(), nil
	}
	if err != nil {
		return gitws.Position{}, err
	}
	return gitws.OnBranch(strings.TrimPrefix(ref, "refs/heads/")), nil
}

// Head is the commit that is checked out; nil before the first commit.
func (a *Asker) Head(ctx context.Context) (*string, error) {
	sha, err := a.Line(ctx, "rev-parse", "--verify", "--quiet", "HEAD")
	if No(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &sha, nil
}

var errNoMain = errors.New("git can't name the main checkout of this linked worktree")

// mainRoot finds the main checkout. For a linked worktree git says where the shared folder is and not what checkout it belongs
// to: usually the one it lies in, a submodule's is configured. Either is believed when that checkout says so itself.
func (g Git) mainRoot(ctx context.Context, here Place) (string, error) {
	if here.GitDir == here.CommonDir {
		return here.Root, nil
	}
	candidate := filepath.Dir(here.CommonDir)
	if filepath.Base(here.CommonDir) != ".git" {
		worktree, err := g.In(here.Root).Line(ctx, "--git-dir="+here.CommonDir, "config", "--get", "core.worktree")
		if No(err) {
			return "", errNoMain
		}
		if err != nil {
			return "", err
		}
		candidate = worktree
		if !filepath.IsAbs(worktree) {
			candidate = filepath.Join(here.CommonDir, worktree)
		}
	}
	candidate = Canonical(candidate)
	if missing(candidate) != "" {
		return "", errNoMain
	}
	main, err := g.In(candidate).Where(ctx)
	if errors.Is(err, ErrNoCheckout) {
		return "", errNoMain
	}
	if err != nil {
		return "", err
	}
	if main.Root != candidate || main.GitDir != here.CommonDir || main.CommonDir != here.CommonDir {
		return "", errNoMain
	}
	return candidate, nil
}
