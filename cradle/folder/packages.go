package folder

import (
	"strings"

	"pi-cradle/internal/jsjson"
)

// Package is one npm package that the folder declares.
type Package struct {
	Name    string // as npm knows it, scope included
	Version string // a version, range or tag; "latest" when none was given
	// Filtered tells an absent list of patterns, which selects everything, from an empty one, which selects nothing.
	Filtered bool
	Patterns []string
	Delta    bool // autoload is false: only what the last matching pattern includes is loaded
}

// Spec is the package as an installer's command line spells it.
func (p Package) Spec() string { return p.Name + "@" + p.Version }

// packages reads the list of packages. Entries that can't be used are named together, by kind.
func (l *loader) packages(path string, v any) []Package {
	list, ok := v.([]any)
	if !ok {
		l.warn("%s: packages must be an array — ignored", path)
		return nil
	}
	var out []Package
	var shapeless, foreign, misnamed []string
	for _, v := range list {
		source, isText := v.(string)
		o, isObject := v.(*jsjson.Object)
		if isObject {
			s, _ := o.Get("source")
			source, isText = s.(string)
		}
		if !isText {
			shapeless = append(shapeless, jsjson.Compact(v))
			continue
		}
		source = jsjson.Valid(source)
		spec, isNPM := strings.CutPrefix(source, "npm:")
		if !isNPM {
			foreign = append(foreign, source)
			continue
		}
		p, ok := parseSpec(spec)
		if !ok {
			misnamed = append(misnamed, source)
			continue
		}
		if isObject {
			reader{l, path, o}.filter(source, &p)
		}
		out = append(out, p)
	}
	if len(shapeless) > 0 {
		l.warn(`%s: packages entries must be a source string or a { "source": … } object — ignored: %s`, path, strings.Join(shapeless, ", "))
	}
	if len(foreign) > 0 {
		l.warn("%s: only npm: package sources are supported — ignored: %s", path, strings.Join(foreign, ", "))
	}
	if len(misnamed) > 0 {
		l.warn("%s: packages entries must be npm:<name>[@<version>] — ignored: %s", path, strings.Join(misnamed, ", "))
	}
	return out
}

func (r reader) filter(source string, p *Package) {
	var undelivered, unknown []string
	for _, key := range r.o.Keys() {
		switch key {
		case "source", "autoload", "extensions":
		case "skills", "prompts", "themes":
			undelivered = append(undelivered, key)
		default:
			unknown = append(unknown, jsjson.Valid(key))
		}
	}
	if len(undelivered) > 0 {
		r.warn("%s: packages entry %s: cradle loads a package's extensions and nothing else — ignored: %s", r.path, source, strings.Join(undelivered, ", "))
	}
	if len(unknown) > 0 {
		r.warn("%s: packages entry %s: unknown filter keys — ignored: %s", r.path, source, strings.Join(unknown, ", "))
	}
	if v, ok := r.o.Get("autoload"); ok {
		autoload, isBool := v.(bool)
		if !isBool {
			r.warn("%s: packages entry %s: autoload must be a boolean — ignored", r.path, source)
		}
		p.Delta = isBool && !autoload
	}
	if v, ok := r.o.Get("extensions"); ok {
		if p.Patterns, p.Filtered = texts(v); !p.Filtered {
			r.warn("%s: packages entry %s: extensions must be an array of strings — ignored", r.path, source)
		}
	}
}

// parseSpec reads NAME[@VERSION], [@SCOPE/]PART being a name. The version may be a range or tag, never another kind of source.
func parseSpec(spec string) (Package, bool) {
	name, version := spec, "latest"
	if at := strings.LastIndexByte(spec, '@'); at > 0 {
		name, version = spec[:at], spec[at+1:]
	}
	parts := []string{name}
	if scoped, ok := strings.CutPrefix(name, "@"); ok {
		parts = strings.Split(scoped, "/")
		if len(parts) != 2 {
			return Package{}, false
		}
	}
	for _, part := range parts {
		if part == "" || !only(part, "-._~", false) || part[0] == '.' || part[0] == '_' {
			return Package{}, false
		}
	}
	return Package{Name: name, Version: version}, version != "" && only(version, ".^~><=* +-", true)
}

// only says whether s consists of lower-case letters, digits, the given others and, if asked for, upper-case letters.
func only(s, others string, upper bool) bool {
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || upper && c >= 'A' && c <= 'Z' || strings.IndexByte(others, c) >= 0 {
			continue
		}
		return false
	}
	return true
}
