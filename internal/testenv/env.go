package testenv

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Options shape an Env. The zero value is the ordinary case.
type Options struct {
	Pi       PiVersion         // zero: the newest
	TmuxConf string            // the text of a tmux.conf; empty: none is read
	Socket   string            // the name of the tmux socket; empty: a plain one
	Settings map[string]any    // merged over pi's settings
	Environ  map[string]string // merged over the environment of all programs; an empty value unsets
	Bare     bool              // without our extension
	// CleanServer starts the tmux server with next to no environment, as a service manager would.
	CleanServer bool
	Width       int // of the terminal; 0: 100
	Height      int // 0: 30
}

// Env is one private world: a home, pi's agent dir, a mail root, a tmux server and a scripted model. It ends with its test,
// and everything that was started in it ends too.
type Env struct {
	T        T
	Model    *Model
	Tmux     *Tmux
	Bin      Binaries
	Pi       PiVersion
	Root     string // holds all of the below
	Home     string
	AgentDir string
	Sessions string // --session-dir of every pi started here
	MailRoot string
	Work     string // an empty working directory
	BinDir   string // first on PATH; see FakeTool

	environ map[string]string
}

// Models that the scripted provider has. A test gives delegates another one than their parent, so that the request log tells
// them apart.
const (
	ParentModel = "fake/parent"
	ChildModel  = "fake/child"
	OtherModel  = "fake/other"
)

// New makes an Env. Its tmux server is up and holds one session, "main", with one window of its own, "user".
func New(t T, o Options) *Env {
	t.Helper()
	root, err := os.MkdirTemp("/tmp", "cradle-") // short: socket paths have a limit of about 100 bytes
	if err != nil {
		t.Fatalf("%v", err)
	}
	root, err = filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if t.Failed() && os.Getenv("CRADLE_TEST_KEEP") != "" {
			t.Logf("kept %s", root)
			return
		}
		if err := os.RemoveAll(root); err != nil {
			t.Logf("clean up: %v", err)
		}
	})
	e := &Env{
		T: t, Root: root, Home: filepath.Join(root, "home"), AgentDir: filepath.Join(root, "agent"),
		Sessions: filepath.Join(root, "sessions"), Work: filepath.Join(root, "work"), BinDir: filepath.Join(root, "bin"),
		MailRoot: filepath.Join(root, "state", "pi-session-mail"), Pi: o.Pi, Model: NewModel(t),
	}
	if !o.Bare {
		e.Bin = Build(t)
	}
	if e.Pi.CLI == "" {
		e.Pi = Newest(t)
	}
	for _, dir := range []string{e.Home, e.AgentDir, e.Sessions, e.Work, e.BinDir, filepath.Join(root, "state"), filepath.Join(root, "tmp")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatalf("%v", err)
		}
	}
	e.environ = e.baseEnviron()
	if o.Bare {
		e.Setenv("CRADLE_HELPER", "")
	}
	for key, value := range o.Environ {
		e.Setenv(key, value)
	}
	e.configurePi(o)
	e.Tmux = startTmux(e, o)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", e.Describe())
		}
	})
	return e
}

// baseEnviron is built from nothing: no TMUX, PI_* or the like of whoever runs the tests.
func (e *Env) baseEnviron() map[string]string {
	env := map[string]string{
		"PATH": strings.Join([]string{e.BinDir, NodeDir(), os.Getenv("PATH")}, string(os.PathListSeparator)),
		"HOME": e.Home, "TMPDIR": filepath.Join(e.Root, "tmp"), "TMUX_TMPDIR": filepath.Join(e.Root, "tmp"), "XDG_STATE_HOME": filepath.Join(e.Root, "state"),
		"SHELL": "/bin/sh", "USER": "tester", "LOGNAME": "tester", "LANG": "C.UTF-8", "TERM": "xterm-256color", "COLORTERM": "truecolor",
		"PI_CODING_AGENT_DIR": e.AgentDir, "PI_OFFLINE": "1", "PI_TELEMETRY": "0", "CRADLE_HELPER": e.Bin.Helper,
		// Caches of compiled code, so that a fresh home does not mean a slow start.
		"NODE_COMPILE_CACHE": cacheDir("node"), "JITI_FS_CACHE": cacheDir("jiti"),
	}
	return env
}

// Setenv sets a variable for the programs that start from now on; an empty value unsets it.
func (e *Env) Setenv(key, value string) {
	if value == "" {
		delete(e.environ, key)
	} else {
		e.environ[key] = value
	}
}

// Environ is the environment of programs in e, in the form of os.Environ, with TMUX and TMUX_PANE pointing at the user's
// window when the server is up.
func (e *Env) Environ() []string {
	env := maps.Clone(e.environ)
	if e.Tmux != nil {
		env["TMUX"], env["TMUX_PANE"] = e.Tmux.ClientEnv(), e.Tmux.UserPane
	}
	return flatten(env)
}

func flatten(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for key, value := range env {
		out = append(out, key+"="+value)
	}
	slices.Sort(out)
	return out
}

func (e *Env) configurePi(o Options) {
	model := func(ref string) map[string]any {
		_, id, _ := strings.Cut(ref, "/")
		return map[string]any{"id": id, "name": id, "reasoning": true, "contextWindow": 1_000_000}
	}
	e.WriteJSON(filepath.Join(e.AgentDir, "models.json"), map[string]any{"providers": map[string]any{"fake": map[string]any{
		"baseUrl": e.Model.URL(), "api": "openai-completions", "apiKey": "none",
		"models": []any{model(ParentModel), model(ChildModel), model(OtherModel)},
	}}})
	settings := map[string]any{
		"defaultProvider": "fake", "defaultModel": "parent", "defaultThinkingLevel": "off", "defaultProjectTrust": "never",
		"quietStartup": true, "theme": "dark", "tuiMode": "regular", "enableInstallTelemetry": false, "enableAnalytics": false,
		"cacheWarming": "off", "collapseChangelog": true, "lastChangelogVersion": e.Pi.Version,
		"compaction": map[string]any{"enabled": false},
		"retry":      map[string]any{"enabled": true, "maxRetries": 2, "baseDelayMs": 50},
	}
	if !o.Bare {
		settings["packages"] = []string{Repo()} // as `pi install <folder>` has it
	}
	maps.Copy(settings, o.Settings)
	e.WriteJSON(filepath.Join(e.AgentDir, "settings.json"), settings)
	// pi looks for these two before it takes keys, and would fetch them.
	for _, tool := range []string{"fd", "rg"} {
		e.Script(filepath.Join(e.AgentDir, "bin", tool), "exit 1")
	}
}

// Agent writes an agent file; text is its frontmatter and body.
func (e *Env) Agent(name, text string) {
	e.T.Helper()
	e.Write(filepath.Join(e.AgentDir, "agents", name+".md"), text)
}

// Scout writes the agent file that most tests use: on ChildModel, everything else by default.
func (e *Env) Scout() {
	e.T.Helper()
	e.Agent("scout", "---\ndescription: Looks things up\nmodel: "+ChildModel+"\n---\n\nAnswer briefly.\n")
}

// FakeTool puts a program in front of the PATH of everything started in e; script is for sh.
func (e *Env) FakeTool(name, script string) {
	e.T.Helper()
	e.Script(filepath.Join(e.BinDir, name), script)
}

// Script writes an executable file for sh.
func (e *Env) Script(path, script string) {
	e.T.Helper()
	e.Write(path, "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(path, 0o755); err != nil {
		e.T.Fatalf("%v", err)
	}
}

// Write writes a file and makes its folder.
func (e *Env) Write(path, text string) {
	e.T.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		e.T.Fatalf("%v", err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		e.T.Fatalf("%v", err)
	}
}

// WriteJSON is Write for a value.
func (e *Env) WriteJSON(path string, v any) {
	e.T.Helper()
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		e.T.Fatalf("%v", err)
	}
	e.Write(path, string(data)+"\n")
}

// Dir makes a directory under Root and returns its path.
func (e *Env) Dir(name string) string {
	e.T.Helper()
	path := filepath.Join(e.Root, name)
	if err := os.MkdirAll(path, 0o700); err != nil {
		e.T.Fatalf("%v", err)
	}
	return path
}

// Describe is what a person wants to see when a test failed: the screens, the model's log, what lies in the state folders.
func (e *Env) Describe() string {
	var b strings.Builder
	b.WriteString("model requests:\n" + e.Model.Summary())
	for _, w := range e.Tmux.Windows() {
		b.WriteString("window " + w.Session + " " + w.ID + " " + w.Name + ":\n" + strings.TrimRight(e.Tmux.Screen(w.Pane), "\n") + "\n")
	}
	squire := filepath.Join(e.AgentDir, "squire")
	_ = filepath.WalkDir(e.Root, func(path string, entry os.DirEntry, err error) error {
		ours := strings.HasPrefix(path, squire) || strings.HasPrefix(path, e.MailRoot)
		if err == nil && entry.Type().IsRegular() && ours {
			data, _ := os.ReadFile(path)
			b.WriteString(path + ": " + Clip(string(data), 600) + "\n")
		}
		return nil
	})
	return b.String()
}
