package printable

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Wrap breaks text at spaces into lines of at most limit columns. A longer word stays whole, so that it can be copied from the
// terminal. A limit below 1 is none.
func Wrap(text string, limit int) []string {
	if limit < 1 || Columns(text) <= limit {
		return []string{text}
	}
	var lines []string
	line, used := "", 0
	for word := range strings.SplitAfterSeq(text, " ") {
		if n := Columns(strings.TrimRight(word, " ")); used > 0 && used+n > limit {
			lines = append(lines, strings.TrimRight(line, " "))
			line, used = "", 0
		}
		line, used = line+word, used+Columns(word)
	}
	return append(lines, strings.TrimRight(line, " "))
}

// Columns is the width of text in a terminal, if nothing in it acts on the cursor.
func Columns(text string) int {
	n := 0
	for _, r := range text {
		n += RuneColumns(r)
	}
	return n
}

// RuneColumns is Columns of one character.
func RuneColumns(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
