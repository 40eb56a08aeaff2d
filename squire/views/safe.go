// Package views lays out what the user sees. It is also the one place where text from outside (a model, a delegate, a file) is
// made safe for a terminal: whatever passes through Line or Text holds no control character and no way to smuggle one in.
package views

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line makes s safe as one line: every line break and tab becomes a space.
func Line(s string) string { return clean(s, " ", " ") }

// Text makes s safe as text of many lines: line breaks stay, a tab becomes four spaces.
func Text(s string) string { return clean(s, "\n", "    ") }

// Plain is Text for a reader that is no terminal, such as a model: tabs stay too.
func Plain(s string) string { return clean(s, "\n", "\t") }

func clean(s, lineBreak, tab string) string {
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == 0x1b || r == 0x9b || r == 0x9d || r == 0x90:
			i += escape(s[i:], r, size)
			continue
		case r == '\r' && i+1 < len(s) && s[i+1] == '\n':
		case r == '\n' || r == '\r' || r == 0x2028 || r == 0x2029 || r == 0x85:
			out.WriteString(lineBreak)
		case r == '\t':
			out.WriteString(tab)
		case r == utf8.RuneError && size == 1:
			out.WriteRune(utf8.RuneError)
		case unicode.IsControl(r) || reorders(r):
		default:
			out.WriteRune(r)
		}
		i += size
	}
	return out.String()
}

// reorders tells the characters that change the direction of what follows them, which can make a line read as another.
func reorders(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x61c
}

// escape gives the length of the control sequence at the start of s, which begins with r of that size: a whole CSI or string
// sequence goes, so that nothing of "\x1b[31m" stays behind as "[31m". An unfinished one goes up to the end of its line.
func escape(s string, r rune, size int) int {
	kind := r
	n := size
	if r == 0x1b {
		if n >= len(s) {
			return n
		}
		switch s[n] {
		case '[':
			kind = 0x9b
		case ']', 'P', 'X', '^', '_':
			kind = 0x9d
		default:
			for n < len(s) && s[n] >= 0x20 && s[n] <= 0x2f {
				n++
			}
			if n < len(s) && s[n] >= 0x30 && s[n] <= 0x7e {
				n++
			}
			return n
		}
		n++
	}
	if kind == 0x9b {
		for n < len(s) && s[n] >= 0x20 && s[n] <= 0x3f {
			n++
		}
		if n < len(s) && s[n] >= 0x40 && s[n] <= 0x7e {
			n++
		}
		return n
	}
	for n < len(s) {
		switch {
		case s[n] == 0x07:
			return n + 1
		case strings.HasPrefix(s[n:], "\x1b\\"):
			return n + 2
		case strings.HasPrefix(s[n:], "\u009c"):
			return n + 2
		case s[n] == '\n' || s[n] == 0x1b:
			return n
		}
		n++
	}
	return n
}

// Clip cuts s to at most limit bytes, keeping its start and its end and never half a character. The second result says
// whether anything is missing; gap stands where it was.
func Clip(s string, limit int, gap string) (string, bool) {
	if len(s) <= limit {
		return s, false
	}
	room := max(limit-len(gap), 0)
	head, tail := room*3/4, room/4
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	from := len(s) - tail
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return s[:head] + gap + s[from:], true
}

// Head cuts s to at most limit bytes at a character's boundary.
func Head(s string, limit int) (string, bool) {
	if len(s) <= limit {
		return s, false
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit], true
}

// Home shows a path with the user's home directory as ~.
func Home(path, home string) string {
	if home == "" || home == "/" {
		return path
	}
	if path == home {
		return "~"
	}
	if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(home, "/")+"/"); ok {
		return "~/" + rest
	}
	return path
}
