// Package localesort orders names as people read them, the way JavaScript's localeCompare does in English: letters regardless
// of case first, then case, with punctuation before digits before letters.
package localesort

import (
	"slices"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
)

// Strings sorts names in place. Names that the collation can't tell apart are ordered by their bytes.
func Strings(names []string) {
	Func(names, func(name string) string { return name })
}

// Func sorts items in place by the name each has.
func Func[T any](items []T, name func(T) string) {
	if len(items) < 2 {
		return // the common case pays nothing for the tables
	}
	type keyed struct {
		item T
		name string
		key  []byte
	}
	c := collate.New(language.English)
	var buf collate.Buffer
	all := make([]keyed, len(items))
	for i, item := range items {
		n := name(item)
		all[i] = keyed{item, n, c.KeyFromString(&buf, n)}
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		if d := slices.Compare(a.key, b.key); d != 0 {
			return d
		}
		if a.name < b.name {
			return -1
		} else if a.name > b.name {
			return 1
		}
		return 0
	})
	for i := range all {
		items[i] = all[i].item
	}
}
