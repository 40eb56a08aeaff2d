package compose

import (
	"fmt"
	"strings"
)

// Explain is the plan as a table for a person, no line wider than 80 columns: what happens on the left, why on the right.
func (p *Plan) Explain() string {
	t := &table{short: []replacement{{p.State.Path(), "STATE"}, {p.Agent, "AGENT"}}}
	t.head("agent", p.Agent, "AGENT below")
	t.head("state", p.State.Path(), "STATE below")
	t.head("runs in", p.CWD, p.CWDReason)
	backend := string(p.Backend)
	if p.Backend == None {
		backend = "none"
	}
	if p.Name != "" {
		backend += " " + p.Name
	}
	t.head("sandbox", backend, p.Why)
	t.head("network", p.networkText(), p.NetworkWhy)

	t.section("files written")
	for _, w := range p.writes() {
		t.row(t.abbreviate(w.Path), w.Reason)
	}
	if p.Packages != nil {
		t.row(t.abbreviate(p.Packages.manifest()), "the packages of settings.json")
	}
	t.section("sandbox set-up")
	steps, _ := p.Steps("")
	for _, s := range steps {
		t.row(t.words(s.Argv), s.Reason)
	}
	if p.Packages != nil {
		t.section("packages")
		t.row(strings.Join(p.Packages.Command(), " "), "in "+t.abbreviate(p.Packages.Dir)+", before pi starts")
		for _, s := range p.Packages.Specs {
			t.row(s.Spec(), packageWhy(s.Filtered, s.Delta, s.Patterns))
		}
	}
	p.explainReach(t)
	t.section("environment")
	for _, e := range p.Env {
		t.row(e.Name+"="+t.abbreviate(e.Value), e.Reason)
	}
	t.section("command")
	for i, part := range p.Command(nil) {
		if p.Packages != nil && i == len(p.wrapper)+len(p.before) {
			t.row("-e …", "each extension of the packages, once installed")
		}
		t.row(t.words(part.Words), part.Reason)
	}
	if p.Stdin != nil && *p.Stdin != "" {
		t.section("standard input")
		t.row(*p.Stdin, "the task's prompt, which can't be an argument")
	}
	t.section("pi also reads")
	for _, s := range p.AlsoRead {
		t.row(s.Path, s.Reason)
	}
	return t.String()
}

func (p *Plan) explainReach(t *table) {
	t.section("granted by the profile")
	for _, g := range p.Grants {
		t.row(fmt.Sprintf("%-5s %s", g.Access, t.abbreviate(g.Path)), g.Reason)
	}
	for _, rule := range p.Rules {
		t.row(rule, "Seatbelt rule of sandbox/nono.json (macOS)")
	}
	t.section("mounted in the sandbox")
	for _, m := range p.Mounts {
		t.row(m.Access()+" "+t.abbreviate(m.Path), m.Reason)
	}
}

func packageWhy(filtered, delta bool, patterns []string) string {
	switch {
	case delta && len(patterns) == 0:
		return "loads nothing: autoload is off and no pattern names a file"
	case delta:
		return "loads only what these name: " + strings.Join(patterns, ", ")
	case !filtered:
		return "loads all its extensions"
	case len(patterns) == 0:
		return "loads nothing: the list of extensions is empty"
	}
	return "loads its extensions, filtered by: " + strings.Join(patterns, ", ")
}

// networkText says in a few words what the policy allows.
func (p *Plan) networkText() string {
	n := p.Network
	if n == nil {
		return "open"
	}
	var parts []string
	if n.Profile == nil && !n.Restricts() {
		parts = append(parts, "open")
	}
	if n.Block != nil && *n.Block {
		parts = append(parts, "blocked")
	}
	if n.Profile != nil {
		parts = append(parts, "profile "+*n.Profile)
	}
	if len(n.AllowDomain) > 0 {
		parts = append(parts, "only "+strings.Join(n.AllowDomain, ", "))
	}
	if len(n.OpenPort) > 0 {
		parts = append(parts, "local ports "+ports(n.OpenPort))
	}
	if len(n.ListenPort) > 0 {
		parts = append(parts, "listening on "+ports(n.ListenPort))
	}
	text := strings.Join(parts, ", ")
	if p.Backend == None {
		text += " (not enforced)"
	}
	return text
}

func ports(list []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ", "), "[]")
}
