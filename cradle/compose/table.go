package compose

import (
	"fmt"
	"strings"

	"pi-cradle/internal/printable"
)

const (
	tableWidth  = 80
	reasonStart = 40 // column of the reasons
	headStart   = 9
	indent      = 2
	maxLines    = 6 // of one cell; a prompt can be pages long
)

// table lays out two columns of text that may be of any length and content.
type table struct {
	strings.Builder
	short []replacement
	title string // of a section that has no row yet
}

// replacement is a long path and the word that stands for it.
type replacement struct{ path, word string }

func (t *table) abbreviate(text string) string {
	for _, r := range t.short {
		if rest, ok := strings.CutPrefix(text, r.path); ok && (rest == "" || rest[0] == '/' || rest[0] == ':') {
			return r.word + rest
		}
	}
	return text
}

// words is a quoted command line, abbreviated.
func (t *table) words(argv []string) string {
	short := make([]string, len(argv))
	for i, a := range argv {
		short[i] = t.abbreviate(a)
	}
	return Quote(short)
}

func (t *table) head(key, value, reason string) {
	lines := wrap(value+" ("+reason+")", tableWidth-headStart)
	for i, line := range lines {
		if i > 0 {
			key = ""
		}
		fmt.Fprintf(t, "%-*s%s\n", headStart, key, line)
	}
}

// section names the rows that follow. Without any it is not written.
func (t *table) section(title string) { t.title = title }

// row writes a cell and its reason side by side, or the reason below when the cell needs the room.
func (t *table) row(cell, reason string) {
	if t.title != "" {
		t.WriteString("\n" + t.title + "\n")
		t.title = ""
	}
	left := wrap(cell, tableWidth-indent)
	right := wrap(reason, tableWidth-reasonStart)
	last := len(left) - 1
	pad := strings.Repeat(" ", indent)
	for _, line := range left[:last] {
		t.WriteString(pad + line + "\n")
	}
	t.WriteString(pad + left[last])
	used := indent + printable.Columns(left[last])
	if used > reasonStart-1 {
		t.WriteByte('\n')
		used = 0
	}
	for _, line := range right {
		t.WriteString(strings.Repeat(" ", reasonStart-used) + line + "\n")
		used = 0
	}
}

// wrap breaks text into lines of at most limit columns, between words where it can. Control characters are made visible, so
// that nothing in a file name or prompt can act on the terminal.
func wrap(text string, limit int) []string {
	var lines []string
	for _, line := range printable.Wrap(printable.Line(strings.ReplaceAll(text, "\n", "↵")), limit) {
		from, used := 0, 0
		for i, r := range line {
			n := printable.RuneColumns(r)
			if used+n > limit {
				lines = append(lines, line[from:i])
				from, used = i, 0
			}
			used += n
		}
		lines = append(lines, line[from:])
	}
	if len(lines) > maxLines {
		lines = append(lines[:maxLines-1], "…")
	}
	return lines
}
