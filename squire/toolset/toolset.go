// Package toolset works out which tools a delegate gets. The answer is always a plain list for pi's --tools, or --no-tools: pi
// is never asked to add to or take from a selection of its own. It is pure.
package toolset

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"pi-cradle/internal/closest"
)

// Delegation is our own tools. A selection never holds them, whoever lists them; a delegate that may delegate gets them by its
// agent's grant alone.
var Delegation = []string{"delegate", "delegation_status", "delegation_close", "delegation_resume"}

// Kind is what an agent's tools field asks for.
type Kind int

// A field can be absent, name tools, or name tools to leave out.
const (
	Inherit Kind = iota // the parent's tools
	Only                // the named ones, or none at all
	Except              // the parent's without the named ones
)

// Rule is an understood tools field. Names are tool names and patterns in which * stands for any text.
type Rule struct {
	Kind  Kind
	Names []string
}

// Bundles are named lists that tools fields refer to as $name. Err says why none can be used.
type Bundles struct {
	Lists map[string][]string
	Err   error
}

var bundleName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// CheckBundle refuses a bundle that can't be used.
func CheckBundle(name string, entries []string) error {
	if !bundleName.MatchString(name) {
		return fmt.Errorf("bundle name %q may hold letters, digits, _ and - only", name)
	}
	for _, e := range entries {
		if err := CheckName(e); err != nil {
			return fmt.Errorf("bundle %q: %w", name, err)
		}
		if strings.HasPrefix(e, "$") {
			return fmt.Errorf("bundle %q: bundles can't hold bundles, such as %q", name, e)
		}
	}
	return nil
}

// CheckName refuses what can't be one tool's name or pattern.
func CheckName(entry string) error {
	switch {
	case strings.TrimSpace(entry) == "":
		return fmt.Errorf("a tool name is empty")
	case strings.Contains(entry, ","):
		return fmt.Errorf("entry %q holds a comma; each entry names one tool", entry)
	case strings.HasPrefix(entry, "+"), strings.HasPrefix(entry, "-"):
		return fmt.Errorf("entry %q begins with %s; only names and patterns are allowed", entry, entry[:1])
	}
	return nil
}

// Parse understands the entries of a tools field that is there, be it empty.
func Parse(entries []string, bundles Bundles) (Rule, error) {
	rule := Rule{Kind: Only}
	var listed, excluded []string
	for _, e := range entries {
		switch {
		case e == "" || e == "-" || e == "$":
			return rule, fmt.Errorf("tools has an entry %q that names nothing", e)
		case strings.HasPrefix(e, "+"):
			return rule, fmt.Errorf("tools entry %q: +name is not possible; list the tools, or exclude some with -name", e)
		case strings.HasPrefix(e, "-$"):
			return rule, fmt.Errorf("tools entry %q: a bundle can't be excluded; exclude its tools by name", e)
		case strings.HasPrefix(e, "-"):
			excluded = append(excluded, e[1:])
		case strings.HasPrefix(e, "$"):
			names, err := bundles.expand(e[1:])
			if err != nil {
				return rule, err
			}
			listed = append(listed, names...)
		default:
			listed = append(listed, e)
		}
		if len(excluded) > 0 && len(listed) > 0 {
			return rule, fmt.Errorf("tools mixes names and exclusions (-%s); use one or the other", excluded[0])
		}
	}
	rule.Names = unique(listed)
	if len(excluded) > 0 {
		rule = Rule{Kind: Except, Names: unique(excluded)}
	}
	return rule, nil
}

func (b Bundles) expand(name string) ([]string, error) {
	if b.Err != nil {
		return nil, fmt.Errorf("tools uses bundle %q, and no bundle can be used: %w", "$"+name, b.Err)
	}
	if list, ok := b.Lists[name]; ok {
		return list, nil
	}
	var known []string
	for n := range b.Lists {
		known = append(known, n)
	}
	slices.Sort(known)
	if hint := closest.Hint(name, known); hint != "" {
		return nil, fmt.Errorf("tools uses bundle %q, which toolBundles does not have; %s", "$"+name, hint)
	}
	return nil, fmt.Errorf("tools uses bundle %q, which toolBundles does not have", "$"+name)
}

// Listed gives the delegation tools that a rule names, directly or by a pattern. Naming them has no effect.
func (r Rule) Listed() []string {
	if r.Kind != Only {
		return nil
	}
	var found []string
	for _, tool := range Delegation {
		if slices.ContainsFunc(r.Names, func(p string) bool { return Matches(p, tool) }) {
			found = append(found, tool)
		}
	}
	return found
}

// Select gives the tools of a delegate. parent is its parent's, extra is added to every delegate's, and grant are the delegation
// tools of one that may delegate.
func (r Rule) Select(parent, extra, grant []string) []string {
	var names []string
	switch r.Kind {
	case Inherit:
		names = append(names, parent...)
	case Only:
		names = append(names, r.Names...)
	case Except:
		for _, tool := range parent {
			if !slices.ContainsFunc(r.Names, func(p string) bool { return Matches(p, tool) }) {
				names = append(names, tool)
			}
		}
	}
	names = slices.DeleteFunc(append(names, extra...), func(n string) bool { return slices.Contains(Delegation, n) })
	return unique(append(names, grant...))
}

// Args are pi's arguments for a selection. pi keeps every MCP tool unless an entry begins with mcp__, so a selection without one
// gets that prefix alone, which names no tool.
func Args(names []string) []string {
	if len(names) == 0 {
		return []string{"--no-tools"}
	}
	list := strings.Join(names, ",")
	if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "mcp__") }) {
		list += ",mcp__"
	}
	return []string{"--tools", list}
}

// Matches says whether a name or pattern means tool, as pi has it: * stands for any text, the rest for itself.
func Matches(pattern, tool string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == tool
	}
	tool, ok := strings.CutPrefix(tool, first)
	for ok {
		part, more, wild := strings.Cut(rest, "*")
		if !wild {
			return strings.HasSuffix(tool, part)
		}
		// The leftmost place leaves the most for what follows.
		_, tool, ok = strings.Cut(tool, part)
		rest = more
	}
	return false
}

func unique(names []string) []string {
	out := []string{}
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
