package gitws

import "strings"

// Snapshot is one look at a delegation's checkout. Tree is set for Checkout only, Reason for Unknown only.
type Snapshot struct {
	Kind Kind `json:"kind"`
	*Tree
	Reason string `json:"reason,omitempty"`
}

// Tree is a checkout as it was found. Every count is complete: a look that met a limit is Unknown instead.
type Tree struct {
	Position     Position     `json:"position"`
	Head         *string      `json:"head"`
	Baseline     *string      `json:"baseline"`
	Ahead        int          `json:"ahead"` // commits reachable from Head and not from Baseline
	WorkingState WorkingState `json:"workingState"`
	Committed    PathList     `json:"committed"` // differs between Baseline and Head
	Pending      Pending      `json:"pending"`
}

// WorkingState sums Pending up.
type WorkingState string

// Dirty means that at least one of the lists in Pending is not empty.
const (
	Clean WorkingState = "clean"
	Dirty WorkingState = "dirty"
)

// Pending are the paths with changes that are in no commit. A path can be in several lists.
type Pending struct {
	Staged     PathList `json:"staged"`
	Unstaged   PathList `json:"unstaged"`
	Untracked  PathList `json:"untracked"`
	Conflicted PathList `json:"conflicted"`
}

// State is Dirty unless every list is empty.
func (p Pending) State() WorkingState {
	if p.Staged.Total+p.Unstaged.Total+p.Untracked.Total+p.Conflicted.Total > 0 {
		return Dirty
	}
	return Clean
}

// PathList is the beginning of a list of paths, and how many there are. Bytes that are no UTF-8 read as U+FFFD.
type PathList struct {
	Paths     []string `json:"paths"`
	Total     int      `json:"total"`
	Truncated bool     `json:"truncated"`
}

// A PathList holds whole paths only, within both bounds.
const (
	maxPaths     = 100
	maxPathBytes = 16 << 10
)

// ListOf bounds paths, in their order.
func ListOf(paths []string) PathList {
	list := PathList{Paths: []string{}, Total: len(paths)}
	room := maxPathBytes
	for _, path := range paths {
		path = strings.ToValidUTF8(path, "\ufffd")
		room -= len(path)
		if room < 0 || len(list.Paths) == maxPaths {
			list.Truncated = true
			break
		}
		list.Paths = append(list.Paths, path)
	}
	return list
}

// NoWorkspace is the reason for which a delegation that was recorded without a workspace has no snapshot.
const NoWorkspace = "this delegation was recorded before its launch checkout was kept"

// UnsureNow is the snapshot that claims nothing.
func UnsureNow(reason string) Snapshot { return Snapshot{Kind: Unknown, Reason: reason} }
