// Package pkgs knows an agent's npm packages: the private npm project that installs them, and which extension files of an
// installed package a run loads. It reads files and starts nothing; cradle/pkgs/install does.
package pkgs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"pi-cradle/cradle/folder"
	"pi-cradle/internal/jsjson"
	"pi-cradle/internal/localesort"
)

// Project is an agent's private npm project.
type Project struct {
	Dir      string   // <state>/npm
	Install  []string // the command that installs what the manifest asks for, run in Dir
	Packages []folder.Package
}

// ManifestPath is the project's package.json.
func (p Project) ManifestPath() string { return filepath.Join(p.Dir, "package.json") }

// Manifest is the content of package.json. The last declaration of a name decides its version.
func (p Project) Manifest() []byte {
	versions := map[string]string{}
	var names []string
	for _, s := range p.Packages {
		if _, again := versions[s.Name]; !again {
			names = append(names, s.Name)
		}
		versions[s.Name] = s.Version
	}
	localesort.Strings(names)
	dependencies := jsjson.NewObject()
	for _, name := range names {
		dependencies.Set(name, versions[name])
	}
	manifest := jsjson.NewObject()
	manifest.Set("name", "cradle-agent-packages")
	manifest.Set("private", true)
	manifest.Set("dependencies", dependencies)
	return []byte(jsjson.Indent(manifest) + "\n")
}

// List names the declared packages for people.
func (p Project) List() string {
	names := make([]string, len(p.Packages))
	for i, s := range p.Packages {
		names[i] = s.Spec()
	}
	return strings.Join(names, ", ")
}

// Unfinished marks an installation that began and has not ended: whoever finds it must not trust
// node_modules.
func (p Project) Unfinished() string { return filepath.Join(p.Dir, ".cradle-install-unfinished") }

// UpToDate says whether the packages on disk are those of the manifest, as far as that is known without asking npm.
func (p Project) UpToDate() bool {
	if _, err := os.Lstat(p.Unfinished()); err == nil {
		return false
	}
	installed, err := os.ReadFile(p.ManifestPath())
	if err != nil || !bytes.Equal(installed, p.Manifest()) {
		return false
	}
	_, err = os.Stat(filepath.Join(p.Dir, "node_modules"))
	return err == nil
}
