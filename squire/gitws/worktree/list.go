package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"pi-cradle/internal/durable"
	"pi-cradle/internal/usererr"
	"pi-cradle/squire/gitws"
	"pi-cradle/squire/gitws/git"
)

// Worktree is one that this package made, as it is now.
type Worktree struct {
	ID         string
	Path       string // where it is now: git can move worktrees
	Made       string // the branch that was made for it
	Position   gitws.Position
	Head       string // "" before the first commit on an orphan branch
	Base       string // the commit it started from
	BaseBranch string // the branch of the source then; "" when it was detached
	Ahead      int    // commits since Base
	State      gitws.WorkingState
	Merged     bool     // BaseBranch has all of Head
	On         []string // other branches, local and remote, that have all of Head, as main or origin/main
	Missing    bool     // the folder is gone
	Locked     bool     // by git worktree lock
	Unsure     string   // what could not be asked; the fields that depend on it are zero

	place  git.Place
	source string
}

// List gives the worktrees that this package made of the repository that dir is in, by path. dir can be in any of its checkouts.
func List(ctx context.Context, g git.Git, dir string) ([]Worktree, error) {
	a := ask(g, dir)
	here, err := a.Where(ctx)
	if errors.Is(err, git.ErrNoCheckout) {
		return nil, usererr.New("%q is not in a Git checkout", dir)
	}
	if err != nil {
		return nil, usererr.New("the worktrees of %q can't be listed: %s", dir, a.Reason(err))
	}
	marks, err := filepath.Glob(filepath.Join(escapeGlob(here.CommonDir), "worktrees", "*", marker))
	if err != nil {
		return nil, err
	}
	list := make([]Worktree, len(marks))
	var group errgroup.Group
	group.SetLimit(4)
	for i, path := range marks {
		group.Go(func() error {
			list[i] = describe(ctx, g, here.CommonDir, filepath.Dir(path))
			return nil
		})
	}
	return list, group.Wait()
}

var globs = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

func escapeGlob(path string) string { return globs.Replace(path) }

func describe(ctx context.Context, g git.Git, common, gitDir string) Worktree {
	w := Worktree{place: git.Place{GitDir: gitDir, CommonDir: common}}
	var m mark
	if err := durable.ReadJSON(filepath.Join(gitDir, marker), &m); err != nil || m.Version != markerVersion {
		w.Unsure = fmt.Sprintf("its record %q can't be read", filepath.Join(gitDir, marker))
	}
	w.ID, w.Made, w.Base, w.BaseBranch, w.source = m.ID, m.Branch, m.Base, m.BaseBranch, m.Source
	root, err := rootOf(gitDir)
	if err != nil {
		w.Unsure = "its place is not known: " + err.Error()
		return w
	}
	w.Path, w.place.Root = root, root
	_, err = os.Lstat(filepath.Join(gitDir, "locked"))
	w.Locked = err == nil
	_, err = os.Lstat(root)
	w.Missing = errors.Is(err, fs.ErrNotExist)
	if w.Unsure == "" {
		a := ask(g, common)
		if err := w.look(ctx, g, a); err != nil {
			w.Unsure = a.Reason(err)
		}
	}
	return w
}

// rootOf reads where a worktree lies from git's folder for it.
func rootOf(gitDir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(gitDir, "gitdir"))
	if err != nil {
		return "", err
	}
	link := strings.TrimSuffix(string(data), "\n")
	if !filepath.IsAbs(link) {
		link = filepath.Join(gitDir, link)
	}
	return git.Canonical(filepath.Dir(link)), nil
}

func (w *Worktree) look(ctx context.Context, g git.Git, a *git.Asker) error {
	if !w.Missing {
		inside := ask(g, w.Path)
		here, err := inside.Where(ctx)
		if err != nil && !errors.Is(err, git.ErrNoCheckout) {
			return err
		}
		if here != w.place {
			return errors.New("something else is in its place")
		}
		status, _, err := inside.Status(ctx)
		if err != nil {
			return err
		}
		w.State = status.Pending().State()
	}
	own := "--git-dir=" + w.place.GitDir
	head, err := a.Line(ctx, own, "rev-parse", "--verify", "--quiet", "HEAD")
	if err != nil && !git.No(err) {
		return err
	}
	w.Head = head
	name, err := a.Line(ctx, own, "symbolic-ref", "--quiet", "HEAD")
	switch {
	case git.No(err):
		w.Position = gitws.Detached()
	case err != nil:
		return err
	default:
		w.Position = gitws.OnBranch(strings.TrimPrefix(name, "refs/heads/"))
	}
	if head == "" {
		return nil
	}
	count, err := a.Line(ctx, own, "rev-list", "--count", w.Base+".."+head, "--")
	if err != nil {
		return err
	}
	if w.Ahead, err = strconv.Atoi(count); err != nil {
		return err
	}
	refs, err := containing(ctx, a, w.place.CommonDir, head)
	if err != nil {
		return err
	}
	for _, r := range refs {
		switch name := short(r); {
		case w.BaseBranch != "" && r == ref(w.BaseBranch):
			w.Merged = true
		case w.Position.Branch != nil && r == ref(*w.Position.Branch):
		default:
			w.On = append(w.On, name)
		}
	}
	return nil
}

// containing are the branches, local and remote, that have all of a commit, by their full names.
func containing(ctx context.Context, a *git.Asker, common, commit string) ([]string, error) {
	// A remote's HEAD is another name for one of its branches.
	out, err := a.Ask(ctx, "--git-dir="+common, "for-each-ref", "--format=%(refname)%00%(symref)", "--contains="+commit, "refs/heads", "refs/remotes")
	if err != nil {
		return nil, err
	}
	var refs []string
	for _, line := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		if name, target, _ := strings.Cut(line, "\x00"); name != "" && target == "" {
			refs = append(refs, name)
		}
	}
	return refs, nil
}

func short(ref string) string {
	return strings.TrimPrefix(strings.TrimPrefix(ref, "refs/heads/"), "refs/remotes/")
}
