package agents

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"pi-cradle/squire/toolset"
)

// File is one agent file as it is written.
type File struct {
	Agent   Agent
	Off     bool     // enabled: false
	Dropped []string // why fields were dropped or have no effect, while the agent can be used
}

// Parse reads one agent file. An error says why the agent can't be used. Keys that are not ours are left to whoever reads them.
func Parse(name string, data []byte, bundles toolset.Bundles) (File, error) {
	front, body := split(data)
	f := File{Agent: Agent{Name: name, AutoExit: true, Body: strings.TrimSpace(string(body))}}
	fields, err := mapping(front)
	if err != nil {
		return f, err
	}
	// In a fixed order, so that the same file always gets the same words.
	for _, read := range []func(map[string]*yaml.Node) error{
		f.readTexts, f.readModels, f.readSwitches,
		func(fields map[string]*yaml.Node) error { return f.readTools(fields, bundles) }, f.readGrant,
	} {
		if err := read(fields); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (f *File) drop(format string, args ...any) {
	f.Dropped = append(f.Dropped, fmt.Sprintf(format, args...))
}

func (f *File) readTexts(fields map[string]*yaml.Node) error {
	text := func(key string) string {
		value, err := scalar(key, fields[key])
		if err != nil {
			f.drop("%v; ignored", err)
		}
		return value
	}
	f.Agent.Description, f.Agent.Display = text("description"), text("display_name")
	switch level := text("thinking"); {
	case level != "" && !slices.Contains(Levels, level):
		f.drop("thinking %q is not one of %s; ignored", level, strings.Join(Levels, ", "))
	default:
		f.Agent.Thinking = level
	}
	switch mode := text("prompt_mode"); {
	case mode == "replace":
		f.Agent.Replace = true
	case mode != "" && mode != "append":
		f.drop("prompt_mode %q is neither append nor replace; ignored", mode)
	}
	return nil
}

func (f *File) readModels(fields map[string]*yaml.Node) (err error) {
	if f.Agent.Model, err = scalar("model", fields["model"]); err != nil {
		return err
	}
	fallback, err := list("fallback", fields["fallback"])
	var comma *commaError
	switch {
	case errors.As(err, &comma):
		return err
	case err != nil:
		f.drop("%v; ignored", err)
	}
	f.Agent.Fallback = slices.DeleteFunc(fallback, func(m string) bool { return m == "" })
	for _, m := range append([]string{f.Agent.Model}, f.Agent.Fallback...) {
		if strings.Contains(m, "*") {
			return fmt.Errorf("model %q: a pattern with * names no single model", m)
		}
	}
	locked, err := list("locked", fields["locked"])
	if err != nil {
		f.drop("%v; ignored", err)
	}
	for _, field := range locked {
		switch field {
		case "model":
			f.Agent.Locked.Model = true
		case "thinking":
			f.Agent.Locked.Thinking = true
		default:
			f.drop("locked has %q, and only model and thinking can be locked; ignored", field)
		}
	}
	return nil
}

func (f *File) readSwitches(fields map[string]*yaml.Node) (err error) {
	if node, ok := fields["enabled"]; ok {
		on, err := boolean("enabled", node)
		if err != nil {
			return err
		}
		f.Off = !on
	}
	if node, ok := fields["auto_exit"]; ok {
		if f.Agent.AutoExit, err = boolean("auto_exit", node); err != nil {
			return err
		}
	}
	permission := fields["permission"]
	f.Agent.Permission = permission != nil && permission.Kind == yaml.MappingNode
	return nil
}

func (f *File) readTools(fields map[string]*yaml.Node, bundles toolset.Bundles) error {
	if _, ok := fields["exclude-tools"]; ok {
		f.drop("exclude-tools is not read any more; write -name entries under tools")
	}
	node, ok := fields["tools"]
	if !ok {
		return nil
	}
	entries, err := list("tools", node)
	if err != nil {
		return err
	}
	if f.Agent.Tools, err = toolset.Parse(entries, bundles); err != nil {
		return err
	}
	if listed := f.Agent.Tools.Listed(); len(listed) > 0 {
		f.drop("tools lists %s, which has no effect; allow_nested_delegation lets an agent delegate", strings.Join(listed, ", "))
	}
	return nil
}

func (f *File) readGrant(fields map[string]*yaml.Node) error {
	const key = "allow_nested_delegation"
	node, ok := fields[key]
	if !ok {
		return nil
	}
	if node.Kind != yaml.SequenceNode {
		all, err := boolean(key, node)
		if err != nil {
			return fmt.Errorf("%s is neither true, false nor a list of agents", key)
		}
		f.Agent.Nested.All = all
		return nil
	}
	names, err := list(key, node)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !nameRule.MatchString(name) {
			return fmt.Errorf("%s has %q, which is no agent's name", key, name)
		}
		if !slices.Contains(f.Agent.Nested.Names, name) {
			f.Agent.Nested.Names = append(f.Agent.Nested.Names, name)
		}
	}
	return nil
}

// split parts the frontmatter from the body. A byte order mark and any mix of line endings are no part of either.
func split(data []byte) (front, body []byte) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	rest, ok := fence(data)
	if !ok {
		return nil, data
	}
	for at := 0; at < len(rest); {
		if body, ok := fence(rest[at:]); ok {
			return rest[:at], body
		}
		end := bytes.IndexByte(rest[at:], '\n')
		if end < 0 {
			break
		}
		at += end + 1
	}
	return nil, data
}

// fence cuts a line of three dashes, blanks after them allowed, from the front of data.
func fence(data []byte) (rest []byte, ok bool) {
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	return rest, string(bytes.TrimRight(line, " \t")) == "---"
}

// mapping reads frontmatter as a set of fields, keeping every scalar as it is written: "off" and "yes" stay text.
func mapping(front []byte) (map[string]*yaml.Node, error) {
	var doc yaml.Node
	// An empty line stands for the fence, so that the parser counts lines as the file does.
	if err := yaml.Unmarshal(append([]byte("\n"), front...), &doc); err != nil {
		return nil, fmt.Errorf("the frontmatter is not readable YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
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
		fields[key] = target(root.Content[i+1])
	}
	return fields, nil
}

func target(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// scalar reads a text. No node and an empty one are "".
func scalar(key string, node *yaml.Node) (string, error) {
	if node == nil || node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		return "", nil
	}
	if node.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("%s is not a text", key)
	}
	return strings.TrimSpace(node.Value), nil
}

// commaError is an entry of a YAML list that was meant as several.
type commaError struct{ key, entry string }

func (e *commaError) Error() string {
	return fmt.Sprintf("%s entry %q holds a comma; each entry names one", e.key, e.entry)
}

// list reads a comma-separated text or a YAML list of texts. No node and an empty one are no entries.
func list(key string, node *yaml.Node) ([]string, error) {
	if node == nil {
		return nil, nil
	}
	entries := []string{}
	switch node.Kind {
	case yaml.ScalarNode:
		if node.Tag == "!!null" || strings.TrimSpace(node.Value) == "" {
			return entries, nil
		}
		if node.Tag != "!!str" {
			return nil, fmt.Errorf("%s is %s, which is not a list", key, node.Value)
		}
		for part := range strings.SplitSeq(node.Value, ",") {
			if part = strings.TrimSpace(part); part != "" {
				entries = append(entries, part)
			}
		}
		return entries, nil
	case yaml.SequenceNode:
		for _, item := range node.Content {
			item = target(item)
			if item.Kind != yaml.ScalarNode || item.Tag != "!!str" {
				return nil, fmt.Errorf("%s has an entry that is not a text", key)
			}
			entry := strings.TrimSpace(item.Value)
			if strings.Contains(entry, ",") {
				return nil, &commaError{key, entry}
			}
			entries = append(entries, entry)
		}
		return entries, nil
	}
	return nil, fmt.Errorf("%s is not a list", key)
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
