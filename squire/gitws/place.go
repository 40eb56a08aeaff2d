package gitws

import (
	"path/filepath"
	"regexp"
	"strings"

	"pi-cradle/internal/usererr"
)

// DefaultTemplate is where worktrees go without a setting.
const DefaultTemplate = "{repoParent}/{repo}-worktrees/{branch}"

// Placement are the settings for where worktrees go, as the user wrote them. Root "" is not set.
type Placement struct {
	Root   string            // worktreeRoot
	ByRepo map[string]string // worktreeRootByRepo: main checkout to template
	Home   string            // absolute; what ~ stands for
	Dir    string            // absolute; the folder of the settings file, which relative paths start from
}

// braces finds anything that looks like a placeholder.
var braces = regexp.MustCompile(`\{[^{}]*\}|[{}]`)

// Path is where the worktree for a branch of the repository with that main checkout goes: absolute and clean. The most
// specific template counts, but all of them must be valid. canonical makes paths comparable: it gives the same answer for all
// spellings of one directory, whether it exists or not.
func (p Placement) Path(mainRoot, branch string, canonical func(string) string) (string, error) {
	template := p.Root
	if template == "" {
		template = DefaultTemplate
	}
	if err := valid("worktreeRoot", template); err != nil {
		return "", err
	}
	seen := map[string]string{}
	main := canonical(mainRoot)
	for key, t := range p.ByRepo {
		if err := valid("worktreeRootByRepo", t); err != nil {
			return "", err
		}
		if err := valid("worktreeRootByRepo", key); err != nil || strings.ContainsAny(key, "{}") {
			return "", usererr.New("%q in worktreeRootByRepo names no repository", key).Hint("use the path of its main checkout")
		}
		repo := canonical(p.absolute(p.home(key)))
		if other, twice := seen[repo]; twice {
			first, second := min(key, other), max(key, other)
			return "", usererr.New("%q and %q in worktreeRootByRepo are the same repository", first, second).Hint("keep one of them")
		}
		seen[repo] = key
		if repo == main {
			template = t
		}
	}
	values := map[string]string{
		"{repoParent}": filepath.Dir(mainRoot), "{repo}": filepath.Base(mainRoot), "{branch}": strings.ReplaceAll(branch, "/", "-"),
	}
	// In one pass, so that a folder called "{branch}" stays what it is; ~ is looked at before, so that it is the template's own.
	return p.absolute(braces.ReplaceAllStringFunc(p.home(template), func(b string) string { return values[b] })), nil
}

func valid(key, template string) error {
	bad := func(why string) error {
		return usererr.New("%q in %s %s", template, key, why).Hint("a template is a path with {repoParent}, {repo} and {branch}, such as %q", DefaultTemplate)
	}
	switch {
	case strings.TrimSpace(template) == "":
		return bad("is empty")
	case strings.ContainsRune(template, 0):
		return bad("holds a NUL character")
	case strings.HasPrefix(template, "~") && template != "~" && !strings.HasPrefix(template, "~/"):
		return bad("names another user's home, which is not looked up")
	}
	for _, b := range braces.FindAllString(template, -1) {
		if b != "{repoParent}" && b != "{repo}" && b != "{branch}" {
			return bad("has an unknown placeholder " + b)
		}
	}
	return nil
}

func (p Placement) home(path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		return p.Home + path[1:]
	}
	return path
}

func (p Placement) absolute(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.Dir, path)
	}
	return filepath.Clean(path)
}
