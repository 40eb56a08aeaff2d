// Package trust decides whether a delegate's pi may load what the project in its directory brings along: settings, extensions,
// skills. It is rules and words; package trust/desk asks the user, and pi itself keeps the decisions.
package trust

import "path/filepath"

// Place is a directory and the checkout that it belongs to, absolute and with symlinks resolved. The roots are all "" outside any
// repository, and when git could not tell. Dir need not exist yet.
type Place struct {
	Dir          string
	MainRoot     string // of the repository's main checkout
	CommonDir    string // what all checkouts of the repository share
	CheckoutRoot string // of this checkout
}

// Key is the directory under which a decision about the place is looked up and saved: for a linked worktree the repository's main
// checkout, so that one decision does for all of them, and otherwise the directory itself.
func (p Place) Key() string {
	if p.MainRoot != "" && p.CheckoutRoot != "" && p.CheckoutRoot != p.MainRoot {
		return p.MainRoot
	}
	return p.Dir
}

// Covers says whether the trust that a session at p has holds for other too: it is the same directory, or in the same repository.
func (p Place) Covers(other Place) bool {
	return p.Dir == other.Dir || p.CommonDir != "" && p.CommonDir == other.CommonDir
}

// Facts is what is found out about a place whose trust is not inherited.
type Facts struct {
	Saved     *bool // the saved decision that holds for the key, nil for none
	Protected bool  // there is something in the place that pi loads only with trust
}

// Decide gives the decision that needs no question, if there is one.
func (f Facts) Decide() (approve, decided bool) {
	switch {
	case f.Saved != nil:
		return *f.Saved, true
	case !f.Protected:
		return false, true
	}
	return false, false
}

// Answer is what the user said to a Question. The zero value is no answer.
type Answer string

// The answers. Those for once save nothing and hold for one launch.
const (
	Approve       Answer = "approve"
	ApproveParent Answer = "approve-parent"
	ApproveOnce   Answer = "approve-once"
	Deny          Answer = "deny"
	DenyOnce      Answer = "deny-once"
)

// Approves says whether the delegate's pi starts trusting.
func (a Answer) Approves() bool { return a == Approve || a == ApproveParent || a == ApproveOnce }

// Update is one change to what is saved. A nil Decision forgets what was saved for exactly that path.
type Update struct {
	Path     string
	Decision *bool
}

// Updates is what an answer saves for a key: nothing, the key's own decision, or that of the folder above it, which the key's own
// must not hide.
func Updates(a Answer, key string) []Update {
	yes, no := true, false
	switch a {
	case Approve:
		return []Update{{key, &yes}}
	case ApproveParent:
		if parent := above(key); parent != "" {
			return []Update{{parent, &yes}, {key, nil}}
		}
	case Deny:
		return []Update{{key, &no}}
	}
	return nil
}

// above is the folder that holds dir, "" for the root of the file system.
func above(dir string) string {
	if parent := filepath.Dir(dir); parent != dir {
		return parent
	}
	return ""
}
