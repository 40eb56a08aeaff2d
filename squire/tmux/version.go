package tmux

import (
	"fmt"
	"strings"
)

// Version is a tmux release. Builds without a number, such as "master", are taken for newer than any release.
type Version struct {
	Text         string
	Major, Minor int
	Numbered     bool
}

// ParseVersion reads "3.3a", "next-3.4" and the like, with or without the "tmux " of tmux -V.
func ParseVersion(text string) Version {
	v := Version{Text: text}
	number := strings.TrimPrefix(strings.TrimPrefix(text, "tmux "), "next-")
	n, _ := fmt.Sscanf(number, "%d.%d", &v.Major, &v.Minor)
	v.Numbered = n == 2
	return v
}

// AtLeast compares with a release. An empty version comes from servers that are too old to tell.
func (v Version) AtLeast(major, minor int) bool {
	if !v.Numbered {
		return v.Text != ""
	}
	return v.Major > major || v.Major == major && v.Minor >= minor
}
