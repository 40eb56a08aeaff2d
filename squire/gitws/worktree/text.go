package worktree

import (
	"fmt"

	"pi-cradle/squire/gitws"
)

// Notes are lines for the start notice: what the delegate has, and what it has not.
func (p Plan) Notes(c Copied) []string {
	from := "HEAD"
	if p.BaseName != "" {
		from = gitws.Inline(p.BaseName)
	}
	notes := []string{fmt.Sprintf("worktree %s on new branch %s, from %s at commit %s", gitws.Inline(p.Path), gitws.Inline(p.Branch), from, p.Base)}
	if short := p.Left.Short(); short != "" {
		notes = append(notes, "not in the worktree, for it is in no commit: "+short+" in "+gitws.Inline(p.Source.CheckoutRoot))
	}
	if c.Files > 0 {
		notes = append(notes, fmt.Sprintf("copied by %s: %s, %s", IncludeFile, count(c.Files, "file"), size(c.Bytes)))
	}
	for _, skipped := range c.Skipped {
		notes = append(notes, "not copied: "+skipped)
	}
	return notes
}

// Context is for the delegate's instructions. It names no directory but the worktree's, so that nobody is led to another.
func (p Plan) Context() string {
	return fmt.Sprintf("You work in %s, the root of a Git worktree that was made for your task. It is on the new branch %s, which starts at commit %s.",
		gitws.Inline(p.Path), gitws.Inline(p.Branch), p.Base)
}

// Text is a worktree in one line.
func (w Worktree) Text() string { return gitws.Inline(w.Path) + ": " + w.Summary() }

// Summary is Text without the path.
func (w Worktree) Summary() string {
	if w.Unsure != "" {
		return "not known: " + w.Unsure
	}
	where := "detached HEAD"
	if w.Position.Branch != nil {
		where = "branch " + gitws.Inline(*w.Position.Branch)
	}
	state := string(w.State)
	if w.Missing {
		state = "its folder is gone"
	}
	merged := "not merged"
	switch {
	case w.Merged:
		merged = "merged into " + gitws.Inline(w.BaseBranch)
	case len(w.On) > 0:
		merged = "on " + gitws.Inline(w.On[0])
		if more := len(w.On) - 1; more > 0 {
			merged += fmt.Sprintf(" and %d more", more)
		}
	}
	text := fmt.Sprintf("%s, %s ahead, %s, %s", where, count(w.Ahead, "commit"), state, merged)
	if w.Locked {
		text += ", locked"
	}
	return text
}

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
