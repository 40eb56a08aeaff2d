package gitws

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// StatusLines are the lines of a delegation's block in the status report. w is nil for a delegation that was recorded without
// its workspace.
func StatusLines(w *Workspace, now Snapshot) []string {
	var lines []string
	if w != nil {
		lines = append(lines, "  workspace: "+w.Text())
	}
	lines = append(lines, "  checkout now: "+now.Text())
	for _, line := range now.PathLines() {
		lines = append(lines, "    "+line)
	}
	return lines
}

// ResultLines are the lines of a result message. at is nil in a message without a snapshot, such as that of a delegate that is
// gone.
func ResultLines(w *Workspace, at *Snapshot) []string {
	var lines []string
	if w != nil {
		lines = append(lines, "Workspace: "+w.Text())
	}
	if at == nil {
		return lines
	}
	lines = append(lines, "Checkout when the result arrived: "+at.Text())
	for _, line := range at.PathLines() {
		lines = append(lines, "  "+line)
	}
	return lines
}

// Text says in one line how the directory was chosen, and what checkout it was at launch.
func (w Workspace) Text() string {
	how := map[Mode]string{Inherited: "parent's directory", Existing: "existing directory", Managed: "managed worktree"}[w.Mode]
	if how == "" {
		how = "directory"
	}
	return how + "; " + w.Git.text()
}

func (g Git) text() string {
	if g.Kind != Checkout || g.State == nil {
		return outside(g.Kind, g.Reason)
	}
	s := g.State
	where := "Git checkout " + Inline(s.Identity.MainRoot)
	if s.Identity.Linked() {
		where += " (linked worktree " + Inline(s.Identity.CheckoutRoot) + ")"
	}
	return strings.Join([]string{where, s.Position.text(), baseline(s.Baseline)}, ", ")
}

// Text is the snapshot in one line, without its paths.
func (s Snapshot) Text() string {
	if s.Kind != Checkout || s.Tree == nil {
		return outside(s.Kind, s.Reason)
	}
	t := s.Tree
	head := "no commits yet"
	if t.Head != nil {
		head = "head " + *t.Head
	}
	since := plural(t.Ahead, "commit") + " since launch"
	return strings.Join([]string{t.Position.text(), head, baseline(t.Baseline), since, "working tree " + string(t.WorkingState)}, ", ")
}

// PathLines are the five lists, one line each; nil when nothing is known of them.
func (s Snapshot) PathLines() []string {
	if s.Kind != Checkout || s.Tree == nil {
		return nil
	}
	return []string{
		"committed since launch: " + s.Committed.Text(),
		"staged: " + s.Pending.Staged.Text(),
		"unstaged: " + s.Pending.Unstaged.Text(),
		"untracked: " + s.Pending.Untracked.Text(),
		"conflicted: " + s.Pending.Conflicted.Text(),
	}
}

// Text is the list in one line, each path quoted as in JSON.
func (l PathList) Text() string {
	if l.Total == 0 {
		return "none"
	}
	count := plural(l.Total, "path")
	if len(l.Paths) == 0 {
		return count + ", too long to show"
	}
	if l.Truncated {
		count += fmt.Sprintf(", the first %d", len(l.Paths))
	}
	quoted := make([]string, len(l.Paths))
	for i, path := range l.Paths {
		quoted[i] = quote(path)
	}
	return count + ": " + strings.Join(quoted, ", ")
}

// Short counts the lists that are not empty, such as "2 staged, 1 untracked"; "" when all are.
func (p Pending) Short() string {
	var parts []string
	for _, list := range []struct {
		word  string
		total int
	}{{"staged", p.Staged.Total}, {"unstaged", p.Unstaged.Total}, {"untracked", p.Untracked.Total}, {"conflicted", p.Conflicted.Total}} {
		if list.total > 0 {
			parts = append(parts, strconv.Itoa(list.total)+" "+list.word)
		}
	}
	return strings.Join(parts, ", ")
}

func outside(kind Kind, reason string) string {
	if kind == NonGit {
		return "not a Git checkout"
	}
	return "Git state unknown (" + reason + ")"
}

func (p Position) text() string {
	if p.Detached || p.Branch == nil {
		return "detached HEAD"
	}
	return "branch " + Inline(*p.Branch)
}

func baseline(sha *string) string {
	if sha == nil {
		return "no commits at launch"
	}
	return "launch commit " + *sha
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// Inline is s as it is when it can't be mistaken in a line of text, and quoted otherwise.
func Inline(s string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == utf8.RuneError }
	if s == "" || strings.TrimSpace(s) != s || strings.ContainsFunc(s, odd) {
		return quote(s)
	}
	return s
}

// quote is s as a JSON string, with <, > and & as they are.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return strconv.Quote(s) // a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}
