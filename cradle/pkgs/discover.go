package pkgs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"

	"pi-cradle/cradle/folder"
	"pi-cradle/internal/jsjson"
	"pi-cradle/internal/localesort"
)

// Extensions lists the extension files to load from the installed packages, as absolute paths in declared order. A package
// that can't contribute gives a warning, never an error: the others still load.
func (p Project) Extensions() (paths, warnings []string) {
	for _, spec := range p.Packages {
		d := discovery{name: spec.Name, root: filepath.Join(p.Dir, "node_modules", filepath.FromSlash(spec.Name))}
		for _, f := range selected(spec, d.files()) {
			paths = append(paths, f.abs)
		}
		warnings = append(warnings, d.warnings...)
	}
	return paths, warnings
}

// discovery looks through one installed package.
type discovery struct {
	name, root string
	warnings   []string
}

func (d *discovery) skip(format string, args ...any) {
	d.warnings = append(d.warnings, "package "+d.name+fmt.Sprintf(format, args...)+" — skipped")
}

// files finds what the package offers: what its manifest declares, else extensions/, else a top-level index.
func (d *discovery) files() []file {
	manifest, ok := d.manifest()
	if !ok {
		return nil
	}
	if declared := declaredExtensions(manifest); len(declared) > 0 {
		return d.declared(declared)
	}
	if found := d.listing("extensions"); len(found) > 0 {
		return found
	}
	for _, name := range []string{"index.ts", "index.js"} {
		if info, err := os.Stat(filepath.Join(d.root, name)); err == nil && info.Mode().IsRegular() {
			return []file{d.at(name)}
		}
	}
	d.skip(" declares no pi extensions")
	return nil
}

func (d *discovery) manifest() (*jsjson.Object, bool) {
	path := filepath.Join(d.root, "package.json")
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		d.skip(": %s is not valid JSON: it is a directory", path)
		return nil, false
	}
	value, err := jsjson.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		d.skip(" is not installed")
		return nil, false
	case err != nil:
		d.skip(": %v", err)
		return nil, false
	}
	object, ok := value.(*jsjson.Object)
	if !ok {
		d.skip(": %s must be a JSON object", path)
	}
	return object, ok
}

// declaredExtensions is the manifest's pi.extensions; nil when it is absent, empty or malformed.
func declaredExtensions(manifest *jsjson.Object) []string {
	value, _ := manifest.Get("pi")
	pi, ok := value.(*jsjson.Object)
	if !ok {
		return nil
	}
	value, _ = pi.Get("extensions")
	list, ok := value.([]any)
	if !ok {
		return nil
	}
	entries := make([]string, len(list))
	for i, item := range list {
		if entries[i], ok = item.(string); !ok {
			return nil
		}
	}
	return entries
}

// declared resolves the manifest's own list: its plain entries find files, its other entries then override.
func (d *discovery) declared(entries []string) []file {
	var overrides []string
	var found []file
	for _, entry := range entries {
		switch {
		case entry != "" && strings.IndexByte("!+-", entry[0]) >= 0:
			overrides = append(overrides, entry)
		case strings.ContainsAny(entry, "*?"):
			found = append(found, d.glob(entry)...)
		default:
			found = append(found, d.entry(entry)...)
		}
	}
	if len(overrides) == 0 {
		return found
	}
	return selected(folder.Package{Patterns: overrides, Filtered: true}, found)
}

// inside gives entry, a path or glob of the manifest, as a clean path from the package's root.
func (d *discovery) inside(entry string) (string, bool) {
	rel := path.Clean(entry)
	if path.IsAbs(rel) {
		var err error
		if rel, err = filepath.Rel(d.root, rel); err != nil {
			rel = ".."
		}
	}
	if rel == ".." || strings.HasPrefix(rel, "../") {
		d.skip(": extension entry %q escapes the package directory", quotable(entry))
		return "", false
	}
	return rel, true
}

// quotable marks a text that is printed between plain double quotes, whatever it holds.
type quotable string

func (q quotable) Format(s fmt.State, _ rune) { fmt.Fprintf(s, `"%s"`, string(q)) }

func (d *discovery) entry(entry string) []file {
	rel, ok := d.inside(entry)
	if !ok {
		return nil
	}
	info, err := os.Stat(filepath.Join(d.root, rel))
	switch {
	case err != nil:
		d.skip(": extension entry %q not found", quotable(entry))
		return nil
	case info.IsDir():
		return d.listing(rel)
	default:
		return []file{d.at(rel)}
	}
}

// glob finds what matches inside the package. A pattern that leads outside is refused without looking there.
func (d *discovery) glob(entry string) []file {
	rel, ok := d.inside(entry)
	if !ok {
		return nil
	}
	matches, err := doublestar.Glob(os.DirFS(d.root), rel, doublestar.WithNoHidden(), doublestar.WithNoFollow())
	if err != nil {
		return nil
	}
	slices.Sort(matches)
	var found []file
	for _, match := range matches {
		found = append(found, d.entry(match)...)
	}
	return found
}

// listing is what a directory of extensions contributes: its scripts, and the index of each of its folders. Links are skipped.
func (d *discovery) listing(dir string) []file {
	entries, err := os.ReadDir(filepath.Join(d.root, dir))
	if err != nil {
		return nil
	}
	kinds := map[string]fs.FileMode{}
	var names []string
	for _, e := range entries {
		if name := e.Name(); !strings.HasPrefix(name, ".") && name != "node_modules" {
			kinds[name] = e.Type()
			names = append(names, name)
		}
	}
	localesort.Strings(names)
	var found []file
	for _, name := range names {
		switch rel := path.Join(dir, name); {
		case kinds[name].IsRegular() && (strings.HasSuffix(name, ".ts") || strings.HasSuffix(name, ".js")):
			found = append(found, d.at(rel))
		case kinds[name].IsDir():
			for _, index := range []string{"index.ts", "index.js"} {
				info, err := os.Lstat(filepath.Join(d.root, rel, index))
				if err == nil && info.Mode().IsRegular() {
					found = append(found, d.at(path.Join(rel, index)))
					break
				}
			}
		}
	}
	return found
}

func (d *discovery) at(rel string) file { return file{abs: filepath.Join(d.root, rel), rel: rel} }
