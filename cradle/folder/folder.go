// Package folder reads an agent folder into data. It executes nothing, changes nothing, and says what it could not use.
package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pi-cradle/internal/jsjson"
	"pi-cradle/internal/localesort"
	"pi-cradle/internal/usererr"
)

// Folder is a loaded agent folder. All paths are absolute and spelled below Dir; links are not resolved.
type Folder struct {
	Dir                   string
	HasSystem, HasAppend  bool // SYSTEM.md, APPEND_SYSTEM.md; at least one
	Settings              Settings
	Models                *jsjson.Object // normalised: provider name to its configuration; nil without models.json
	HasSkills, HasSandbox bool           // the directories are there
	HasSchedule           bool
	Extensions            []string // files, in load order
	Nono, Sbx             Posture  // sandbox/nono.json, sandbox/sbx.json
	Warnings              []string
}

// SystemPath and the following are the files and directories that pi is pointed at.
func (f *Folder) SystemPath() string { return filepath.Join(f.Dir, systemFile) }
func (f *Folder) AppendPath() string { return filepath.Join(f.Dir, appendFile) }
func (f *Folder) SkillsDir() string  { return filepath.Join(f.Dir, skillsDir) }

const (
	systemFile    = "SYSTEM.md"
	appendFile    = "APPEND_SYSTEM.md"
	settingsFile  = "settings.json"
	modelsFile    = "models.json"
	skillsDir     = "skills"
	scheduleDir   = "schedule"
	extensionsDir = "extensions"
	sandboxDir    = "sandbox"
	legacyFile    = "AGENTS.md"
)

var (
	reserved = []string{"subagents", "channels", "connections"}
	known    = []string{
		systemFile, appendFile, settingsFile, modelsFile, skillsDir, scheduleDir, extensionsDir, sandboxDir,
		".git", ".gitignore", ".DS_Store", "README.md", "LICENSE",
	}
)

// Load reads the folder at dir, an absolute path. With an error the Folder holds what could be read and all warnings; several
// unusable files give one error each, joined.
func Load(dir string) (*Folder, error) {
	l := &loader{Folder: &Folder{Dir: filepath.Clean(dir)}}
	if err := l.list(); err != nil {
		return l.Folder, err
	}
	l.unknown()
	l.sandbox()
	l.settings()
	l.models()
	l.HasSkills = l.directory(skillsDir)
	l.HasSchedule = l.directory(scheduleDir)
	if l.directory(extensionsDir) {
		l.extensions()
	}
	return l.Folder, errors.Join(l.errs...)
}

type loader struct {
	*Folder
	names []string // of the folder's entries, sorted
	errs  []error
}

func (l *loader) warn(format string, args ...any) {
	l.Warnings = append(l.Warnings, fmt.Sprintf(format, args...))
}

func (l *loader) fail(err error) { l.errs = append(l.errs, err) }

func (l *loader) has(name string) bool {
	_, ok := slices.BinarySearch(l.names, name)
	return ok
}

// list reads the entries and refuses what is no agent folder. A prompt file counts by its name alone.
func (l *loader) list() error {
	info, err := os.Stat(l.Dir)
	if err != nil || !info.IsDir() {
		return usererr.New("Agent folder not found: %s", l.Dir)
	}
	entries, err := os.ReadDir(l.Dir) // sorted by name
	if err != nil {
		return usererr.New("%s could not be read: %w", l.Dir, reason(err))
	}
	for _, e := range entries {
		l.names = append(l.names, e.Name())
	}
	l.HasSystem, l.HasAppend = l.has(systemFile), l.has(appendFile)
	if l.HasSystem || l.HasAppend {
		return nil
	}
	legacy := ""
	if l.has(legacyFile) {
		legacy = " — found AGENTS.md, rename it to APPEND_SYSTEM.md"
	}
	return usererr.New("Not an agent folder: %s (needs SYSTEM.md or APPEND_SYSTEM.md%s — see ARCHITECTURE.md)", l.Dir, legacy).
		Hint("write the agent's role and instructions to %s", l.AppendPath())
}

// reason is the system's own words, without the path that our texts name themselves.
func reason(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

func (l *loader) unknown() {
	var later, foreign []string
	for _, name := range l.names {
		switch {
		case slices.Contains(reserved, name):
			later = append(later, name)
		case !slices.Contains(known, name):
			foreign = append(foreign, name)
		}
	}
	if len(later) > 0 {
		l.warn("reserved for a future cradle release, ignored: %s", strings.Join(later, ", "))
	}
	if len(foreign) > 0 {
		hint := ""
		if slices.Contains(foreign, "schedules") {
			hint = " — did you mean schedule/ (singular)?"
		}
		l.warn("not part of the agent folder format, ignored: %s%s", strings.Join(foreign, ", "), hint)
	}
}

// directory says whether the entry is a directory or leads to one, and warns when it is something else.
func (l *loader) directory(name string) bool {
	if !l.has(name) {
		return false
	}
	if info, err := os.Stat(filepath.Join(l.Dir, name)); err == nil && info.IsDir() {
		return true
	}
	l.warn("%s must be a directory — ignored", name)
	return false
}

// object reads a JSON object. It returns nil when the file is absent or unusable; the latter is an error of the whole load.
func (l *loader) object(path string) *jsjson.Object {
	v, err := jsjson.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		l.fail(err)
		return nil
	}
	o, ok := v.(*jsjson.Object)
	if !ok {
		l.fail(usererr.New("%s must be a JSON object", path))
		return nil
	}
	return o
}

// extensions lists what pi would find by itself in an extensions directory: *.ts files and <dir>/index.ts, nothing deeper and
// nothing behind a link.
func (l *loader) extensions() {
	dir := filepath.Join(l.Dir, extensionsDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		l.fail(usererr.New("%s could not be read: %w", dir, reason(err)))
		return
	}
	type found struct{ name, path string }
	var all []found
	for _, e := range entries {
		name := e.Name()
		switch {
		case e.Type().IsRegular() && strings.HasSuffix(name, ".ts") && name[0] != '.':
			all = append(all, found{name, filepath.Join(dir, name)})
		case e.IsDir():
			index := filepath.Join(dir, name, "index.ts")
			if info, err := os.Lstat(index); err == nil && info.Mode().IsRegular() {
				all = append(all, found{name, index})
			}
		}
	}
	localesort.Func(all, func(f found) string { return f.name })
	for _, f := range all {
		l.Extensions = append(l.Extensions, f.path)
	}
}
