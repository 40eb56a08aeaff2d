package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"pi-cradle/internal/printable"
)

const helpWidth = 80

func commandNames() []string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
}

func topHelp(fs *pflag.FlagSet) string {
	addCommonFlags(fs)
	var b strings.Builder
	b.WriteString("cradle <cmd> [args]\n\nTurn a folder into a pi agent and run it.\n\nCommands:\n")
	var rows [][2]string
	for _, c := range commands() {
		rows = append(rows, [2]string{"cradle " + c.synopsis(), c.summary})
	}
	writeRows(&b, rows)
	b.WriteString("\nOptions:\n" + flagRows(fs))
	b.WriteString("\n`cradle <cmd> --help` tells more about one of them.\n")
	return b.String()
}

func (c *command) synopsis() string {
	words := []string{c.name}
	for _, p := range c.positionals {
		if p.required {
			words = append(words, "<"+p.name+">")
		} else {
			words = append(words, "["+p.name+"]")
		}
	}
	return strings.Join(words, " ")
}

func (c *command) help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cradle %s\n\n%s\n", c.synopsis(), c.about)
	if len(c.positionals) > 0 {
		b.WriteString("\nPositionals:\n")
		var rows [][2]string
		for _, p := range c.positionals {
			rows = append(rows, [2]string{p.name, p.about})
		}
		writeRows(&b, rows)
	}
	b.WriteString("\nOptions:\n" + flagRows(c.flags))
	if c.note != "" {
		b.WriteString("\n" + c.note + "\n")
	}
	return b.String()
}

// flagRows lists a flag set as pflag would, without its notes on what a boolean may be set to.
func flagRows(fs *pflag.FlagSet) string {
	var rows [][2]string
	fs.VisitAll(func(f *pflag.Flag) {
		value, usage := pflag.UnquoteUsage(f)
		name := "    --" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", --" + f.Name
		}
		if f.NoOptDefVal == "" && value != "" {
			name += " <" + value + ">"
		}
		rows = append(rows, [2]string{name, usage})
	})
	var b strings.Builder
	writeRows(&b, rows)
	return b.String()
}

// writeRows writes two columns, the second wrapped so that no line passes helpWidth.
func writeRows(b *strings.Builder, rows [][2]string) {
	width := 0
	for _, r := range rows {
		width = max(width, len(r[0]))
	}
	for _, r := range rows {
		left := r[0]
		for _, line := range printable.Wrap(r[1], helpWidth-width-4) {
			fmt.Fprintf(b, "  %-*s  %s\n", width, left, line)
			left = ""
		}
	}
}
