package squire

import (
	"path/filepath"
	"strings"

	"pi-cradle/internal/closest"
	"pi-cradle/internal/usererr"
	"pi-cradle/squire/agents"
)

func (l *live) findAgent(name string) (agents.Agent, error) {
	dir := agents.Dir(l.start.AgentDir)
	roster := agents.Load(dir)
	if agent, ok := roster.Find(name); ok {
		return agent, nil
	}
	for _, p := range roster.Problems {
		if p.File == filepath.Join(dir, name+".md") {
			return agents.Agent{}, usererr.New("agent %q can't be used: %s", name, p.Reason).Hint("mend %s", p.File)
		}
	}
	if len(roster.Agents) == 0 {
		return agents.Agent{}, usererr.New("there are no agents yet").
			Hint("an agent is a Markdown file: write its instructions to %s", filepath.Join(dir, "scout.md"))
	}
	refusal := usererr.New("unknown agent %q", name)
	if hint := closest.Hint(name, roster.Names()); hint != "" {
		refusal.Hint("%s", hint)
	}
	return agents.Agent{}, refusal.Hint("the agents are %s", strings.Join(roster.Names(), ", "))
}
