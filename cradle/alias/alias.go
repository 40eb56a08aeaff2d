// Package alias finds the agent folder that a command line names: a path, or a name from the user's own table in
// ~/.cradle/settings.json.
package alias

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pi-cradle/internal/closest"
	"pi-cradle/internal/jsjson"
	"pi-cradle/internal/usererr"
)

// Resolved is what a reference stands for. Warnings are filled also beside an error.
type Resolved struct {
	Dir      string // absolute and clean, links kept; whether it exists is for the loader to say
	Name     string // the alias used, "" when the reference is a path
	CWD      string // the alias's working directory, absolute and clean, "" for none; not checked to exist
	Warnings []string
}

// IsName says whether ref is a bare name, which the table may know, rather than a path.
func IsName(ref string) bool {
	for i := range len(ref) {
		c := ref[i]
		switch {
		case isLetter(c), c >= '0' && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return ref != ""
}

// SettingsPath is where the table lives. It depends on the home alone.
func SettingsPath(home string) string { return filepath.Join(home, ".cradle", "settings.json") }

// Resolve finds the folder of ref for a command started in cwd, both absolute. The table is read only for names.
func Resolve(ref, cwd, home string) (Resolved, error) {
	dir := resolve(ref, cwd)
	if !IsName(ref) {
		return Resolved{Dir: dir}, nil
	}
	path := SettingsPath(home)
	t, err := read(path, cwd, home)
	if err != nil {
		return Resolved{Warnings: t.warnings}, err
	}
	info, err := os.Stat(dir)
	isDir := err == nil && info.IsDir()
	if i := slices.IndexFunc(t.entries, func(e entry) bool { return e.name == ref }); i >= 0 {
		e := t.entries[i]
		if isDir {
			t.warn(`started alias "%s" (%s) — a directory named %s exists in the current directory; use ./%s to run it instead`, ref, e.dir, ref, ref)
		}
		return Resolved{Dir: e.dir, Name: ref, CWD: e.cwd, Warnings: t.warnings}, nil
	}
	if isDir {
		return Resolved{Dir: dir, Warnings: t.warnings}, nil
	}
	known := ""
	names := make([]string, len(t.entries))
	for i, e := range t.entries {
		names[i] = e.name
	}
	if len(names) > 0 {
		known = " (known agents: " + strings.Join(names, ", ") + ")"
	}
	missing := usererr.New(`Agent folder not found: %s — and no "agents.%s" entry in %s%s`, dir, ref, path, known)
	if near := closest.Hint(ref, names); near != "" {
		missing.Hint("%s", near)
	}
	return Resolved{Warnings: t.warnings}, missing
}

type entry struct{ name, dir, cwd string }

type table struct {
	path     string
	entries  []entry
	warnings []string
}

func (t *table) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// read checks the whole table, so that a broken entry is named whichever alias is asked for.
func read(path, cwd, home string) (*table, error) {
	t := &table{path: path}
	v, err := jsjson.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	top, ok := v.(*jsjson.Object)
	if !ok {
		t.warn("%s: settings must be a JSON object — ignored", path)
		return t, nil
	}
	if extra := top.Others("agents"); extra != nil {
		t.warn("%s: unsupported keys ignored: %s", path, strings.Join(extra, ", "))
	}
	agents, ok := top.Get("agents")
	if !ok {
		return t, nil
	}
	entries, ok := agents.(*jsjson.Object)
	if !ok {
		t.warn("%s: agents must be an object — ignored", path)
		return t, nil
	}
	for _, name := range entries.Keys() {
		v, _ := entries.Get(name)
		t.add(jsjson.Valid(name), v, cwd, home)
	}
	return t, nil
}

func (t *table) add(name string, v any, cwd, home string) {
	o, ok := v.(*jsjson.Object)
	if !ok {
		t.warn(`%s: agents.%s must be an object with a "path" — ignored`, t.path, name)
		return
	}
	if extra := o.Others("path", "cwd"); extra != nil {
		t.warn("%s: agents.%s: unsupported keys ignored: %s", t.path, name, strings.Join(extra, ", "))
	}
	dir := text(o, "path")
	if jsjson.Trim(dir) == "" {
		t.warn("%s: agents.%s.path must be a non-empty string — ignored", t.path, name)
		return
	}
	if !PathShaped(dir) {
		t.warn("%s: agents.%s.path must be an absolute, ~/, or $HOME/ path — ignored: %s", t.path, name, dir)
		return
	}
	e := entry{name: name, dir: Absolute(dir, cwd, home)}
	if o.Has("cwd") {
		if dir := text(o, "cwd"); PathShaped(dir) {
			e.cwd = Absolute(dir, cwd, home)
		} else {
			t.warn("%s: agents.%s.cwd must be an absolute, ~/, or $HOME/ path — ignored", t.path, name)
		}
	}
	t.entries = append(t.entries, e)
}

// text is the string at key, or "" when there is none.
func text(o *jsjson.Object, key string) string {
	v, _ := o.Get(key)
	s, _ := v.(string)
	return jsjson.Valid(s)
}
