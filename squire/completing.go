package squire

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pi-cradle/rpc/wire"
	"pi-cradle/squire/agents"
	"pi-cradle/squire/gitws/git"
)

// commandComplete completes the arguments of /delegate: the agent, then flags and their values. A task is nobody's to complete.
func (l *live) commandComplete(ctx context.Context, p wire.CommandCompleteParams) (wire.CommandCompleteResult, error) {
	res := wire.CommandCompleteResult{Items: []wire.Completion{}}
	if p.Command != "delegate" {
		return res, nil
	}
	at := strings.LastIndexAny(p.Prefix, blanks) + 1
	before, current := p.Prefix[:at], p.Prefix[at:]
	add := func(word, description string) {
		if strings.HasPrefix(word, current) {
			res.Items = append(res.Items, wire.Completion{Value: before + word, Label: word, Description: description})
		}
	}
	words := strings.Fields(before)
	switch {
	case len(words) == 0:
		roster, _ := l.roster()
		for _, a := range roster.Agents {
			add(a.Name, firstLine(a.Description))
		}
	case words[len(words)-1] == "--model":
		reg, err := l.host.models(ctx, false)
		if err != nil {
			return res, nil
		}
		for _, m := range reg.Models {
			add(m.Provider+"/"+m.ID, m.Name)
		}
	case words[len(words)-1] == "--thinking":
		for _, level := range agents.Levels {
			add(level, "")
		}
	case words[len(words)-1] == "--cwd" || words[len(words)-1] == "--worktree-source":
		for _, dir := range l.directories(current) {
			add(dir, "")
		}
	case words[len(words)-1] == "--worktree-base":
		for _, branch := range branches(ctx, l.start.Cwd) {
			add(branch, "")
		}
	case onlyFlags(words[1:]) && strings.HasPrefix(current, "-"):
		for _, name := range flagNames() {
			if !slices.Contains(words, name) {
				add(name, flagHelp[name])
			}
		}
	}
	return res, nil
}

var flagHelp = map[string]string{
	"--model":    "provider/model-id, in place of the agent's",
	"--thinking": "thinking level, in place of the agent's",
	"--label":    "short name for the window",
	"--cwd":      "directory to work in, in place of this session's",
	"--worktree": "new branch to work on, in a worktree of its own",

	"--worktree-source": "checkout that the worktree is made of, in place of this session's",
	"--worktree-base":   "commit at which the worktree starts, in place of the HEAD of its source",

	"--auto-exit":    "close the window after the answer",
	"--no-auto-exit": "keep the window open after the answer",
}

// onlyFlags says that no task has begun in words.
func onlyFlags(words []string) bool {
	for i := 0; i < len(words); i++ {
		takes, known := delegateFlags[words[i]]
		if !known {
			return false
		}
		if takes {
			i++
		}
	}
	return true
}

// maxCompletions is how many names a menu gets.
const maxCompletions = 100

// directories are those whose names go on from what is typed, each with a slash, so that the next one can follow. Names that would
// need quotes are left out.
func (l *live) directories(typed string) []string {
	above := typed[:strings.LastIndexByte(typed, '/')+1]
	path := above
	if typed == "~" {
		return []string{"~/"}
	}
	if path == "" {
		path = "."
	}
	dir, err := l.expand(path)
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var found []string
	for _, entry := range entries {
		name := entry.Name()
		hidden := strings.HasPrefix(name, ".") && !strings.HasPrefix(typed[len(above):], ".")
		if hidden || !strings.HasPrefix(above+name, typed) || strings.ContainsAny(name, blanks+`"`) {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() && len(found) < maxCompletions {
			found = append(found, above+name+"/")
		}
	}
	return found
}

// branches are the local and remote-tracking ones that git names.
func branches(ctx context.Context, dir string) []string {
	out, err := git.Git{}.In(dir).Ask(ctx, "for-each-ref", "--format=%(refname:short)", "--sort=-committerdate", "--count=100", "refs/heads", "refs/remotes")
	if err != nil {
		return nil
	}
	return strings.Fields(string(out))
}
