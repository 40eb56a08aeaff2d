package pkgs

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"pi-cradle/cradle/folder"
)

// file is one extension file of a package: its absolute path, and the one from the package's root, with slashes.
type file struct{ abs, rel string }

// pattern is one entry of a filter. Its operator is '!', '+', '-', or 0 for a plain one.
type pattern struct {
	operator byte
	text     string
}

func parsePatterns(texts []string) []pattern {
	patterns := make([]pattern, len(texts))
	for i, text := range texts {
		if text != "" && strings.IndexByte("!+-", text[0]) >= 0 {
			patterns[i] = pattern{text[0], text[1:]}
		} else {
			patterns[i] = pattern{0, text}
		}
	}
	return patterns
}

// matches says whether p names f: the exact operators compare paths, the others are globs on the path, the bare name or the
// absolute path. A malformed glob names nothing.
func (p pattern) matches(f file) bool {
	if p.operator == '+' || p.operator == '-' {
		exact := strings.TrimPrefix(p.text, "./")
		return exact == f.rel || exact == f.abs
	}
	for _, name := range []string{f.rel, path.Base(f.rel), f.abs} {
		if ok, err := doublestar.Match(p.text, name); err == nil && ok {
			return true
		}
	}
	return false
}

// selected keeps the files that the declaration of p lets through, in their order.
func selected(p folder.Package, files []file) []file {
	patterns := parsePatterns(p.Patterns)
	var admit func(file) bool
	switch {
	case p.Delta:
		admit = func(x file) bool { return lastWord(patterns, x) }
	case !p.Filtered:
		return files
	case len(patterns) == 0:
		return nil
	default:
		admit = func(x file) bool { return strongestWord(patterns, x) }
	}
	var kept []file
	for _, x := range files {
		if admit(x) {
			kept = append(kept, x)
		}
	}
	return kept
}

// strongestWord decides by rank: "-" beats "+", which beats "!", which beats the plain patterns. Without plain patterns
// everything else is in.
func strongestWord(patterns []pattern, f file) bool {
	matched, plain := map[byte]bool{}, false
	for _, p := range patterns {
		plain = plain || p.operator == 0
		matched[p.operator] = matched[p.operator] || p.matches(f)
	}
	switch {
	case matched['-']:
		return false
	case matched['+']:
		return true
	case matched['!']:
		return false
	default:
		return !plain || matched[0]
	}
}

// lastWord decides by the last pattern that names f; unnamed is out.
func lastWord(patterns []pattern, f file) bool {
	in := false
	for _, p := range patterns {
		if p.matches(f) {
			in = p.operator == 0 || p.operator == '+'
		}
	}
	return in
}
