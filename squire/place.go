package squire

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"pi-cradle/internal/usererr"
	"pi-cradle/squire/gitws"
	"pi-cradle/squire/gitws/git"
	"pi-cradle/squire/gitws/worktree"
	"pi-cradle/squire/trust"
)

// place is where a delegate works, and whether its project is trusted there. What git says of it is waited for only by those who
// need it.
type place struct {
	cwd       string // absolute
	trust     ruling
	own       func() gitws.Workspace // this session's directory
	workspace func() gitws.Workspace // the delegate's
	worktree  *worktree.Plan         // when one is to be made
	protected bool                   // the worktree will hold what pi loads only with trust
	note      string                 // for the delegate's instructions; "" in its parent's directory
}

// record is the workspace as it is kept.
func (p place) record() json.RawMessage {
	raw, _ := json.Marshal(p.workspace()) // plain texts always marshal
	return raw
}

// notes are for the delegate's instructions.
func (p place) notes() []string {
	if p.note == "" {
		return nil
	}
	return []string{p.note}
}

// findPlace decides where a delegate works. Whether it is trusted there is asked for when nothing else can refuse the launch.
func (l *live) findPlace(ctx context.Context, p plan) (place, error) {
	own := l.inspect(l.ctx, gitws.Inherited, l.start.Cwd)
	here := place{cwd: l.start.Cwd, own: own, workspace: own}
	if p.order.Worktree != "" {
		return l.planWorktree(ctx, p, here)
	}
	dir, err := l.directory(p.order.Cwd)
	if err != nil || dir == git.Canonical(l.start.Cwd) {
		return here, err
	}
	return place{
		cwd: dir, own: own, workspace: l.inspect(l.ctx, gitws.Existing, dir),
		note: "You work in the directory " + gitws.Inline(dir) + ".",
	}, nil
}

// unset are values by which a model says that it does not want to set something.
var unset = []string{"", "null", "none", "false", "undefined"}

// checkPlace refuses wishes that exclude each other.
func checkPlace(o order) error {
	switch {
	case o.Worktree == "" && o.Source != "":
		return usererr.New("there is a source checkout and no worktree to make of it").Hint("name the new branch too, with --worktree or worktree")
	case o.Worktree == "" && o.Base != "":
		return usererr.New("there is a base commit and no worktree to start at it").Hint("name the new branch too, with --worktree or worktree")
	case o.Worktree != "" && !slices.Contains(unset, o.Cwd):
		return usererr.New("a delegate can't have both a working directory and a worktree").Hint("a worktree of another checkout is made with --worktree-source or worktree_source")
	}
	return nil
}

// directory is the real path of a directory that somebody named, or of this session's own for those who named none.
func (l *live) directory(name string) (string, error) {
	if slices.Contains(unset, name) {
		return git.Canonical(l.start.Cwd), nil
	}
	path, err := l.expand(name)
	if err != nil {
		return "", err
	}
	refuse := func(what string) (string, error) {
		refusal := usererr.New("directory %q %s", name, what)
		if path != name {
			refusal.Hint("it was looked for at %s", gitws.Inline(path))
		}
		return "", refusal
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return refuse("does not exist")
	}
	info, err2 := os.Stat(real)
	if err := errors.Join(err, err2); err != nil {
		return refuse("can't be entered: " + reason(err))
	}
	if !info.IsDir() {
		return refuse("is no directory")
	}
	if err := unix.Access(real, unix.R_OK|unix.X_OK); err != nil {
		return refuse("can't be entered: " + err.Error())
	}
	return real, nil
}

// expand makes a path absolute: from this session's directory, or from the home directory after a leading ~.
func (l *live) expand(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", usererr.New("directory %q is not allowed", name)
	}
	if rest, tilde := strings.CutPrefix(name, "~"); tilde && (rest == "" || rest[0] == '/') {
		if l.svc.cfg.Home == "" {
			return "", usererr.New("%q starts at the home directory, which is not known", name).Hint("write the whole path")
		}
		return filepath.Join(l.svc.cfg.Home, rest), nil
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name), nil
	}
	return filepath.Join(l.start.Cwd, name), nil
}

// reason is a file error without the path.
func reason(err error) string {
	var file *fs.PathError
	if errors.As(err, &file) {
		return file.Err.Error()
	}
	return err.Error()
}

// site is the place as far as trust is concerned. In this session's own directory git has no say.
func (l *live) site(agent string, p place) site {
	if p.cwd == l.start.Cwd {
		here := trust.Place{Dir: p.cwd}
		return site{agent: agent, own: here, target: here}
	}
	return site{agent: agent, own: trustPlace(p.own()), target: trustPlace(p.workspace()), protected: p.protected}
}

func trustPlace(w gitws.Workspace) trust.Place {
	p := trust.Place{Dir: w.Cwd}
	if w.Git.State != nil {
		id := w.Git.Identity
		p.MainRoot, p.CommonDir, p.CheckoutRoot = id.MainRoot, id.CommonDir, id.CheckoutRoot
	}
	return p
}
