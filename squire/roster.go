package squire

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"pi-cradle/internal/closest"
	"pi-cradle/internal/usererr"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/agents"
	"pi-cradle/squire/prompt"
	"pi-cradle/squire/settings"
)

// roster reads the agents and the settings as they are now.
func (l *live) roster() (agents.Roster, settings.Settings) {
	set := settings.Load(settings.Path(l.start.AgentDir))
	from := agents.Sources{
		Global: agents.Dir(l.start.AgentDir), Retired: filepath.Join(l.start.AgentDir, "squire", "agents"), Bundles: set.Bundles,
	}
	// A home directory is nobody's project, whatever lies in it.
	if l.start.Trusted && filepath.Clean(l.start.Cwd) != filepath.Clean(l.svc.cfg.Home) {
		from.Project = agents.ProjectDir(l.start.Cwd)
	}
	return agents.Load(from), set
}

// findAgent gives an agent by name, or the reason why there is none.
func (l *live) findAgent(roster agents.Roster, name string) (agents.Agent, error) {
	if agent, ok := roster.Find(name); ok {
		return agent, nil
	}
	if p, ok := roster.Lost(name); ok {
		return agents.Agent{}, usererr.New("agent %q can't be used: %s", name, p.Reason).Hint("mend %s", p.File)
	}
	if len(roster.Agents) == 0 && !roster.Empty() {
		return agents.Agent{}, usererr.New("none of the agents can be used").Hint("mend %s", unusable(roster))
	}
	if roster.Empty() {
		return agents.Agent{}, usererr.New("there are no agents yet").
			Hint("an agent is a Markdown file: write its instructions to %s", filepath.Join(agents.Dir(l.start.AgentDir), "scout.md"))
	}
	refusal := usererr.New("unknown agent %q", name)
	if hint := closest.Hint(name, roster.Names()); hint != "" {
		refusal.Hint("%s", hint)
	}
	return agents.Agent{}, refusal.Hint("the agents are %s", strings.Join(roster.Names(), ", "))
}

// unusable names the files of agents that can't be used.
func unusable(roster agents.Roster) string {
	var files []string
	for _, p := range roster.Problems {
		if p.Agent != "" {
			files = append(files, p.File)
		}
	}
	for _, a := range roster.Disabled {
		files = append(files, a.File)
	}
	return strings.Join(files, ", ")
}

// briefing is what was last told about the agents, so that only news is told again.
type briefing struct {
	mu        sync.Mutex
	described string          // the delegate tool's description
	warned    map[string]bool // the problems that are there and have been told
}

// brief looks at the agents and the settings, warns of problems that are new, and gives the delegate tool's description when it
// has changed. A problem that went away and comes back is told again.
func (l *live) brief() []wire.ToolUpdate {
	roster, set := l.roster()
	b := &l.briefing
	b.mu.Lock()
	defer b.mu.Unlock()
	var news []string
	now := map[string]bool{}
	problem := func(text string) {
		if !b.warned[text] && !now[text] {
			news = append(news, text)
		}
		now[text] = true
	}
	for _, p := range roster.Problems {
		if p.Agent != "" {
			problem(fmt.Sprintf("agent %q can't be used: %s", p.Agent, p))
		} else {
			problem(p.String())
		}
	}
	for _, text := range set.Warnings() {
		problem(text)
	}
	if _, err := l.guidance(); err != nil {
		problem(err.Error())
	}
	b.warned = now
	// A helper that takes over from one that crashed has nothing new to say.
	if len(news) > 0 && (!l.start.Again || b.described != "") {
		l.host.notify("warning", "delegate: "+strings.Join(news, "\n"))
	}
	description := prompt.Describe(delegateTool().Description, roster.Agents)
	if description == b.described {
		return []wire.ToolUpdate{}
	}
	b.described = description
	return []wire.ToolUpdate{{Name: delegateTool().Name, Description: description}}
}

func delegateTool() wire.Tool {
	return wire.Tools[slices.IndexFunc(wire.Tools, func(t wire.Tool) bool { return t.Name == "delegate" })]
}

const maxGuidance = 1 << 20

// guidance is the user's own advice on delegating, which goes into the system prompt as it is written. A missing file is none.
func (l *live) guidance() (string, error) {
	path := filepath.Join(l.start.AgentDir, "squire", "delegation_prompt.md")
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxGuidance) {
		err = fmt.Errorf("not a file of at most %d bytes", maxGuidance)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return "", fmt.Errorf("%s can't be read, so nothing is said about delegating: %w", path, err)
	}
	if strings.TrimSpace(string(data)) == "" {
		return "", nil
	}
	return string(data), nil
}
