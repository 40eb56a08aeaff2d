// Package printable makes text from files, names and other programs safe to show.
package printable

import (
	"fmt"
	"strings"
)

// Line keeps text on one line and a terminal unharmed: a tab becomes a space, and any other character that would move the cursor,
// change the terminal or turn the reading order around is spelled out.
func Line(text string) string {
	if !strings.ContainsFunc(text, acts) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\t':
			b.WriteByte(' ')
		case r == '\n':
			b.WriteString(`\n`)
		case r < 0x100 && acts(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case acts(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// acts says whether r does something other than being shown.
func acts(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r == 0x2028, r == 0x2029: // line breaks to some terminals
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // of writing direction
		return true
	}
	return false
}
