// Package compose turns an agent folder and a command line into a plan: what a run writes, prepares and starts, with the reason
// for each part. It reads what it has to and changes nothing.
//
// A plan has two phases, because the files of npm packages are known only once they are installed: Run makes everything but
// them, and Plan.Command takes them in.
package compose

import (
	"pi-cradle/cradle/folder"
	"pi-cradle/cradle/nono"
	"pi-cradle/cradle/sbx"
	"pi-cradle/cradle/state"
)

// Backend is what isolates pi; None is no isolation.
type Backend string

const (
	None Backend = ""
	Nono Backend = "nono"
	Sbx  Backend = "sbx"
)

// Flags are the options of cradle run.
type Flags struct {
	Offline   bool
	AllowHost []string // as typed, blanks included
	Sandbox   *bool    // --sandbox, --no-sandbox; nil when neither was given
	Backend   Backend  // --sandbox-backend; None when not given
	Verbose   bool
}

// Scheduled is the task of a run that a timer started.
type Scheduled struct {
	Slug, Name string
	CWD        string // absolute; beats the alias's
	Prompt     string
}

// Input is everything that a plan depends on.
type Input struct {
	Folder   *folder.Folder
	State    state.Dir
	Warnings []string // of resolving the reference and loading the schedule; the plan's begin with them

	Home     string // absolute
	CWD      string // the process's, physical and absolute
	Alias    string // the alias that named the folder, "" for none
	AliasCWD string

	Flags       Flags
	Passthrough []string // what stood after --
	Scheduled   *Scheduled

	StdoutIsTerminal bool
	// Lookup finds an executable or says what is missing. It is called for what the run needs, in order. nil stands for a
	// preview: every program goes by its bare name.
	Lookup func(name string) (string, error)
}

// Part is one piece of a command line: a flag with its value, or one argument.
type Part struct {
	Words  []string
	Reason string
}

// Argv joins the words of parts.
func Argv(parts []Part) []string {
	var argv []string
	for _, p := range parts {
		argv = append(argv, p.Words...)
	}
	return argv
}

// Env is a variable that the child gets in addition to, or instead of, the inherited one.
type Env struct{ Name, Value, Reason string }

// Write is one file of the state directory that the run makes.
type Write struct {
	Path    string
	Content string
	Reason  string
}

// Source is a file that pi finds by itself.
type Source struct{ Path, Reason string }

// Packages says what to install before pi can start.
type Packages struct {
	Dir       string // of the private npm project
	Installer string // npm, pnpm, yarn or bun
	Specs     []folder.Package
}

// Plan is a whole run, as data.
type Plan struct {
	Warnings   []string
	Agent      string // the folder
	State      state.Dir
	CWD        string // in which pi runs
	CWDReason  string
	Backend    Backend
	Why        string // why that backend
	Network    *folder.Network
	NetworkWhy string
	Verbose    bool

	Extensions []Write // generated; exactly the content of State.Extensions()
	Profile    *Write  // nono only
	Packages   *Packages
	Env        []Env
	Stdin      *string // what pi reads there; nil for the caller's own

	Grants []nono.Grant // nono only
	Rules  []string     // nono only: the folder's Seatbelt rules
	Mounts []sbx.Mount  // sbx only
	Name   string       // of the sbx sandbox

	AlsoRead []Source // what pi reads though the folder does not say so

	wrapper, before, after []Part // around the package extensions
	sbxBin                 string
}

// Command is the whole command line, packageFiles being the extension files that the installed packages provide, in order.
func (p *Plan) Command(packageFiles []string) []Part {
	parts := make([]Part, 0, len(p.wrapper)+len(p.before)+len(packageFiles)+len(p.after))
	parts = append(parts, p.wrapper...)
	parts = append(parts, p.before...)
	for _, f := range packageFiles {
		parts = append(parts, Part{[]string{"-e", f}, "extension of a package in settings.json"})
	}
	return append(parts, p.after...)
}

// Steps are the commands that prepare the sbx sandbox, none for another backend. hostVersion is the host's pi, "" for unknown;
// one that can't be pinned gives a warning, also "" otherwise.
func (p *Plan) Steps(hostVersion string) (steps []sbx.Step, warning string) {
	if p.Backend != Sbx {
		return nil, ""
	}
	version, warning := sbx.PinnedVersion(hostVersion)
	return sbx.Steps(p.sbxBin, p.Name, p.Mounts, p.Network, version), warning
}

// GeneratedFiles is Extensions as the state package takes them.
func (p *Plan) GeneratedFiles() []state.File {
	files := make([]state.File, len(p.Extensions))
	for i, w := range p.Extensions {
		files[i] = state.File{Name: base(w.Path), Content: w.Content}
	}
	return files
}

// Banner is the line that announces the sandbox, "" for none.
func (p *Plan) Banner() string {
	switch {
	case p.Verbose || p.Backend == None:
		return ""
	case p.Backend == Sbx:
		return "🔒 Sandbox Active (sbx)"
	}
	return "🔒 Sandbox Active"
}
