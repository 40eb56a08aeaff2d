// Package agents reads the roster: one Markdown file with optional YAML frontmatter per agent, in <agent dir>/agents. It is
// read at call time, so an edit counts at the next use. A file that can't be used is a Problem with its reason and never hides
// the others.
package agents

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Agent is one usable agent file.
type Agent struct {
	Name        string // the file's name without .md
	File        string
	Description string
	Model       string // "" for the session's own
	Thinking    string // "" for the session's own
	AutoExit    bool
	Body        string // the instructions
}

// Problem is a file that is left out, or a field that was dropped from a file that is used.
type Problem struct {
	File   string
	Reason string
}

func (p Problem) String() string { return fmt.Sprintf("agent file %q: %s", p.File, p.Reason) }

// Roster is what one look at the folder found, agents in the order of their names.
type Roster struct {
	Dir      string
	Agents   []Agent
	Problems []Problem
}

// Levels are pi's thinking levels, in pi's order.
var Levels = []string{"off", "minimal", "low", "medium", "high", "xhigh", "max"}

var nameRule = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

const maxFile = 1 << 20

// Dir is the folder of the global agents.
func Dir(agentDir string) string { return filepath.Join(agentDir, "agents") }

// Load reads every agent file of dir. A folder that is not there is an empty roster; one that can't be read is a Problem.
func Load(dir string) Roster {
	r := Roster{Dir: dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.Problems = append(r.Problems, Problem{dir, err.Error()})
		}
		return r
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".md")
		if !ok || strings.HasPrefix(name, ".") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if !nameRule.MatchString(name) {
			r.Problems = append(r.Problems, Problem{path, "an agent's name may hold letters, digits, _ and - only"})
			continue
		}
		data, err := readRegular(path)
		if errors.Is(err, fs.ErrNotExist) && e.Type()&fs.ModeSymlink == 0 {
			continue // it vanished while we read the folder
		}
		if err != nil {
			r.Problems = append(r.Problems, Problem{path, err.Error()})
			continue
		}
		agent, dropped, err := Parse(name, data)
		for _, reason := range dropped {
			r.Problems = append(r.Problems, Problem{path, reason})
		}
		if err != nil {
			r.Problems = append(r.Problems, Problem{path, err.Error()})
			continue
		}
		agent.File = path
		r.Agents = append(r.Agents, agent)
	}
	return r
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

// Find gives the agent of a name.
func (r Roster) Find(name string) (Agent, bool) {
	i := slices.IndexFunc(r.Agents, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return r.Agents[i], true
}

// Names lists the agents' names.
func (r Roster) Names() []string {
	names := make([]string, len(r.Agents))
	for i, a := range r.Agents {
		names[i] = a.Name
	}
	return names
}

// Parse reads one agent file. dropped tells fields that could not be used while the agent can.
func Parse(name string, data []byte) (agent Agent, dropped []string, err error) {
	front, body := split(data)
	agent = Agent{Name: name, AutoExit: true, Body: strings.TrimSpace(string(body))}
	fields, err := mapping(front)
	if err != nil {
		return agent, nil, err
	}
	for key, node := range fields {
		switch key {
		case "description":
			agent.Description, err = scalar(key, node)
		case "model":
			if agent.Model, err = scalar(key, node); strings.Contains(agent.Model, "*") {
				err = fmt.Errorf("model %q: a pattern with * names no single model", agent.Model)
			}
		case "thinking":
			level, bad := scalar(key, node)
			switch {
			case bad != nil:
				dropped = append(dropped, bad.Error()+"; ignored")
			case level != "" && !slices.Contains(Levels, level):
				dropped = append(dropped, fmt.Sprintf("thinking %q is not one of %s; ignored", level, strings.Join(Levels, ", ")))
			default:
				agent.Thinking = level
			}
		case "auto_exit":
			agent.AutoExit, err = boolean(key, node)
		}
		if err != nil {
			return agent, dropped, err
		}
	}
	return agent, dropped, nil
}

// split parts the frontmatter from the body. A byte order mark and any mix of line endings are no part of either.
func split(data []byte) (front, body []byte) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	rest, ok := bytes.CutPrefix(data, []byte("---\n"))
	if !ok {
		return nil, data
	}
	if body, ok := bytes.CutPrefix(rest, []byte("---\n")); ok {
		return nil, body
	}
	if i := bytes.Index(rest, []byte("\n---\n")); i >= 0 {
		return rest[:i+1], rest[i+5:]
	}
	if front, ok := bytes.CutSuffix(rest, []byte("\n---")); ok {
		return front, nil
	}
	return nil, data
}

// mapping reads frontmatter as a set of fields, keeping every scalar as it is written: "off" and "yes" stay text.
func mapping(front []byte) (map[string]*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(front, &doc); err != nil {
		return nil, fmt.Errorf("the frontmatter is not readable YAML: %w", err)
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("the frontmatter is not a set of fields")
	}
	fields := map[string]*yaml.Node{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key := root.Content[i].Value
		if _, twice := fields[key]; twice {
			return nil, fmt.Errorf("the frontmatter has %q twice", key)
		}
		value := root.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		fields[key] = value
	}
	return fields, nil
}

func scalar(key string, node *yaml.Node) (string, error) {
	if node.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("%s is not a text", key)
	}
	if node.Tag == "!!null" {
		return "", nil
	}
	return strings.TrimSpace(node.Value), nil
}

func boolean(key string, node *yaml.Node) (bool, error) {
	if node.Kind == yaml.ScalarNode && node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0 {
		switch node.Value {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	}
	return false, fmt.Errorf("%s is not true or false", key)
}
