package prompt

import (
	"strings"
	"testing"

	"pi-cradle/squire/agents"
	"pi-cradle/squire/session"
	"pi-cradle/squire/toolset"
)

func TestLine(t *testing.T) {
	for _, c := range []struct {
		agent agents.Agent
		want  string
	}{
		{
			agents.Agent{
				Name: "scout", Display: "Recon", Description: "Read-only recon", Model: "provider/model-id", Thinking: "low",
				Tools: toolset.Rule{Kind: toolset.Only, Names: []string{"read", "grep"}}, Locked: agents.Locked{Model: true},
			},
			`- scout "Recon" — Read-only recon (default provider/model-id, thinking low, auto-exit off, tools: read/grep, locked: model)`,
		},
		{agents.Agent{Name: "worker", AutoExit: true}, `- worker (default this session's model)`},
		{
			agents.Agent{
				Name: "w", Description: "Two\nlines\tand \x1b[31mcolour", Model: "a/b", Fallback: []string{"c/d", "sonnet"}, AutoExit: true,
				Tools: toolset.Rule{Kind: toolset.Except, Names: []string{"bash", "mcp__*"}}, Locked: agents.Locked{Model: true, Thinking: true},
			},
			`- w — Two lines and colour (default a/b, fallback c/d then sonnet, tools: this session's except bash/mcp__*, locked: model/thinking)`,
		},
		{agents.Agent{Name: "n", AutoExit: true, Tools: toolset.Rule{Kind: toolset.Only}}, `- n (default this session's model, no tools)`},
	} {
		if got := Line(c.agent); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestDescribe(t *testing.T) {
	if got := Describe("Base.", nil); got != "Base.\n\nThere are no agents to start now." {
		t.Errorf("%q", got)
	}
	two := []agents.Agent{{Name: "a", AutoExit: true}, {Name: "b", AutoExit: true}}
	if got := Describe("Base.", two); got != "Base.\n\nThe agents:\n- a (default this session's model)\n- b (default this session's model)" {
		t.Errorf("%q", got)
	}
}

func TestAppended(t *testing.T) {
	a := agents.Agent{Name: "scout", Description: "Looks things\nup", Body: "Be brief."}
	if got := Appended(a); got != "Your role is \"scout\": Looks things up\n\nBe brief." {
		t.Errorf("append: %q", got)
	}
	if got := Appended(a, "A note."); !strings.HasSuffix(got, "\n\nBe brief.\n\nA note.") {
		t.Errorf("with a note: %q", got)
	}
	a.Replace = true
	if got := Appended(a); got != "Be brief." {
		t.Errorf("replace: %q", got)
	}
	if got := Appended(agents.Agent{Name: "x", Description: "y"}); got != "" {
		t.Errorf("no body: %q", got)
	}
}

func TestSection(t *testing.T) {
	id := session.Identity{Parent: "session-7", Agent: "scout"}
	leaf, coordinator := Section(id, false), Section(id, true)
	if !strings.Contains(leaf, "session-7") || !strings.Contains(leaf, `"scout"`) || strings.Contains(leaf, "hand parts") {
		t.Errorf("leaf: %s", leaf)
	}
	if !strings.HasPrefix(coordinator, leaf) || !strings.Contains(coordinator, "hand parts") {
		t.Errorf("coordinator: %s", coordinator)
	}
	for _, name := range append([]string{"mail", "pi-", "tool"}, toolset.Delegation...) {
		if strings.Contains(coordinator, " "+name) && name != "delegate" {
			t.Errorf("the section names %q", name)
		}
	}
}
