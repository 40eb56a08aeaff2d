// Package which finds the programs cradle starts: on PATH, and failing that among mise's shims, because a timer's environment
// or a desktop launcher often lacks the PATH of a login shell.
package which

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"pi-cradle/internal/usererr"
)

// Search says where to look. It reads the file system and nothing else.
type Search struct {
	Path string // as in the PATH variable
	Home string
	Cwd  string // what relative entries of Path are relative to
}

// Find returns the path of the executable called name, links not resolved.
func (s Search) Find(name string) (string, bool) {
	for _, dir := range filepath.SplitList(s.Path) {
		if dir == "" {
			continue
		}
		// Joined by hand: filepath.Join would clean what the user wrote, and a timer stores this spelling.
		if !filepath.IsAbs(dir) {
			dir = s.Cwd + "/" + dir
		}
		if path := strings.TrimSuffix(dir, "/") + "/" + name; executable(path) {
			return path, true
		}
	}
	shim := filepath.Join(s.Home, ".local/share/mise/shims", name)
	if _, err := os.Stat(shim); err == nil {
		return shim, true
	}
	return "", false
}

// Require is Find for a program there is no going on without.
func (s Search) Require(name string) (string, error) {
	if path, ok := s.Find(name); ok {
		return path, nil
	}
	return "", usererr.New("Required executable %q not found on PATH — install it, then run `cradle doctor` to verify", name)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil
}
