package gitws

import (
	"path/filepath"
	"regexp"
	"strings"
)

var outsideName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// ProjectName makes a name for tmux of a project's folder: runs of anything but ASCII letters, digits, - and _ become one
// hyphen, hyphens at the edges go, and "project" stands for nothing at all.
func ProjectName(folder string) string {
	name := strings.Trim(outsideName.ReplaceAllString(filepath.Base(folder), "-"), "-")
	if name == "" {
		return "project"
	}
	return name
}
