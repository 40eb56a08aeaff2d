// Package gitws holds what is known of the directory a delegate works in: the record made at launch, the snapshots taken later,
// where managed worktrees go, and how all of that reads. It is data and text: it runs nothing and looks at no file. Package
// gitws/git asks git, package gitws/worktree makes and removes checkouts.
//
// The JSON of Workspace, Git and Snapshot is a contract with other programs.
package gitws

// Mode says how a delegate's directory was chosen.
type Mode string

// A delegate works in its parent's directory, in another one that was there already, or in a worktree made for it.
const (
	Inherited Mode = "inherited"
	Existing  Mode = "existing"
	Managed   Mode = "managed"
)

// Workspace is the record of a delegate's directory, made once, at launch.
type Workspace struct {
	Mode Mode   `json:"mode"`
	Cwd  string `json:"cwd"` // absolute, symlinks resolved
	Git  Git    `json:"git"`
}

// Kind tells the three things that a look with git can come to.
type Kind string

// Unknown is no claim either way: git could not be asked, or not completely.
const (
	Checkout Kind = "git"
	NonGit   Kind = "non-git"
	Unknown  Kind = "unknown"
)

// Git is the checkout that a directory belongs to. State is set for Checkout only, Reason for Unknown only.
type Git struct {
	Kind Kind `json:"kind"`
	*State
	Reason string `json:"reason,omitempty"`
}

// State is a checkout at launch. Head and Baseline are the same commit then, nil in a repository without commits.
type State struct {
	Identity Identity `json:"identity"`
	Position Position `json:"position"`
	Head     *string  `json:"head"`
	Baseline *string  `json:"baseline"`
}

// Identity says which checkout of which repository, by absolute paths with symlinks resolved.
type Identity struct {
	MainRoot     string `json:"mainRoot"`     // of the main checkout, also when CheckoutRoot is a linked worktree
	CommonDir    string `json:"commonDir"`    // what all checkouts of the repository share
	CheckoutRoot string `json:"checkoutRoot"` // of this checkout
}

// Linked says whether the checkout is a linked worktree.
func (i Identity) Linked() bool { return i.CheckoutRoot != i.MainRoot }

// Position is where HEAD points: to a branch (which may have no commit yet), or to a commit.
type Position struct {
	Branch   *string `json:"branch"`
	Detached bool    `json:"detached"`
}

// OnBranch is the position on a branch, by its name without refs/heads/.
func OnBranch(name string) Position { return Position{Branch: &name} }

// Detached is the position on no branch.
func Detached() Position { return Position{Detached: true} }

// Outside is the record of a directory in no checkout.
func Outside() Git { return Git{Kind: NonGit} }

// Unsure is the record of a directory about which git could not be asked.
func Unsure(reason string) Git { return Git{Kind: Unknown, Reason: reason} }
