// Package agents reads the roster: one Markdown file with optional YAML frontmatter per agent. Files in <agent dir>/agents count
// everywhere, those in <cwd>/.pi/agents in a trusted project, where they replace global ones of the same name. Everything is read
// at call time, so an edit counts at the next use. A file that can't be used is a Problem with its reason and never hides others.
package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"pi-cradle/squire/toolset"
)

// Agent is one usable agent file.
type Agent struct {
	Name        string // the file's name without .md
	File        string
	Display     string // display_name, "" when there is none
	Description string
	Model       string   // "" for the session's own
	Fallback    []string // tried in this order after Model
	Thinking    string   // "" for the session's own
	Tools       toolset.Rule
	AutoExit    bool
	Replace     bool // prompt_mode: the body goes without a line about the role
	Locked      Locked
	Nested      Grant
	Permission  bool   // the file has a permission map, which others read
	Body        string // the instructions
}

// Locked are the fields that a call can't override.
type Locked struct{ Model, Thinking bool }

// Grant is whom an agent may delegate to: everybody, or the named ones.
type Grant struct {
	All   bool
	Names []string
}

var outsideName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// WindowName is the first part of the name of the agent's windows: its display name, safe for tmux.
func (a Agent) WindowName() string {
	name := outsideName.ReplaceAllString(a.Display, "-")
	if strings.Trim(name, "-") == "" {
		return a.Name
	}
	return name
}

// Problem is a file that is left out, a field that was dropped from a file that is used, or something odd about one.
type Problem struct {
	File   string
	Reason string
	Agent  string // the agent that can't be used because of it, "" when none is lost
}

func (p Problem) String() string { return p.File + ": " + p.Reason }

// Roster is what one look at the folders found, agents in the order of their names.
type Roster struct {
	Agents   []Agent
	Disabled []Agent // usable, and switched off by their file
	Problems []Problem
}

// Sources is where to look.
type Sources struct {
	Global  string // folder of the global agents
	Project string // folder of the project's, "" when it does not count
	Retired string // a folder that older versions read, whose presence is a Problem; "" for none
	Bundles toolset.Bundles
}

// Levels are pi's thinking levels, in pi's order.
var Levels = []string{"off", "minimal", "low", "medium", "high", "xhigh", "max"}

var nameRule = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

const maxFile = 1 << 20

// Dir is the folder of the global agents, ProjectDir that of a project.
func Dir(agentDir string) string { return filepath.Join(agentDir, "agents") }

// ProjectDir is the folder of the agents of the project at cwd.
func ProjectDir(cwd string) string { return filepath.Join(cwd, ".pi", "agents") }

// Load reads every agent file. A folder that is not there is empty; one that can't be read is a Problem.
func Load(s Sources) Roster {
	var r Roster
	seen := map[string]bool{}
	for _, dir := range []string{s.Project, s.Global} {
		if dir != "" {
			r.add(dir, s.Bundles, seen)
		}
	}
	slices.SortFunc(r.Agents, func(a, b Agent) int { return strings.Compare(a.Name, b.Name) })
	r.checkGrants()
	if info, err := os.Stat(s.Retired); s.Retired != "" && err == nil && info.IsDir() {
		r.Problems = append(r.Problems, Problem{File: s.Retired, Reason: "this folder is not read any more; move each <name>/AGENT.md in it to " + filepath.Join(s.Global, "<name>.md")})
	}
	return r
}

// add reads one folder. Names in seen are already decided.
func (r *Roster) add(dir string, bundles toolset.Bundles, seen map[string]bool) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Problems = append(r.Problems, Problem{File: dir, Reason: cause(err)})
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".md")
		if !ok || strings.HasPrefix(name, ".") || seen[name] {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if !nameRule.MatchString(name) {
			r.Problems = append(r.Problems, Problem{path, "an agent's name may hold letters, digits, _ and - only", name})
			continue
		}
		data, err := readRegular(path)
		if errors.Is(err, fs.ErrNotExist) && e.Type()&fs.ModeSymlink == 0 {
			continue // it vanished while we read the folder
		}
		seen[name] = true
		if err != nil {
			r.Problems = append(r.Problems, Problem{path, cause(err), name})
			continue
		}
		f, err := Parse(name, data, bundles)
		for _, reason := range f.Dropped {
			r.Problems = append(r.Problems, Problem{File: path, Reason: reason})
		}
		f.Agent.File = path
		switch {
		case err != nil:
			r.Problems = append(r.Problems, Problem{path, err.Error(), name})
		case f.Off:
			r.Disabled = append(r.Disabled, f.Agent)
		default:
			r.Agents = append(r.Agents, f.Agent)
		}
	}
}

// checkGrants looks at what agents may start.
func (r *Roster) checkGrants() {
	for _, a := range r.Agents {
		warn := func(format string, args ...any) {
			r.Problems = append(r.Problems, Problem{File: a.File, Reason: fmt.Sprintf(format, args...)})
		}
		children := a.Nested.Names
		if a.Nested.All {
			children = r.Names()
		}
		for _, name := range children {
			child, ok := r.Find(name)
			switch {
			case !ok:
				warn("allow_nested_delegation names %q, which can't be used now", name)
			case a.Permission && !child.Permission:
				warn("it has permission rules and may start %q, which has none", name)
			}
		}
	}
}

func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("larger than %d bytes", maxFile)
	}
	return os.ReadFile(path)
}

// cause is a file error without its path, which is named anyway.
func cause(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// Find gives the usable agent of a name.
func (r Roster) Find(name string) (Agent, bool) {
	i := slices.IndexFunc(r.Agents, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return r.Agents[i], true
}

// Lost gives the reason why a name is no usable agent although there is a file for it.
func (r Roster) Lost(name string) (Problem, bool) {
	for _, p := range r.Problems {
		if p.Agent == name && name != "" {
			return p, true
		}
	}
	for _, a := range r.Disabled {
		if a.Name == name {
			return Problem{a.File, "the file says enabled: false", name}, true
		}
	}
	return Problem{}, false
}

// Empty says that there is no agent file at all, usable or not.
func (r Roster) Empty() bool {
	return len(r.Agents) == 0 && len(r.Disabled) == 0 && !slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Agent != "" })
}

// Names lists the usable agents' names.
func (r Roster) Names() []string {
	names := make([]string, len(r.Agents))
	for i, a := range r.Agents {
		names[i] = a.Name
	}
	return names
}
