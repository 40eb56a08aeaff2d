package agents

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pi-cradle/squire/toolset"
)

const plain = "---\ndescription: Looks things up\nmodel: p/m\nthinking: low\nauto_exit: false\n---\n\nFind it.\nSay where.\n"

var bundles = toolset.Bundles{Lists: map[string][]string{"readonly": {"read", "grep"}}}

func TestParseTakesEveryLineEnding(t *testing.T) {
	crlf := strings.ReplaceAll(plain, "\n", "\r\n")
	mixed := strings.Replace(plain, "\n", "\r\n", 2)
	blanks := strings.ReplaceAll(plain, "---\n", "--- \t\n")
	for name, text := range map[string]string{"lf": plain, "crlf": crlf, "mixed": mixed, "bom": "\ufeff" + plain, "bom+crlf": "\ufeff" + crlf, "blanks": blanks} {
		f, err := Parse("scout", []byte(text), bundles)
		if err != nil || len(f.Dropped) > 0 {
			t.Fatalf("%s: %v %v", name, err, f.Dropped)
		}
		want := Agent{Name: "scout", Description: "Looks things up", Model: "p/m", Thinking: "low", Body: "Find it.\nSay where."}
		if !reflect.DeepEqual(f.Agent, want) {
			t.Errorf("%s: got %+v", name, f.Agent)
		}
	}
}

func TestParseFrontmatterEnds(t *testing.T) {
	for text, body := range map[string]string{
		"no frontmatter":              "no frontmatter",
		"":                            "",
		"---\n---\nbody":              "body",
		"---\nmodel: m\n---":          "",
		"---\nmodel: m\nnever ends":   "---\nmodel: m\nnever ends",
		"---\n# note\n---\na\n---\nb": "a\n---\nb",
		" ---\nmodel: m\n---\nbody":   "---\nmodel: m\n---\nbody",
	} {
		if f, err := Parse("a", []byte(text), bundles); err != nil || f.Agent.Body != body {
			t.Errorf("%q: %q, %v", text, f.Agent.Body, err)
		}
	}
}

func TestParseFields(t *testing.T) {
	for _, c := range []struct{ front, err, dropped string }{
		{"", "", ""},
		{"description: 2024-01-01", "", ""},
		{"thinking: off", "", ""},
		{"max_turns: 3\npermission: {}\nauto-exit: maybe\nextensions: [x]", "", ""},
		{"description: &d text\nmodel: *d", "", ""},
		{"description: [a]", "", "description is not a text; ignored"},
		{"display_name: {}", "", "display_name is not a text; ignored"},
		{"model: [a]", "model is not a text", ""},
		{"model: p/*", "names no single model", ""},
		{"fallback: [a/b, 'c/*']", "names no single model", ""},
		{"fallback: a/b, c/d", "", ""},
		{"fallback: ['a/b,c/d']", "holds a comma", ""},
		{"fallback: {a: b}", "", "fallback is not a list; ignored"},
		{"fallback: 12", "", "fallback is 12, which is not a list; ignored"},
		{"thinking: loud", "", `thinking "loud" is not one of`},
		{"thinking: {}", "", "thinking is not a text"},
		{"prompt_mode: prepend", "", `prompt_mode "prepend"`},
		{"locked: [model, tools]", "", `locked has "tools"`},
		{"locked: 3", "", "locked is 3"},
		{"auto_exit: yes", "auto_exit is not true or false", ""},
		{`auto_exit: "true"`, "auto_exit is not true or false", ""},
		{"enabled: 1", "enabled is not true or false", ""},
		{"enabled:", "enabled is not true or false", ""},
		{"exclude-tools: bash", "", "exclude-tools is not read any more"},
		{"tools: [delegate, read]", "", "tools lists delegate, which has no effect"},
		{"tools: deleg*", "", "tools lists delegate, delegation_status"},
		{"tools: false", "tools is false, which is not a list", ""},
		{"tools: true", "not a list", ""},
		{"tools: 12", "tools is 12", ""},
		{"tools: {read: true}", "tools is not a list", ""},
		{"tools: [read, [grep]]", "not a text", ""},
		{"tools: [read, 12]", "not a text", ""},
		{"tools: [read, null]", "not a text", ""},
		{"tools: *", "not readable YAML", ""},
		{`tools: ["read,-bash"]`, "holds a comma", ""},
		{"tools: read, -bash", "mixes", ""},
		{"tools: +bash", "+name is not possible", ""},
		{"tools: [$nope]", "does not have", ""},
		{"allow_nested_delegation: true", "", ""},
		{"allow_nested_delegation: []", "", ""},
		{"allow_nested_delegation: [a, a]", "", ""},
		{"allow_nested_delegation:", "neither true, false nor a list", ""},
		{`allow_nested_delegation: "true"`, "neither true, false nor a list", ""},
		{"allow_nested_delegation: a", "neither true, false nor a list", ""},
		{"allow_nested_delegation: ['a*']", "no agent's name", ""},
		{"allow_nested_delegation: [{}]", "not a text", ""},
		{"- a", "not a set of fields", ""},
		{"text", "not a set of fields", ""},
		{"a: b: c", "not readable YAML", ""},
		{"model: a\nmodel: b", "twice", ""},
		{"\tmodel: a", "not readable YAML", ""},
		{"1: x\n[a]: y", "", ""},
	} {
		f, err := Parse("a", []byte("---\n"+c.front+"\n---\nbody"), bundles)
		if (c.err == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%q: error %v, want %q", c.front, err, c.err)
		}
		if got := strings.Join(f.Dropped, "|"); (c.dropped == "") != (got == "") || !strings.Contains(got, c.dropped) {
			t.Errorf("%q: dropped %q, want %q", c.front, got, c.dropped)
		}
	}
}

// Every spelling of a list means the same.
func TestParseLists(t *testing.T) {
	for _, c := range []struct {
		front string
		want  toolset.Rule
	}{
		{"model: m", toolset.Rule{Kind: toolset.Inherit}},
		{"tools:", toolset.Rule{Kind: toolset.Only, Names: []string{}}},
		{"tools: []", toolset.Rule{Kind: toolset.Only, Names: []string{}}},
		{"tools: ''", toolset.Rule{Kind: toolset.Only, Names: []string{}}},
		{"tools: read, grep", toolset.Rule{Kind: toolset.Only, Names: []string{"read", "grep"}}},
		{"tools: read,grep,", toolset.Rule{Kind: toolset.Only, Names: []string{"read", "grep"}}},
		{"tools: [read, grep, read]", toolset.Rule{Kind: toolset.Only, Names: []string{"read", "grep"}}},
		{"tools:\n  - read\n  - grep", toolset.Rule{Kind: toolset.Only, Names: []string{"read", "grep"}}},
		{"tools:\n- read\n- 'grep '", toolset.Rule{Kind: toolset.Only, Names: []string{"read", "grep"}}},
		{"tools: $readonly", toolset.Rule{Kind: toolset.Only, Names: []string{"read", "grep"}}},
		{"tools: '*'", toolset.Rule{Kind: toolset.Only, Names: []string{"*"}}},
		{"tools: -bash, -mcp__*", toolset.Rule{Kind: toolset.Except, Names: []string{"bash", "mcp__*"}}},
		{"tools: [-bash, '-mcp__*']", toolset.Rule{Kind: toolset.Except, Names: []string{"bash", "mcp__*"}}},
		{"tools: yes, off", toolset.Rule{Kind: toolset.Only, Names: []string{"yes", "off"}}},
	} {
		f, err := Parse("a", []byte("---\n"+c.front+"\n---\n"), bundles)
		if err != nil || !slices.Equal(f.Agent.Tools.Names, c.want.Names) || f.Agent.Tools.Kind != c.want.Kind {
			t.Errorf("%q: %+v, %v", c.front, f.Agent.Tools, err)
		}
	}
}

func TestParseEverything(t *testing.T) {
	const text = `---
name: ignored
display_name: "Größe / Recon!"
description: "Read-only: recon"
model: alpha/fast
fallback: [beta/b, gamma]
thinking: xhigh
tools: [read, $readonly]
auto_exit: false
prompt_mode: replace
locked: model, thinking
allow_nested_delegation: [worker, reviewer, worker]
permission:
  bash: ask
---
Do it.
`
	f, err := Parse("scout", []byte(text), bundles)
	want := Agent{
		Name: "scout", Display: "Größe / Recon!", Description: "Read-only: recon", Model: "alpha/fast", Fallback: []string{"beta/b", "gamma"}, Thinking: "xhigh",
		Tools: toolset.Rule{Kind: toolset.Only, Names: []string{"read", "grep"}}, Replace: true, Locked: Locked{true, true},
		Nested: Grant{Names: []string{"worker", "reviewer"}}, Permission: true, Body: "Do it.",
	}
	if err != nil || len(f.Dropped) > 0 || !reflect.DeepEqual(f.Agent, want) {
		t.Errorf("%+v, %v, %v", f.Agent, f.Dropped, err)
	}
	if got := f.Agent.WindowName(); got != "Gr-e-Recon-" {
		t.Errorf("window name %q", got)
	}
	if got := (Agent{Name: "a", Display: "Ж"}).WindowName(); got != "a" {
		t.Errorf("window name %q", got)
	}
}

// put writes files into a new folder below dir.
func put(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func problems(r Roster) string {
	var all []string
	for _, p := range r.Problems {
		all = append(all, filepath.Base(p.File))
	}
	return strings.Join(all, " ")
}

func TestLoadNamesEveryProblemAndKeepsTheRest(t *testing.T) {
	dir := put(t, t.TempDir(), map[string]string{
		"scout.md": plain, "bad.md": "---\nmodel: [\n---\n", "v1.2.md": "", "notes.txt": "", ".hidden.md": "", "off.md": "---\nenabled: false\n---",
		"huge.md": strings.Repeat("x", maxFile+1),
	})
	if err := os.Mkdir(filepath.Join(dir, "dir.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, link := range [][2]string{{"scout.md", "link.md"}, {"nowhere", "dangling.md"}, {"cycle.md", "cycle.md"}} {
		if err := os.Symlink(link[0], filepath.Join(dir, link[1])); err != nil {
			t.Fatal(err)
		}
	}
	linked := filepath.Join(t.TempDir(), "agents")
	if err := os.Symlink(dir, linked); err != nil {
		t.Fatal(err)
	}
	r := Load(Sources{Global: linked})
	if got := strings.Join(r.Names(), " "); got != "link scout" {
		t.Errorf("agents %q", got)
	}
	if got := problems(r); got != "bad.md cycle.md dangling.md dir.md huge.md v1.2.md" {
		t.Errorf("problems %q", got)
	}
	if p, ok := r.Lost("bad"); !ok || !strings.Contains(p.String(), "bad.md: the frontmatter is not readable YAML") {
		t.Errorf("bad: %+v", p)
	}
	if p, ok := r.Lost("off"); !ok || p.Reason != "the file says enabled: false" {
		t.Errorf("off: %+v", p)
	}
	if _, ok := r.Lost("scout"); ok || r.Empty() {
		t.Error("scout is lost, or the roster is empty")
	}
	if empty := Load(Sources{Global: filepath.Join(dir, "none"), Project: filepath.Join(dir, "none")}); !empty.Empty() || len(empty.Problems) != 0 {
		t.Errorf("missing folder: %+v", empty)
	}
}

func TestLoadFoldersThatCannotBeRead(t *testing.T) {
	root := t.TempDir()
	cycle := filepath.Join(root, "cycle")
	if err := errors.Join(os.Symlink(cycle, cycle), os.WriteFile(filepath.Join(root, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	good := put(t, filepath.Join(root, "good"), map[string]string{"scout.md": plain})
	for _, bad := range []string{cycle, filepath.Join(root, "file")} {
		r := Load(Sources{Global: good, Project: bad})
		if len(r.Agents) != 1 || len(r.Problems) != 1 || r.Problems[0].File != bad {
			t.Errorf("%s: %+v", bad, r)
		}
	}
}

func TestLoadProject(t *testing.T) {
	root := t.TempDir()
	global := put(t, filepath.Join(root, "global"), map[string]string{"scout.md": "global", "worker.md": "global", "broken.md": "---\ntools: 1\n---", "off.md": "global"})
	project := put(t, filepath.Join(root, "project"), map[string]string{"worker.md": "project", "broken.md": "mended", "scout.md": "---\ntools: +a\n---", "off.md": "---\nenabled: false\n---", "own.md": "project"})
	r := Load(Sources{Global: global, Project: project})
	var got []string
	for _, a := range r.Agents {
		got = append(got, a.Name+"="+a.Body)
	}
	// A project's file replaces the global one, whatever it holds.
	if want := "broken=mended own=project worker=project"; strings.Join(got, " ") != want || problems(r) != "scout.md" {
		t.Errorf("agents %q, problems %q", got, problems(r))
	}
	if again := Load(Sources{Global: global, Project: global}); len(again.Agents) != 3 || len(again.Problems) != 1 {
		t.Errorf("one folder twice: %+v", again)
	}
	if global := Load(Sources{Global: global}); strings.Join(global.Names(), " ") != "off scout worker" {
		t.Errorf("without the project: %q", global.Names())
	}
}

func TestLoadBundles(t *testing.T) {
	dir := put(t, t.TempDir(), map[string]string{"a.md": "---\ntools: $readonly\n---", "b.md": "---\ntools: read\n---"})
	if r := Load(Sources{Global: dir, Bundles: bundles}); len(r.Agents) != 2 {
		t.Errorf("%+v", r)
	}
	r := Load(Sources{Global: dir, Bundles: toolset.Bundles{Err: errors.New("it is 3")}})
	if strings.Join(r.Names(), " ") != "b" || !strings.Contains(r.Problems[0].Reason, "it is 3") {
		t.Errorf("%+v", r)
	}
}

func TestLoadGrantsAndRetired(t *testing.T) {
	root := t.TempDir()
	global := put(t, filepath.Join(root, "agents"), map[string]string{
		"lead.md":   "---\nallow_nested_delegation: [worker, ghost]\npermission: {}\n---",
		"boss.md":   "---\nallow_nested_delegation: true\npermission: {}\n---",
		"worker.md": "", "guard.md": "---\npermission: {bash: ask}\n---",
	})
	retired := put(t, filepath.Join(root, "old"), nil)
	r := Load(Sources{Global: global, Retired: retired})
	var reasons []string
	for _, p := range r.Problems {
		reasons = append(reasons, filepath.Base(p.File)+" "+p.Reason)
	}
	got := strings.Join(reasons, "\n")
	for _, want := range []string{`boss.md it has permission rules and may start "worker"`, `lead.md it has permission rules and may start "worker"`, `lead.md allow_nested_delegation names "ghost"`, "old this folder is not read any more"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if len(r.Problems) != 4 || len(r.Agents) != 4 {
		t.Errorf("%d problems, %d agents", len(r.Problems), len(r.Agents))
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(plain))
	f.Add([]byte("---\na: &a [*a]\n---"))
	f.Add([]byte("---\ntools: [-a, $readonly]\nfallback: a,b\n---"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("x", data, bundles)
		if err != nil {
			return
		}
		a := file.Agent
		for _, m := range append([]string{a.Model}, a.Fallback...) {
			if strings.Contains(m, "*") {
				t.Errorf("model %q", m)
			}
		}
		for _, name := range a.Tools.Names {
			if toolset.CheckName(name) != nil && a.Tools.Kind == toolset.Only {
				t.Errorf("tool %q", name)
			}
		}
		if strings.Contains(a.Body, "\r\n") || outsideName.MatchString(a.WindowName()) {
			t.Errorf("%+v", a)
		}
	})
}
