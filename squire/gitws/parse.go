package gitws

import (
	"bytes"
	"fmt"
	"strings"
)

// Status is what `git status --porcelain=v2 --branch -z` says. Paths are bytes as git has them, from the root of the checkout.
type Status struct {
	Head   string // "" before the first commit
	Branch string // "(detached)" is ambiguous: a branch can have that name
	Staged, Unstaged, Untracked, Conflicted,
	Ignored []string
}

// Pending bounds the lists.
func (s Status) Pending() Pending {
	return Pending{ListOf(s.Staged), ListOf(s.Unstaged), ListOf(s.Untracked), ListOf(s.Conflicted)}
}

// DetachedHead is what Status.Branch says of a HEAD on no branch.
const DetachedHead = "(detached)"

// ParseStatus reads the output of git status. A rename puts both of its paths on the list.
func ParseStatus(out []byte) (Status, error) {
	var s Status
	entries, err := SplitNUL(out)
	if err != nil {
		return s, err
	}
	for i := 0; i < len(entries); i++ {
		kind, rest, _ := strings.Cut(entries[i], " ")
		// The path is the last field of each kind and may hold spaces itself.
		fields := map[string]int{"1": 8, "2": 9, "u": 10, "?": 1, "!": 1, "#": 2}[kind]
		part := strings.SplitN(rest, " ", fields)
		if fields == 0 || len(part) != fields || part[fields-1] == "" {
			return s, fmt.Errorf("git status gave an entry that is not understood: %q", clip(entries[i]))
		}
		path := part[fields-1]
		switch kind {
		case "#":
			s.header(part[0], path)
		case "?":
			s.Untracked = append(s.Untracked, path)
		case "!":
			s.Ignored = append(s.Ignored, path)
		case "u":
			s.Conflicted = append(s.Conflicted, path)
		default:
			paths := []string{path}
			if kind == "2" {
				if i++; i == len(entries) {
					return s, fmt.Errorf("git status gave a rename without its old path")
				}
				paths = append(paths, entries[i])
			}
			if len(part[0]) != 2 {
				return s, fmt.Errorf("git status gave an entry that is not understood: %q", clip(entries[i]))
			}
			if part[0][0] != '.' {
				s.Staged = append(s.Staged, paths...)
			}
			if part[0][1] != '.' {
				s.Unstaged = append(s.Unstaged, paths...)
			}
		}
	}
	return s, nil
}

func (s *Status) header(key, value string) {
	switch key {
	case "branch.oid":
		if value != "(initial)" {
			s.Head = value
		}
	case "branch.head":
		s.Branch = value
	}
}

// SplitNUL splits output in which a NUL follows each item.
func SplitNUL(out []byte) ([]string, error) {
	if len(out) == 0 {
		return nil, nil
	}
	if out[len(out)-1] != 0 {
		return nil, fmt.Errorf("git's output ends in the middle of %q", clip(string(out[bytes.LastIndexByte(out, 0)+1:])))
	}
	return strings.Split(string(out[:len(out)-1]), "\x00"), nil
}

// Flagged are the paths of `git ls-files -v -z` whose changes git status does not look at: those marked assume-unchanged, and
// those that a sparse checkout leaves out (skip), which are normally not there.
func Flagged(out []byte) (assumed, skipped []string, err error) {
	entries, err := SplitNUL(out)
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		tag, path, ok := strings.Cut(entry, " ")
		switch {
		case !ok || len(tag) != 1 || path == "":
			return nil, nil, fmt.Errorf("git ls-files gave an entry that is not understood: %q", clip(entry))
		case tag[0] >= 'a' && tag[0] <= 'z':
			assumed = append(assumed, path)
		case tag == "S":
			skipped = append(skipped, path)
		}
	}
	return assumed, skipped, nil
}

// Submodules are the paths of `git ls-files --stage -z` that are submodules.
func Submodules(out []byte) ([]string, error) {
	entries, err := SplitNUL(out)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, entry := range entries {
		head, path, ok := strings.Cut(entry, "\t")
		if !ok || path == "" {
			return nil, fmt.Errorf("git ls-files gave an entry that is not understood: %q", clip(entry))
		}
		// An unmerged submodule has one entry per stage, one after the other.
		if strings.HasPrefix(head, "160000 ") && (len(paths) == 0 || paths[len(paths)-1] != path) {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// Lines splits the answers of a `git rev-parse` with several questions. ok is false unless there are exactly n, as happens when
// a path holds a line break.
func Lines(out []byte, n int) (lines []string, ok bool) {
	lines = strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	return lines, len(lines) == n
}

func clip(s string) string {
	const limit = 200
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}
