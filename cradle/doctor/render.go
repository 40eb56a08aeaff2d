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
	b.WriteString("\nTo delegate work to other sessions:\n")
	writeFindings(&b, r.Squire, minNameWidth)
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
		case f.Status == Outdated:
			fmt.Fprintf(b, "○ %s %s  %s\n", name, f.Version, f.Path)
		case f.Version == "":
			fmt.Fprintf(b, "✓ %s %s\n", name, f.Path)
		default:
			fmt.Fprintf(b, "✓ %s %s  %s\n", name, f.Version, f.Path)
		}
		if f.Hint != "" {
			fmt.Fprintf(b, "  ⚠ %s\n", f.Hint)
		}
	}
}
