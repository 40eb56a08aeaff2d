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

	"pi-cradle/squire/gitws"
	"pi-cradle/squire/gitws/git"
)

// Losses is what would be gone for good with a worktree. Its branch is not among it, for that stays unless all of it is on another
// branch. Ignored files that are the same in the source checkout are no loss either.
type Losses struct {
	Pending    gitws.Pending
	Ignored    gitws.PathList
	Hidden     gitws.PathList // marked in the index so that git does not look for changes
	Commits    []string       // "<sha> <subject>", on no branch or tag; the first of them
	Unnamed    int            // how many there are
	Operation  string         // an unfinished rebase or the like; "" is none
	Submodules []string       // one line each
	Processes  []Process      // whose working directory is inside
	Unsure     []string       // questions that got no answer

	// Digest stands for all of the above in full, by names and not by contents. Whoever agrees to the losses hands it back, and
	// agrees to no others.
	Digest string
}

// Process is a running program.
type Process struct {
	PID  int
	Name string
}

// Any says whether there is anything to lose, or anything that is not known.
func (l Losses) Any() bool { return len(l.Lines()) > 0 }

// Lines says what would be lost, one thing a line.
func (l Losses) Lines() []string {
	var lines []string
	for _, list := range []struct {
		what string
		gitws.PathList
	}{
		{"staged", l.Pending.Staged}, {"unstaged", l.Pending.Unstaged}, {"untracked", l.Pending.Untracked}, {"conflicted", l.Pending.Conflicted},
		{"ignored", l.Ignored}, {"hidden from git status", l.Hidden},
	} {
		if list.Total > 0 {
			lines = append(lines, list.what+": "+list.Text())
		}
	}
	if l.Unnamed > 0 {
		line := fmt.Sprintf("commits on no branch: %d", l.Unnamed)
		for _, commit := range l.Commits {
			line += "\n  " + gitws.Inline(commit)
		}
		lines = append(lines, line)
	}
	if l.Operation != "" {
		lines = append(lines, "unfinished: "+l.Operation)
	}
	for _, line := range l.Submodules {
		lines = append(lines, "submodule "+line)
	}
	for _, p := range l.Processes {
		lines = append(lines, fmt.Sprintf("in use by process %d (%s)", p.PID, gitws.Inline(p.Name)))
	}
	for _, line := range l.Unsure {
		lines = append(lines, "not known: "+line)
	}
	return lines
}

// shown is how many commits are named.
const shown = 20

// assess finds out what a worktree holds that is kept nowhere else. source is the checkout its ignored files may have come from;
// branch is the one that stays.
func assess(ctx context.Context, g git.Git, here git.Place, source, branch string) Losses {
	l := Losses{Operation: operation(here.GitDir)}
	commits, err := unnamed(ctx, g, here, branch)
	if err != nil {
		l.unsure("its commits", ask(g, here.CommonDir), err)
	}
	l.Unnamed, l.Commits = len(commits), commits[:min(len(commits), shown)]
	if _, err := os.Lstat(here.Root); errors.Is(err, fs.ErrNotExist) {
		l.staged(ctx, ask(g, here.CommonDir), here.GitDir)
		l.Digest = digest([]any{commits, l})
		return l
	}
	a := ask(g, here.Root)
	status, _, err := a.Status(ctx, "--ignored=matching")
	if err != nil {
		l.unsure("its changes", a, err)
	}
	l.Pending = status.Pending()
	var ignored []string
	same := comparison{from: source, to: here.Root}
	for _, path := range status.Ignored {
		if !same.holds(path) {
			ignored = append(ignored, path)
		}
	}
	l.Ignored = gitws.ListOf(ignored)
	l.hidden(ctx, a, here.Root)
	l.Submodules = l.submodules(ctx, g, here.Root, "", 0)
	if l.Processes, err = processesIn(ctx, here.Root); err != nil {
		l.Unsure = append(l.Unsure, "whether a program works in it: "+err.Error())
	}
	l.Digest = digest([]any{status, ignored, commits, l})
	return l
}

// staged is what the index holds of a worktree whose folder is gone.
func (l *Losses) staged(ctx context.Context, a *git.Asker, gitDir string) {
	out, err := a.Ask(ctx, "--git-dir="+gitDir, "diff-index", "--cached", "--name-only", "-z", "HEAD", "--")
	var paths []string
	if err == nil {
		paths, err = gitws.SplitNUL(out)
	}
	if err != nil {
		l.unsure("what is staged", a, err)
	}
	l.Pending.Staged = gitws.ListOf(paths)
}

func (l *Losses) unsure(what string, a *git.Asker, err error) {
	l.Unsure = append(l.Unsure, what+": "+a.Reason(err))
}

// hidden adds files that git status was told not to look at. Those of a sparse checkout are normally not there at all.
func (l *Losses) hidden(ctx context.Context, a *git.Asker, root string) {
	out, err := a.Ask(ctx, "ls-files", "-v", "-z")
	var assumed, skipped []string
	if err == nil {
		assumed, skipped, err = gitws.Flagged(out)
	}
	if err != nil {
		l.unsure("files hidden from git status", a, err)
		return
	}
	for _, path := range skipped {
		if _, err := os.Lstat(filepath.Join(root, path)); err == nil {
			assumed = append(assumed, path)
		}
	}
	l.Hidden = gitws.ListOf(assumed)
}

// operation names what is under way in a checkout, by the files in which git keeps it.
func operation(gitDir string) string {
	for _, op := range [][2]string{
		{"rebase-merge", "rebase"}, {"rebase-apply", "rebase or am"}, {"MERGE_HEAD", "merge"}, {"CHERRY_PICK_HEAD", "cherry-pick"},
		{"REVERT_HEAD", "revert"}, {"sequencer", "cherry-pick or revert"}, {"BISECT_LOG", "bisect"},
	} {
		if _, err := os.Lstat(filepath.Join(gitDir, op[0])); err == nil {
			return op[1]
		}
	}
	return ""
}

// unnamed are the commits that only this checkout remembers: its HEAD, where that has been, and refs of its own. What a ref of the
// repository reaches, or the reflog of the branch that stays, is remembered elsewhere. Each is "<sha> <subject>".
func unnamed(ctx context.Context, g git.Git, here git.Place, branch string) ([]string, error) {
	own := ask(g, here.CommonDir)
	var candidates []byte
	for _, question := range [][]string{
		{"rev-parse", "--verify", "--quiet", "HEAD"},
		{"log", "--walk-reflogs", "--format=%H", "HEAD", "--"},
		{"for-each-ref", "--format=%(objectname)", "refs/worktree", "refs/bisect", "refs/rewritten"},
	} {
		out, err := own.Ask(ctx, append([]string{"--git-dir=" + here.GitDir}, question...)...)
		if git.No(err) { // only the first says no, and then git won't show where HEAD has been
			return nil, errors.New("it is on a branch without a commit")
		}
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, out...)
	}
	return beyond(ctx, own, here.CommonDir, candidates, branch)
}

// beyond are those of the commits (one a line), and of what they descend from, that no ref and no entry in the reflog of branch
// reaches.
func beyond(ctx context.Context, a *git.Asker, common string, commits []byte, branch string) ([]string, error) {
	if len(strings.TrimSpace(string(commits))) == 0 {
		return nil, nil
	}
	kept, err := reflog(ctx, a, common, branch)
	if err != nil {
		return nil, err
	}
	for _, sha := range kept {
		commits = append(commits, "^"+sha+"\n"...)
	}
	out, err := a.AskWith(ctx, strings.NewReader(string(commits)), "--git-dir="+common, "rev-list", "--ignore-missing", "--pretty=oneline", "--no-abbrev-commit",
		"--stdin", "--not", "--glob=refs/*")
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"), nil
}

// reflog is where a branch has been, the latest first; nothing for one that is not there.
func reflog(ctx context.Context, a *git.Asker, common, branch string) ([]string, error) {
	if branch == "" {
		return nil, nil
	}
	there, err := a.Is(ctx, "--git-dir="+common, "show-ref", "--verify", "--quiet", ref(branch))
	if err != nil || !there {
		return nil, err
	}
	out, err := a.Ask(ctx, "--git-dir="+common, "log", "--walk-reflogs", "--format=%H", ref(branch), "--")
	return strings.Fields(string(out)), err
}

// maxDepth is how deep submodules may lie in one another.
const maxDepth = 8

// submodules has a line for each submodule with something to lose: its repository goes with the worktree, commits and all.
func (l *Losses) submodules(ctx context.Context, g git.Git, root, prefix string, depth int) []string {
	a := ask(g, root)
	out, err := a.Ask(ctx, "ls-files", "--stage", "-z")
	var paths []string
	if err == nil {
		paths, err = gitws.Submodules(out)
	}
	if err == nil && depth == maxDepth && len(paths) > 0 {
		err = errors.New("they lie too deep in one another")
	}
	if err != nil {
		l.unsure("submodules of "+strconv.Quote(prefix), a, err)
		return nil
	}
	var lines []string
	for _, path := range paths {
		dir := filepath.Join(root, path)
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
			continue // not initialised: an empty folder
		}
		if what := moduleLoss(ctx, g, dir); what != "" {
			lines = append(lines, strconv.Quote(prefix+path)+": "+what)
		}
		lines = append(lines, l.submodules(ctx, g, dir, prefix+path+"/", depth+1)...)
	}
	return lines
}

// moduleLoss is what one submodule has that its remotes have not.
func moduleLoss(ctx context.Context, g git.Git, dir string) string {
	a := ask(g, dir)
	here, err := a.Where(ctx)
	if err != nil {
		return "not known: " + a.Reason(err)
	}
	var parts []string
	status, _, err := a.Status(ctx, "--ignored=matching")
	if err != nil {
		return "not known: " + a.Reason(err)
	}
	if short := status.Pending().Short(); short != "" {
		parts = append(parts, short)
	}
	if n := len(status.Ignored); n > 0 {
		parts = append(parts, fmt.Sprintf("%d ignored", n))
	}
	if op := operation(here.GitDir); op != "" {
		parts = append(parts, "an unfinished "+op)
	}
	count, err := a.Line(ctx, "rev-list", "--count", "--ignore-missing", "--all", "--reflog", "--not", "--remotes")
	switch {
	case err != nil:
		parts = append(parts, "commits not known: "+a.Reason(err))
	case count != "0":
		parts = append(parts, count+" commits on no remote branch")
	}
	return strings.Join(parts, ", ")
}
