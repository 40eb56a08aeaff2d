// Package settings reads <agent dir>/squire/settings.json. It is read at the moment of use, so an edit counts at the next one.
//
// A key that can't be used keeps its default and refuses exactly the operations that depend on it: nobody's launch goes on with
// half of somebody's limits, and nobody's answer is lost because a preference of the widget is misspelled.
package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"pi-cradle/internal/closest"
	"pi-cradle/internal/usererr"
	"pi-cradle/squire/toolset"
)

// Settings are the keys we know, with their defaults filled in.
type Settings struct {
	MaxDepth           int // of delegates below the root
	MaxConcurrent      int // unfinished tasks below one root; 0: no limit
	MaxPerRoot         int // launches below one root; 0: no limit
	WindowPlacement    string
	CompanionSuffix    string
	WorktreeRoot       string            // a template, "" for the default place
	WorktreeRootByRepo map[string]string // main checkout to template
	WorktreeSetup      []string          // program and arguments that make a new worktree ready, nil for none
	DelegateTools      []string
	Bundles            toolset.Bundles
	WidgetBelow        bool
	WidgetMaxEntries   int
	Mail               string   // auto, hooks or embedded
	InheritEnv         []string // names and * patterns of variables that delegates get from their parent

	path     string
	file     error
	problems []problem
	unknown  []string
}

type problem struct {
	use  use
	text string
}

// use is what a bad value of a key stands in the way of.
type use int

const (
	launches use = iota
	worktrees
	bundles // agents that use one; Bundles.Err has the reason
	widget  // nothing: the default counts
)

type key struct {
	use  use
	read func(*Settings, json.RawMessage) error // its error says what the value can be
}

var keys = map[string]key{
	"maxDepth":               {launches, func(s *Settings, raw json.RawMessage) error { return integer(raw, 1, &s.MaxDepth) }},
	"maxConcurrentDelegates": {launches, func(s *Settings, raw json.RawMessage) error { return integer(raw, 0, &s.MaxConcurrent) }},
	"maxDelegatesPerRoot":    {launches, func(s *Settings, raw json.RawMessage) error { return integer(raw, 0, &s.MaxPerRoot) }},
	"windowPlacement": {launches, func(s *Settings, raw json.RawMessage) error {
		return word(raw, &s.WindowPlacement, "companion", "current")
	}},
	"companionSuffix":         {launches, func(s *Settings, raw json.RawMessage) error { return suffix(raw, &s.CompanionSuffix) }},
	"worktreeRoot":            {worktrees, func(s *Settings, raw json.RawMessage) error { return template(raw, &s.WorktreeRoot) }},
	"worktreeRootByRepo":      {worktrees, func(s *Settings, raw json.RawMessage) error { return templates(raw, &s.WorktreeRootByRepo) }},
	"worktreeSetup":           {worktrees, func(s *Settings, raw json.RawMessage) error { return argv(raw, &s.WorktreeSetup) }},
	"delegateTools":           {launches, func(s *Settings, raw json.RawMessage) error { return tools(raw, &s.DelegateTools) }},
	"toolBundles":             {bundles, func(s *Settings, raw json.RawMessage) error { return toolBundles(raw, &s.Bundles) }},
	"delegateWidgetPlacement": {widget, func(s *Settings, raw json.RawMessage) error { return widgetPlacement(raw, &s.WidgetBelow) }},
	"delegateWidgetMaxEntries": {widget, func(s *Settings, raw json.RawMessage) error {
		return integer(raw, 0, &s.WidgetMaxEntries)
	}},
	"mail":       {launches, func(s *Settings, raw json.RawMessage) error { return word(raw, &s.Mail, "auto", "hooks", "embedded") }},
	"inheritEnv": {launches, func(s *Settings, raw json.RawMessage) error { return variables(raw, &s.InheritEnv) }},
}

// Path is the settings file of an agent directory.
func Path(agentDir string) string { return filepath.Join(agentDir, "squire", "settings.json") }

// Load reads the file. A missing file gives the defaults. What else goes wrong is told by Launch, Worktree, Bundles.Err and
// Warnings: the Settings themselves can always be used.
func Load(path string) Settings {
	s := Settings{
		MaxDepth: 1, MaxConcurrent: 8, MaxPerRoot: 64, WindowPlacement: "companion", CompanionSuffix: "delegates", WidgetMaxEntries: 3,
		Mail: "auto", path: path,
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s
	}
	if err != nil {
		s.file = usererr.New("settings file %q can't be read: %w", path, err)
	} else {
		s.parse(data)
	}
	if s.file != nil {
		s.Bundles.Err = s.file
	}
	return s
}

func (s *Settings) parse(data []byte) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &values); err != nil || values == nil {
		s.file = usererr.New("settings file %q does not hold a JSON object", s.path).Hint("mend it, or remove it to use the defaults")
		return
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		k, known := keys[name]
		if !known {
			s.unknown = append(s.unknown, name)
			continue
		}
		if err := k.read(s, values[name]); err != nil {
			text := fmt.Sprintf("%q in settings file %q can't be used: %v", name, s.path, err)
			s.problems = append(s.problems, problem{k.use, text})
			if k.use == bundles {
				s.Bundles = toolset.Bundles{Err: errors.New(text)}
			}
		}
	}
}

// Launch gives the reason why nothing may be launched or resumed, or nil.
func (s Settings) Launch() error { return s.refusal(launches) }

// Worktree gives the reason why no worktree may be made, or nil.
func (s Settings) Worktree() error {
	if err := s.Launch(); err != nil {
		return err
	}
	return s.refusal(worktrees)
}

func (s Settings) refusal(u use) error {
	if s.file != nil {
		return s.file
	}
	for _, p := range s.problems {
		if p.use == u {
			return usererr.New("%s", p.text)
		}
	}
	return nil
}

// Warnings are all problems with the file in words, those that refuse something too, and keys that are nobody's.
func (s Settings) Warnings() []string {
	if s.file != nil {
		return []string{s.file.Error()}
	}
	var all []string
	for _, p := range s.problems {
		all = append(all, p.text)
	}
	known := make([]string, 0, len(keys))
	for name := range keys {
		known = append(known, name)
	}
	slices.Sort(known)
	for _, name := range s.unknown {
		text := fmt.Sprintf("settings file %q has an unknown key %q", s.path, name)
		if hint := closest.Hint(name, known); hint != "" {
			text += "; " + hint
		}
		all = append(all, text)
	}
	return all
}
