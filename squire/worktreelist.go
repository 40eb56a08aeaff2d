package squire

import (
	"context"
	"errors"
	"slices"
	"strings"

	"pi-cradle/internal/usererr"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/gitws"
	"pi-cradle/squire/gitws/git"
	"pi-cradle/squire/gitws/worktree"
	"pi-cradle/squire/views"
)

// commandWorktrees is /delegate-worktrees: it lists what was made for delegates, and removes what its user picks.
func (l *live) commandWorktrees(ctx context.Context) error {
	if err := l.healthy(); err != nil {
		return err
	}
	for first := true; ; first = false {
		list, err := l.worktrees(ctx)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			if first {
				l.host.notify("info", "no worktrees of delegates here")
			}
			return nil
		}
		if !l.start.HasUI {
			lines := make([]string, len(list))
			for i, w := range list {
				lines[i] = w.Text()
			}
			l.host.notify("info", strings.Join(lines, "\n"))
			return nil
		}
		p := wire.DialogParams{Kind: "select", Title: "Worktrees of delegates. Remove which?"}
		for _, w := range list {
			name := gitws.Inline(w.Made)
			if w.Made == "" || slices.Contains(p.Options, name) { // of another repository
				name = gitws.Inline(w.Path)
			}
			p.Options, p.Details = append(p.Options, name), append(p.Details, w.Summary()+", in "+gitws.Inline(l.short(w.Path)))
		}
		picked, err := l.host.dialog(ctx, p)
		if err != nil || !picked.OK {
			return err
		}
		i := slices.Index(p.Options, picked.Value)
		if i < 0 {
			return nil
		}
		// A refusal is no reason to leave the list.
		if err := l.removeWorktree(ctx, list[i]); err != nil {
			if ctx.Err() != nil {
				return err
			}
			l.host.notify("error", "delegate: "+usererr.Text(err, ""))
		}
	}
}

// worktrees lists those of this session's repository, and of the others of which its delegates got some.
func (l *live) worktrees(ctx context.Context) ([]worktree.Worktree, error) {
	dirs := []string{l.start.Cwd}
	l.mu.Lock()
	for _, d := range l.state.Children.Delegations {
		if made, ok := planOf(d); ok && !slices.Contains(dirs, made.Source.MainRoot) {
			dirs = append(dirs, made.Source.MainRoot)
		}
	}
	l.mu.Unlock()
	var all []worktree.Worktree
	var failed []error
	listed := 0
	for _, dir := range dirs {
		list, err := worktree.List(ctx, git.Git{}, dir)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		listed++
		for _, w := range list {
			if !slices.ContainsFunc(all, func(other worktree.Worktree) bool { return other.Path == w.Path }) {
				all = append(all, w)
			}
		}
	}
	if listed == 0 {
		return nil, errors.Join(failed...)
	}
	return all, nil
}

// removeWorktree removes one, after asking when something would be lost with it. One in use is not removed.
func (l *live) removeWorktree(ctx context.Context, w worktree.Worktree) error {
	if user := l.workingIn(w.Path); user != "" {
		return usererr.New("the worktree %q is not removed: delegate %s works in it", w.Path, user).Hint("close the delegation first")
	}
	done, err := worktree.Remove(ctx, git.Git{}, w, "")
	if err != nil {
		return err
	}
	if !done.Removed {
		if used := done.Losses.Processes; len(used) > 0 {
			return usererr.New("the worktree %q is not removed: process %d (%s) works in it", w.Path, used[0].PID, gitws.Inline(used[0].Name))
		}
		agreed, err := l.agreesToLose(ctx, w, done.Losses)
		if err != nil || !agreed {
			return err
		}
		if done, err = worktree.Remove(ctx, git.Git{}, w, done.Losses.Digest); err != nil {
			return err
		}
		if !done.Removed {
			return usererr.New("the worktree %q is not removed: what would be lost has changed since you were asked", w.Path)
		}
	}
	text := "removed the worktree " + gitws.Inline(l.short(w.Path))
	switch {
	case done.Branch != "":
		text += "; its branch " + gitws.Inline(done.Branch) + " stays: " + done.Kept
	case w.Made != "":
		text += " and its branch " + gitws.Inline(w.Made)
	}
	l.host.notify("info", text)
	return nil
}

// agreesToLose asks. The first answer, which a key too many would give, loses nothing.
func (l *live) agreesToLose(ctx context.Context, w worktree.Worktree, losses worktree.Losses) (bool, error) {
	const keep, remove = "Keep it", "Remove it"
	question := []string{"Remove " + gitws.Inline(l.short(w.Path)) + "? This would be lost for good:"}
	for _, line := range losses.Lines() {
		if head, cut := views.Head(line, maxLoss); cut {
			line = head + " …"
		}
		question = append(question, line)
	}
	answer, err := l.host.dialog(ctx, wire.DialogParams{Kind: "select", Title: strings.Join(question, "\n"), Options: []string{keep, remove}})
	return answer.OK && answer.Value == remove, err
}

// maxLoss is how much of one line about losses is shown, in bytes.
const maxLoss = 400

// workingIn is the name of an unfinished delegate in a directory, "" for none.
func (l *live) workingIn(dir string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.state.Children.Delegations {
		if d.Unfinished() && (d.Cwd == dir || strings.HasPrefix(d.Cwd, dir+"/")) {
			return d.Name
		}
	}
	return ""
}
