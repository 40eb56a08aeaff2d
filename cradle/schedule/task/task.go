// Package task reads the files in an agent folder's schedule/ directory. Each is one task: YAML frontmatter that says when and
// where, and a body that is the prompt. A file that can't be used costs a warning and never the other tasks.
package task

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a time zone must not depend on what the machine has installed

	"gopkg.in/yaml.v3"

	"pi-cradle/cradle/alias"
	"pi-cradle/internal/jsjson"
)

// Task is one usable file.
type Task struct {
	Slug        string // the file's name without .md; the task's identity
	Path        string
	Name        string // label for people; the slug when the file gives none
	Description string
	Cron        string // as written; it may be invalid
	Cwd         string // absolute and clean; not checked to exist
	Prompt      string // never blank
	Timezone    string // an IANA name, "" for the machine's own zone
	OnFailure   []string
}

// Location is the zone in which the task's times are meant.
func (t Task) Location() *time.Location {
	if t.Timezone == "" {
		return time.Local
	}
	loc, err := time.LoadLocation(t.Timezone)
	if err != nil { // parse has loaded it before
		return time.Local
	}
	return loc
}

// ValidSlug says whether a name can be a task's: it becomes part of file, unit and label names.
func ValidSlug(slug string) bool {
	for i := range len(slug) {
		c := slug[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return slug != ""
}

// Parse reads the content of the file at path. It returns all complaints; ok is false when the file is no usable task.
func Parse(path string, content []byte, home string) (t Task, warnings []string, ok bool) {
	p := &parser{path: path, home: home}
	t, ok = p.parse(string(content))
	return t, p.warnings, ok
}

type parser struct {
	path, home string
	warnings   []string
}

// ignore adds a warning about the file; every one of them ends with the same word.
func (p *parser) ignore(format string, args ...any) {
	p.warnings = append(p.warnings, p.path+": "+fmt.Sprintf(format, args...)+" — ignored")
}

func (p *parser) parse(content string) (Task, bool) {
	front, body, ok := split(content)
	if !ok {
		p.ignore(`missing YAML frontmatter block (a file starting with "---" and a closing "---")`)
		return Task{}, false
	}
	keys, err := decode(front)
	if errors.Is(err, errNotMapping) {
		p.ignore("frontmatter must be a YAML mapping")
		return Task{}, false
	}
	if err != nil {
		p.ignore("frontmatter is not valid YAML: %s", strings.TrimPrefix(oneLine(err.Error()), "yaml: "))
		return Task{}, false
	}
	slug := strings.TrimSuffix(filepath.Base(p.path), ".md")
	t := Task{Slug: slug, Path: p.path, Name: slug, Prompt: jsjson.Trim(body)}
	if extra := keys.others("name", "description", "cron", "cwd", "timezone", "onFailure"); len(extra) > 0 {
		p.warnings = append(p.warnings, fmt.Sprintf("%s: unsupported keys ignored: %s", p.path, strings.Join(extra, ", ")))
	}
	cronOK := p.cron(keys, &t)
	cwdOK := p.cwd(keys, &t)
	p.text(keys, "name", &t.Name)
	p.text(keys, "description", &t.Description)
	zoneOK := p.timezone(keys, &t)
	p.onFailure(keys, &t)
	if !cronOK || !cwdOK {
		return Task{}, false
	}
	if t.Prompt == "" {
		p.ignore("body is empty — a schedule with no prompt does nothing")
		return Task{}, false
	}
	if strings.Contains(t.Name+t.Cwd+t.Prompt+strings.Join(t.OnFailure, ""), "\x00") {
		p.ignore("a NUL character can't be passed to a program")
		return Task{}, false
	}
	return t, zoneOK
}

func (p *parser) cron(keys mapping, t *Task) bool {
	value, ok := text(keys.get("cron"))
	if !ok || jsjson.Trim(value) == "" {
		p.ignore("cron must be a non-empty string")
		return false
	}
	t.Cron = value
	return true
}

func (p *parser) cwd(keys mapping, t *Task) bool {
	node := keys.get("cwd")
	value, ok := text(node)
	if !ok || !alias.PathShaped(value) {
		hint := ""
		if node != nil && node.ShortTag() == "!!null" {
			hint = ` (a bare "~" is YAML null — quote it as "~" or write ~/some/dir)`
		}
		p.ignore("cwd must be an absolute, ~/, or $HOME/ path%s", hint)
		return false
	}
	t.Cwd = filepath.Clean(alias.ExpandHome(value, p.home))
	return true
}

func (p *parser) text(keys mapping, key string, to *string) {
	node := keys.get(key)
	if node == nil {
		return
	}
	if value, ok := text(node); ok {
		*to = value
	} else {
		p.ignore("%s must be a string", key)
	}
}

// timezone drops the task when the zone is unusable: at the wrong hour is worse than not at all.
func (p *parser) timezone(keys mapping, t *Task) bool {
	node := keys.get("timezone")
	if node == nil {
		return true
	}
	value, ok := text(node)
	if ok && value != "" && value != "Local" {
		if _, err := time.LoadLocation(value); err == nil {
			t.Timezone = value
			return true
		}
	}
	p.ignore("timezone must be the name of a time zone, such as Europe/Berlin or UTC")
	return false
}

func (p *parser) onFailure(keys mapping, t *Task) {
	node := keys.get("onFailure")
	if node == nil {
		return
	}
	var argv []string
	if node.Kind == yaml.SequenceNode {
		for _, item := range node.Content {
			value, ok := text(follow(item))
			if !ok {
				argv = nil
				break
			}
			argv = append(argv, value)
		}
	}
	switch {
	case len(argv) == 0 || argv[0] == "":
		p.ignore(`onFailure must be a list of strings, a program and its arguments, such as ["notify-send", "report failed"]`)
	case strings.Contains(argv[0], "/") && !alias.PathShaped(argv[0]):
		p.ignore("onFailure must start with the name of a program on PATH or with an absolute, ~/, or $HOME/ path")
	default:
		argv[0] = alias.ExpandHome(argv[0], p.home)
		t.OnFailure = argv
	}
}

// split finds the frontmatter and the body. Lines end in LF or CRLF.
func split(content string) (front, body string, ok bool) {
	lines := strings.Split(content, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	if lines[0] != "---" {
		return "", "", false
	}
	end := slices.Index(lines[1:], "---")
	if end < 0 {
		return "", "", false
	}
	return strings.Join(lines[1:1+end], "\n"), strings.Join(lines[2+end:], "\n"), true
}

var errNotMapping = errors.New("not a mapping")

// mapping is a YAML mapping in the order of the file. It is not decoded into a map, because a repeated key is accepted here,
// with the last one winning, and dates have to stay text.
type mapping []*yaml.Node

func decode(front string) (mapping, error) {
	dec := yaml.NewDecoder(bytes.NewBufferString(front))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, errNotMapping
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(&second); err == nil {
		return nil, errNotMapping
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, errNotMapping
	}
	if root := follow(doc.Content[0]); root.Kind == yaml.MappingNode {
		return root.Content, nil
	}
	return nil, errNotMapping
}

// get returns the last value of key, nil when there is none.
func (m mapping) get(key string) *yaml.Node {
	for i := len(m) - 2; i >= 0; i -= 2 {
		if m[i].Kind == yaml.ScalarNode && m[i].Value == key {
			return follow(m[i+1])
		}
	}
	return nil
}

func (m mapping) others(known ...string) []string {
	var extra []string
	for i := 0; i < len(m); i += 2 {
		name := oneLine(m[i].Value)
		if !slices.Contains(known, name) && !slices.Contains(extra, name) {
			extra = append(extra, name)
		}
	}
	return extra
}

// follow resolves an alias; YAML's own rules keep it from leading to another alias.
func follow(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return node.Alias
	}
	return node
}

// text is a scalar's value if it is a string. Dates are: only YAML 1.1 has a type for them.
func text(node *yaml.Node) (string, bool) {
	if node == nil || node.Kind != yaml.ScalarNode {
		return "", false
	}
	tag := node.ShortTag()
	return node.Value, tag == "!!str" || tag == "!!timestamp"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
