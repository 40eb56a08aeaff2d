package alias

import (
	"path/filepath"
	"strings"
)

// PathShaped says whether a configured path names one place whatever the working directory is: absolute, ~, ~/…, $HOME, $HOME/…,
// or a Windows drive or UNC path.
func PathShaped(p string) bool {
	switch {
	case strings.HasPrefix(p, "/"), strings.HasPrefix(p, `\\`):
		return true
	case p == "~", p == "$HOME", strings.HasPrefix(p, "~/"), strings.HasPrefix(p, "$HOME/"):
		return true
	}
	return len(p) >= 3 && isLetter(p[0]) && p[1] == ':' && (p[2] == '\\' || p[2] == '/')
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// ExpandHome replaces a leading ~ or $HOME by home, as text: nothing is cleaned, and ~x or $HOMEx stay.
func ExpandHome(p, home string) string {
	for _, prefix := range []string{"~", "$HOME"} {
		if rest, ok := strings.CutPrefix(p, prefix); ok && (rest == "" || rest[0] == '/') {
			return home + rest
		}
	}
	return p
}

// Absolute expands the home, resolves p against dir and cleans it, without following links.
func Absolute(p, dir, home string) string {
	return resolve(ExpandHome(p, home), dir)
}

func resolve(p, dir string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(dir, p)
}
