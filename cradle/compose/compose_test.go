package compose

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pi-cradle/cradle/folder"
	"pi-cradle/cradle/state"
	"pi-cradle/internal/jsjson"
	"pi-cradle/internal/printable"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func ptr[T any](v T) *T { return &v }

// agent is a small folder, not on disk.
func agent() *folder.Folder {
	return &folder.Folder{Dir: "/agents/helper", HasAppend: true, Settings: folder.Settings{Installer: "npm"}}
}

func input(f *folder.Folder) Input {
	return Input{Folder: f, State: state.ForFolder(f.Dir, "/home/u", ""), Home: "/home/u", CWD: "/work/project"}
}

func plan(t *testing.T, in Input) *Plan {
	t.Helper()
	p, err := Run(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func models(t *testing.T) *jsjson.Object {
	t.Helper()
	v, err := jsjson.Decode([]byte(`{"ollama":{"baseUrl":"http://localhost:11434/v1","api":"openai-completions","models":[{"id":"qwen"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	return v.(*jsjson.Object)
}

func fullAgent(t *testing.T) *folder.Folder {
	return &folder.Folder{
		Dir: "/agents/helper", HasSystem: true, HasAppend: true, HasSkills: true, HasSandbox: true, Models: models(t),
		Extensions: []string{"/agents/helper/extensions/alpha/index.ts", "/agents/helper/extensions/zeta.ts"},
		Settings: folder.Settings{Provider: ptr("ollama"), Model: ptr("qwen"), Thinking: ptr("low"), Installer: "pnpm", Packages: []folder.Package{
			{Name: "pi-example-tool", Version: "latest"}, {Name: "@scope/tool", Version: "^1.2.0", Filtered: true, Patterns: []string{"extensions/*.ts", "!extensions/legacy.ts"}},
		}},
		Nono: folder.Posture{
			Stance: folder.Enabled, Network: &folder.Network{AllowDomain: []string{"localhost"}, OpenPort: []int{11434}}, Rules: []string{"(allow mach-register)"},
			Grants: folder.Grants{Read: []string{"~/data"}, UnixSocketDirBind: []string{"~/.agent-browser"}},
		},
		Sbx:      folder.Posture{Stance: folder.Enabled, Network: &folder.Network{AllowDomain: []string{"api.example.com", "localhost"}}, Grants: folder.Grants{Allow: []string{"~/scratch"}}},
		Warnings: []string{"not part of the agent folder format, ignored: notes.txt"},
	}
}

func TestRelativeState(t *testing.T) {
	in := input(fullAgent(t))
	in.State = state.ForFolder(in.Folder.Dir, "/home/u", "./rel/")
	id := in.State.ID
	check := func(want string) {
		t.Helper()
		p := plan(t, in)
		argv := strings.Join(Argv(p.Command(nil)), " ")
		for _, part := range []string{" --profile " + want + "/nono-profile.json ", " -e " + want + "/extensions/providers.ts ", " --session-dir " + want + "/sessions"} {
			if !strings.Contains(argv, part) {
				t.Errorf("no %q in %s", part, argv)
			}
		}
		if p.State.Path() != want || p.Packages.Dir != want+"/npm" || p.Profile.Path != want+"/nono-profile.json" {
			t.Errorf("state %s, packages in %s, profile %s", p.State.Path(), p.Packages.Dir, p.Profile.Path)
		}
	}
	check("rel/agents/" + id)
	in.Alias, in.AliasCWD = "helper", t.TempDir()
	check("/work/project/rel/agents/" + id)
	in.Scheduled = &Scheduled{CWD: "/work/project"}
	check("rel/agents/" + id)
}

func TestNetworkInWords(t *testing.T) {
	for want, n := range map[string]*folder.Network{
		"open":                      nil,
		"open, local ports 80, 81":  {OpenPort: []int{80, 81}},
		"blocked":                   {Block: ptr(true), ListenPort: nil},
		"only a, b, listening on 1": {AllowDomain: []string{"a", "b"}, ListenPort: []int{1}},
		"profile strict":            {Profile: ptr("strict")},
	} {
		if got := (&Plan{Network: n, Backend: Nono}).networkText(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := (&Plan{Network: &folder.Network{Block: ptr(true)}}).networkText(); got != "blocked (not enforced)" {
		t.Errorf("got %q", got)
	}
}

// scenarios are the plans that the golden files show.
func scenarios(t *testing.T) map[string]Input {
	bare, nono, sbx, task, odd := input(agent()), input(fullAgent(t)), input(fullAgent(t)), input(fullAgent(t)), input(agent())
	nono.Passthrough = []string{"--temperature", "1.10", "it's"}
	sbx.Flags.Backend = Sbx
	sbx.StdoutIsTerminal = true
	task.Flags.Sandbox = ptr(false)
	task.Scheduled = &Scheduled{Slug: "nightly", Name: "Nightly report", CWD: "/nowhere/project", Prompt: strings.Repeat("Summarize yesterday's commits. 日本語 \x1b[31m\n", 40)}
	odd.Folder.Dir = "/agents/" + strings.Repeat("very-long-name ", 12) + "é"
	odd.State = state.ForFolder(odd.Folder.Dir, "/home/u", "")
	odd.Flags.Offline = true
	odd.Passthrough = []string{"", "a\nb"}
	return map[string]Input{"bare": bare, "nono": nono, "sbx": sbx, "task": task, "odd": odd}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("../../testdata/golden/compose", name)
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s: %v\n got %s\nwant %s", name, err, got, want)
	}
}

func TestRenderings(t *testing.T) {
	for name, in := range scenarios(t) {
		p := plan(t, in)
		golden(t, name+".dry-run", p.DryRun())
		explained := p.Explain()
		golden(t, name+".explain", explained)
		golden(t, name+".json", p.JSON())
		for line := range strings.Lines(explained) {
			if n := printable.Columns(strings.TrimSuffix(line, "\n")); n > tableWidth {
				t.Errorf("%s: %d columns in %q", name, n, line)
			}
			if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r < ' ' }) {
				t.Errorf("%s: a control character in %q", name, line)
			}
		}
		var doc map[string]any
		if err := json.Unmarshal([]byte(p.JSON()), &doc); err != nil {
			t.Error(err)
		}
	}
}

// TestEveryPartHasItsReason is the promise of the explanation.
func TestEveryPartHasItsReason(t *testing.T) {
	for name, in := range scenarios(t) {
		p := plan(t, in)
		for _, part := range p.Command([]string{"/p/x.ts"}) {
			if part.Reason == "" || len(part.Words) == 0 {
				t.Errorf("%s: %+v", name, part)
			}
		}
		for _, w := range p.writes() {
			if w.Reason == "" {
				t.Errorf("%s: %s", name, w.Path)
			}
		}
		if p.Why == "" || p.NetworkWhy == "" || p.CWDReason == "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestMinimalArgv(t *testing.T) {
	got := Argv(plan(t, input(agent())).Command(nil))
	want := []string{"pi", "--append-system-prompt", "/agents/helper/APPEND_SYSTEM.md", "--no-extensions", "--no-skills", "--no-prompt-templates",
		"--session-dir", "/home/u/.cradle/agents/" + state.ID("/agents/helper") + "/sessions"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func lookup(t *testing.T, missing ...string) (func(string) (string, error), *[]string) {
	asked := &[]string{}
	return func(name string) (string, error) {
		*asked = append(*asked, name)
		if slices.Contains(missing, name) {
			return "", fmt.Errorf("no %s", name)
		}
		return "/shims/" + name, nil
	}, asked
}

func TestFullArgv(t *testing.T) {
	in := input(fullAgent(t))
	in.Passthrough = []string{"--foo"}
	in.Scheduled = &Scheduled{Slug: "nightly-report", Name: "Nightly report", CWD: t.TempDir(), Prompt: "Summarize yesterday."}
	in.Lookup, _ = lookup(t)
	p := plan(t, in)
	s := in.State.Path()
	got := Argv(p.Command([]string{"/npm/one.ts", "/npm/two.js"}))
	want := []string{
		"/shims/nono", "run", "--silent", "--profile", s + "/nono-profile.json", "--",
		"/shims/pi", "--system-prompt", "/agents/helper/SYSTEM.md", "--append-system-prompt", "/agents/helper/APPEND_SYSTEM.md",
		"--no-extensions", "--no-skills", "--no-prompt-templates",
		"-e", s + "/extensions/providers.ts", "-e", s + "/extensions/agent-browser-nono-fallback.ts", "-e", "/npm/one.ts", "-e", "/npm/two.js",
		"-e", "/agents/helper/extensions/alpha/index.ts", "-e", "/agents/helper/extensions/zeta.ts", "--skill", "/agents/helper/skills",
		"--provider", "ollama", "--model", "qwen", "--thinking", "low", "--session-dir", s + "/sessions",
		"--foo", "--print", "--name", "Nightly report", "--no-approve", "--", "Summarize yesterday.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	if want := []Env{{"MISE_CACHE_DIR", s + "/mise-cache", p.Env[0].Reason}}; !slices.Equal(p.Env, want) {
		t.Errorf("%+v", p.Env)
	}
	in.Flags.Verbose = true
	p = plan(t, in)
	if got := Argv(p.Command(nil)); !slices.Equal(got[:5], []string{"/shims/nono", "run", "--profile", s + "/nono-profile.json", "--"}) || p.Banner() != "" {
		t.Errorf("verbose: %q, banner %q", got, p.Banner())
	}
}

func TestPromptThatCanBeNoArgument(t *testing.T) {
	for _, prompt := range []string{"@file is not meant", strings.Repeat("x", 200_000)} {
		in := input(agent())
		in.Scheduled = &Scheduled{Slug: "s", Name: "s", CWD: "/work", Prompt: prompt}
		p := plan(t, in)
		if p.Stdin == nil || *p.Stdin != prompt || slices.Contains(Argv(p.Command(nil)), "--") {
			t.Errorf("%.10q: %.20q", prompt, Argv(p.Command(nil)))
		}
		if !strings.Contains(p.Explain(), "standard input\n  "+prompt[:10]) || !strings.Contains(p.DryRun(), "stdin: ") {
			t.Errorf("%.10q is not shown", prompt)
		}
	}
	if p := plan(t, input(agent())); p.Stdin != nil {
		t.Error("a run by hand has its own standard input")
	}
}

func TestSbxArgv(t *testing.T) {
	in := input(fullAgent(t))
	in.Flags.Backend = Sbx
	in.Lookup, _ = lookup(t)
	for _, terminal := range []bool{false, true} {
		in.StdoutIsTerminal = terminal
		p := plan(t, in)
		got := Argv(p.Command(nil))
		want := []string{"/shims/sbx", "exec", "-i", "-e", "HOME=/home/u", "-w", "/work/project", p.Name, "pi"}
		if terminal {
			want = slices.Insert(want, 3, "-t")
		}
		if !slices.Equal(got[:len(want)], want) {
			t.Errorf("got %q", got)
		}
		if len(p.Env) != 0 || p.Profile != nil || len(p.Extensions) != 1 || p.Banner() != "🔒 Sandbox Active (sbx)" {
			t.Errorf("%+v", p)
		}
		if !strings.Contains(p.Extensions[0].Content, `"http://host.docker.internal:11434/v1"`) {
			t.Error("the local endpoint is not rewritten")
		}
	}
	in.Flags.Backend = Nono
	p := plan(t, in)
	if !strings.Contains(p.Extensions[0].Content, `"http://localhost:11434/v1"`) {
		t.Error("the local endpoint is rewritten under nono")
	}
	if steps, _ := p.Steps("1.0"); steps != nil {
		t.Errorf("nono needs no %q", steps)
	}
}

func TestSbxStepsPinTheHostsVersion(t *testing.T) {
	in := input(fullAgent(t))
	in.Flags.Backend = Sbx
	p := plan(t, in)
	steps, warning := p.Steps("9.9.9")
	if last := steps[len(steps)-1].Argv; warning != "" || !strings.HasSuffix(last[len(last)-1], "@9.9.9") {
		t.Errorf("%q, %q", last, warning)
	}
	if steps, warning = p.Steps(`9"; rm -rf /`); warning == "" || strings.Contains(fmt.Sprint(steps), "rm -rf") {
		t.Errorf("%q, %q", steps, warning)
	}
}

func TestWhatIsLookedUp(t *testing.T) {
	for _, c := range []struct {
		flags Flags
		want  []string
	}{
		{Flags{}, []string{"nono", "pi"}}, {Flags{Backend: Sbx}, []string{"sbx", "pi"}}, {Flags{Sandbox: ptr(false)}, []string{"pi"}},
	} {
		in := input(fullAgent(t))
		in.Flags = c.flags
		var asked *[]string
		in.Lookup, asked = lookup(t)
		plan(t, in)
		if !slices.Equal(*asked, c.want) {
			t.Errorf("%+v: %q", c.flags, *asked)
		}
	}
	in := input(agent())
	in.Lookup, _ = lookup(t, "pi")
	p, err := Run(in)
	if err == nil || err.Error() != "no pi" || len(p.Warnings) != 1 {
		t.Errorf("%v, %q", err, p.Warnings)
	}
	// A missing program goes before a working directory that can't be sandboxed.
	in = input(fullAgent(t))
	in.CWD = in.Home
	in.Lookup, _ = lookup(t, "nono")
	if _, err := Run(in); err == nil || err.Error() != "no nono" {
		t.Error(err)
	}
}
