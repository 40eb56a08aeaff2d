// Package closest finds the words a mistyped one was probably meant to be.
package closest

import (
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

const maxSuggestions = 3

// To lists at most three of known that are close to typed, nearest first: words it is a part of, or that differ from it in a few
// letters. Case and leading dashes play no part.
func To(typed string, known []string) []string {
	type candidate struct {
		word     string
		distance int
	}
	var found []candidate
	low := bare(typed)
	if low == "" {
		return nil
	}
	allowed := 1 + len(low)/4
	for _, word := range known {
		lw := bare(word)
		d := levenshtein.Distance(low, lw, nil)
		if len(low) >= 3 && strings.Contains(lw, low) {
			d = min(d, allowed)
		}
		if d <= allowed {
			found = append(found, candidate{word, d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.distance - b.distance })
	var out []string
	for _, c := range found[:min(len(found), maxSuggestions)] {
		out = append(out, c.word)
	}
	return out
}

func bare(word string) string { return strings.ToLower(strings.TrimLeft(word, "-")) }

// Hint is To as a sentence: `did you mean "a", "b" or "c"?`, or "" when nothing is close.
func Hint(typed string, known []string) string {
	near := To(typed, known)
	for i, w := range near {
		near[i] = `"` + w + `"`
	}
	switch len(near) {
	case 0:
		return ""
	case 1:
		return "did you mean " + near[0] + "?"
	}
	return "did you mean " + strings.Join(near[:len(near)-1], ", ") + " or " + near[len(near)-1] + "?"
}
