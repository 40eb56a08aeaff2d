package doctor

import (
	"fmt"
	"strings"
)

// The first block's columns are at least this wide.
const minNameWidth = 8

// Text renders the report for people: one line per program, and below a failing one what to do about it.
func (r Report) Text() string {
	var b strings.Builder
	writeFindings(&b, r.Cradle, minNameWidth)
	b.WriteString("\n")
	writeFindings(&b, r.More, minNameWidth)
	return b.String()
}

func writeFindings(b *strings.Builder, findings []Finding, width int) {
	for _, f := range findings {
		width = max(width, len(f.Name))
	}
	for _, f := range findings {
		name := fmt.Sprintf("%-*s", width, f.Name)
		switch {
		case f.Status == Missing && f.Required:
			fmt.Fprintf(b, "✗ %s MISSING (required)\n", name)
		case f.Status == Missing:
			fmt.Fprintf(b, "○ %s not found (recommended)\n", name)
		default:
			mark, version := "✓", ""
			if f.Status != OK {
				mark = "○"
			}
			if f.Version != "" {
				version = f.Version + "  "
			}
			fmt.Fprintf(b, "%s %s %s%s\n", mark, name, version, f.Path)
		}
		if f.Hint != "" {
			fmt.Fprintf(b, "  ⚠ %s\n", f.Hint)
		}
	}
}
