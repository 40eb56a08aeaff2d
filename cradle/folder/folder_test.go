package folder

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pi-cradle/internal/jsjson"
)

// files maps a path within the folder to its content; a path that ends in / is a directory, a content that begins with "->" a
// link, and "|" a named pipe.
type files map[string]string

func (fs files) make(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range fs {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		switch {
		case strings.HasSuffix(name, "/"):
			err = errors.Join(err, os.MkdirAll(path, 0o700))
		case strings.HasPrefix(content, "->"):
			err = errors.Join(err, os.Symlink(content[2:], path))
		case content == "|":
			err = errors.Join(err, syscall.Mkfifo(path, 0o600))
		default:
			err = errors.Join(err, os.WriteFile(path, []byte(content), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// load loads a folder of these files and an APPEND_SYSTEM.md, and shortens paths within it in the warnings.
func load(t testing.TB, fs files) *Folder {
	t.Helper()
	f, err := try(t, fs)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func try(t testing.TB, fs files) (*Folder, error) {
	t.Helper()
	dir := fs.make(t)
	if _, ok := fs["SYSTEM.md"]; !ok {
		if err := os.WriteFile(filepath.Join(dir, "APPEND_SYSTEM.md"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Load(dir)
	for i, w := range f.Warnings {
		f.Warnings[i] = strings.ReplaceAll(w, dir+"/", "")
	}
	if err != nil {
		err = errors.New(strings.ReplaceAll(err.Error(), dir+"/", ""))
	}
	return f, err
}

func wantWarnings(t *testing.T, f *Folder, want ...string) {
	t.Helper()
	if !slices.Equal(f.Warnings, want) {
		t.Errorf("warnings\n got %q\nwant %q", f.Warnings, want)
	}
}

func TestMinimalFolders(t *testing.T) {
	for _, fs := range []files{{"SYSTEM.md": ""}, {"APPEND_SYSTEM.md": ""}, {"SYSTEM.md": "", "APPEND_SYSTEM.md": ""}, {"SYSTEM.md": "->gone"}, {"SYSTEM.md/": ""}} {
		dir := fs.make(t)
		f, err := Load(dir + "/x/../")
		if err != nil {
			t.Fatal(err)
		}
		_, system := fs["SYSTEM.md"]
		_, directory := fs["SYSTEM.md/"]
		_, appended := fs["APPEND_SYSTEM.md"]
		want := &Folder{Dir: dir, HasSystem: system || directory, HasAppend: appended, Settings: Settings{Installer: "npm"}}
		if !reflect.DeepEqual(f, want) {
			t.Errorf("%v: got %+v", fs, f)
		}
	}
}

func TestNoAgentFolder(t *testing.T) {
	empty, legacy := files{}.make(t), files{"AGENTS.md": ""}.make(t)
	file := filepath.Join(legacy, "AGENTS.md")
	for dir, want := range map[string]string{
		empty + "/none": "Agent folder not found: " + empty + "/none",
		file:            "Agent folder not found: " + file,
		empty:           "Not an agent folder: " + empty + " (needs SYSTEM.md or APPEND_SYSTEM.md — see ARCHITECTURE.md)",
		legacy:          "Not an agent folder: " + legacy + " (needs SYSTEM.md or APPEND_SYSTEM.md — found AGENTS.md, rename it to APPEND_SYSTEM.md — see ARCHITECTURE.md)",
	} {
		if _, err := Load(dir); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

func TestUnknownEntries(t *testing.T) {
	f := load(t, files{"channels/": "", "notes.txt": "", "README.md": "", ".gitignore": "", "LICENSE": "", ".git/": "", ".DS_Store": ""})
	wantWarnings(t, f, "reserved for a future cradle release, ignored: channels", "not part of the agent folder format, ignored: notes.txt")
	f = load(t, files{"subagents/": "", "connections": "", "channels/": "", "schedules/": "", "B": "", "a": ""})
	wantWarnings(t, f, "reserved for a future cradle release, ignored: channels, connections, subagents",
		"not part of the agent folder format, ignored: B, a, schedules — did you mean schedule/ (singular)?")
}

func TestDirectories(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "a.ts"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, is := range map[string]func(*Folder) bool{
		"skills":     func(f *Folder) bool { return f.HasSkills },
		"schedule":   func(f *Folder) bool { return f.HasSchedule },
		"extensions": func(f *Folder) bool { return len(f.Extensions) > 0 },
		"sandbox":    func(f *Folder) bool { return f.HasSandbox },
	} {
		if f := load(t, files{name: "->" + outside}); !is(f) {
			t.Errorf("a link to a directory is not taken for %s", name)
		}
		for _, content := range []string{"a file", "->README.md", "->gone"} {
			f := load(t, files{name: content, "README.md": ""})
			if is(f) {
				t.Errorf("%s: %q is taken", name, content)
			}
			wantWarnings(t, f, name+" must be a directory — ignored")
		}
	}
}

func TestExtensions(t *testing.T) {
	f := load(t, files{
		"extensions/zeta.ts": "", "extensions/alpha/index.ts": "", "extensions/alpha/helper.ts": "", "extensions/Beta.ts": "", "extensions/beta.ts": "",
		"extensions/types.d.ts": "", "extensions/no-entry/other.ts": "", "extensions/README.md": "", "extensions/.hidden.ts": "",
		"extensions/.dot/index.ts": "", "extensions/plain.js": "", "extensions/link.ts": "->zeta.ts", "extensions/linked": "->alpha",
		"extensions/deep/index.ts/": "", "extensions/via/index.ts": "->../zeta.ts", "extensions/dir.ts/x.ts": "",
	})
	var got []string
	for _, e := range f.Extensions {
		got = append(got, strings.TrimPrefix(e, f.Dir+"/extensions/"))
	}
	if want := []string{".dot/index.ts", "alpha/index.ts", "beta.ts", "Beta.ts", "types.d.ts", "zeta.ts"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	wantWarnings(t, f)
}

// TestUnusableFiles puts each kind of damage in the place of each JSON file.
func TestUnusableFiles(t *testing.T) {
	for _, name := range []string{"settings.json", "models.json", "sandbox/nono.json", "sandbox/sbx.json"} {
		for content, want := range map[string]string{
			"{": "is not valid JSON: ", "": "is not valid JSON: ", "\ufeff{}": "is not valid JSON: ", "{\"a\":\"\xff\"}": "is not valid JSON: ",
			"// x\n{}": "is not valid JSON: ", `{"a":1,}`: "is not valid JSON: ", strings.Repeat(`{"a":`, 100_000): "is not valid JSON: ",
			"[1]": "must be a JSON object", "null": "must be a JSON object", `"s"`: "must be a JSON object",
			"->gone": "could not be read — broken symlink?", "|": "could not be read: ",
			`{"a":"` + strings.Repeat("x", 10<<20) + `"}`: "could not be read: ",
		} {
			_, err := try(t, files{name: content})
			if err == nil || !strings.HasPrefix(err.Error(), name+" "+want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, %.20q: %v", name, content, err)
			}
		}
		if _, err := try(t, files{name + "/": ""}); err == nil || !strings.HasPrefix(err.Error(), name+" could not be read: ") {
			t.Errorf("%s as a directory: %v", name, err)
		}
	}
	if _, err := try(t, files{"models.json": `{"providers":"yes"}`}); err == nil || err.Error() != `models.json must contain a "providers" object` {
		t.Error(err)
	}
}

func TestOneBadThingHidesNoOther(t *testing.T) {
	f, err := try(t, files{"settings.json": "{", "models.json": "[]", "sandbox/nono.json": "->gone", "skills": "", "odd": ""})
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 || lines[0] != "sandbox/nono.json could not be read — broken symlink?" ||
		!strings.HasPrefix(lines[1], "settings.json is not") || lines[2] != "models.json must be a JSON object" {
		t.Errorf("%q", lines)
	}
	wantWarnings(t, f, "not part of the agent folder format, ignored: odd", "skills must be a directory — ignored")
}

func TestSettings(t *testing.T) {
	text := func(s string) *string { return &s }
	f := load(t, files{"settings.json": `{"defaultProvider":"ollama","defaultModel":"","defaultThinkingLevel":"low","packages":["npm:x"],"npmCommand":["pnpm"]}`})
	wantWarnings(t, f)
	want := Settings{text("ollama"), text(""), text("low"), []Package{{Name: "x", Version: "latest"}}, "pnpm"}
	if !reflect.DeepEqual(f.Settings, want) {
		t.Errorf("%+v", f.Settings)
	}
	f = load(t, files{"settings.json": `{"npmCommand":1,"packages":{},"theme":1,"defaultThinkingLevel":"ultra","defaultModel":null,"defaultProvider":7,"quietStartup":1,"collapseChangelog":null}`})
	wantWarnings(t, f,
		"settings.json: keys cradle does not map are ignored — pi reads them from ~/.pi/agent/settings.json or the project's .pi/settings.json, not the agent folder: theme, quietStartup, collapseChangelog",
		"settings.json: defaultProvider must be a string — ignored",
		"settings.json: defaultModel must be a string — ignored",
		"settings.json: defaultThinkingLevel must be one of off, minimal, low, medium, high, xhigh, max — ignored",
		"settings.json: packages must be an array — ignored",
		"settings.json: npmCommand must be a single-element array naming one of npm, pnpm, yarn, bun — ignored")
	if !reflect.DeepEqual(f.Settings, Settings{Installer: "npm"}) {
		t.Errorf("%+v", f.Settings)
	}
	for _, level := range []string{"off", "minimal", "low", "medium", "high", "xhigh", "max"} {
		if f := load(t, files{"settings.json": `{"defaultThinkingLevel":"` + level + `"}`}); f.Settings.Thinking == nil || *f.Settings.Thinking != level {
			t.Errorf("%s: %+v", level, f)
		}
	}
	for _, name := range []string{"npm", "pnpm", "yarn", "bun"} {
		if f := load(t, files{"settings.json": `{"npmCommand":["` + name + `"]}`}); f.Settings.Installer != name || f.Warnings != nil {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for _, bad := range []string{`["bash","-c","x"]`, `["npm","install"]`, `["npm --force"]`, `["/usr/local/bin/npm"]`, `["deno"]`, `[]`, `"npm"`, `[1]`, `null`} {
		if f := load(t, files{"settings.json": `{"npmCommand":` + bad + `}`}); f.Settings.Installer != "npm" || len(f.Warnings) != 1 {
			t.Errorf("%s: %+v", bad, f)
		}
	}
	f = load(t, files{"settings.json": `{"defaultModel":"a","theme":1,"defaultModel":"b\ud800","theme":2}`})
	wantWarnings(t, f, "settings.json: keys cradle does not map are ignored — pi reads them from ~/.pi/agent/settings.json or the project's .pi/settings.json, not the agent folder: theme")
	if *f.Settings.Model != "b\ufffd" {
		t.Errorf("%q", *f.Settings.Model)
	}
}

func TestModels(t *testing.T) {
	f := load(t, files{"models.json": `{"x":1,"providers":{"b":{"baseUrl":"u","models":[{"id":"m","n":1.0,"7":0},{"cost":null,"id":"k"},{"id":"p","cost":{"input":1}},3]},"a":{"models":{}},"c":null,"d":{}}}`})
	wantWarnings(t, f, "models.json: unsupported keys ignored: x")
	want := `{"b":{"baseUrl":"u","models":[{"7":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0},"id":"m","n":1},{"cost":null,"id":"k"},{"id":"p","cost":{"input":1}},3]},"a":{"models":{}},"c":null,"d":{}}`
	if got := jsjson.Compact(f.Models); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// FuzzLoad puts arbitrary content in one of the JSON files. Loading may refuse it, in one line, and nothing else.
func FuzzLoad(f *testing.F) {
	names := []string{"settings.json", "models.json", "sandbox/nono.json", "sandbox/sbx.json"}
	for i, seeds := range [][]string{
		{`{"packages":["npm:@a/b@1",{"source":"npm:c","extensions":["!x"],"autoload":false}],"npmCommand":["bun"]}`, `{"defaultModel":"\ud800"}`},
		{`{"providers":{"a":{"models":[{}]}}}`, `{"providers":{"1":null}}`},
		{`{"sandbox":false,"network":{"block":true,"open_port":[0,65536,"x"]},"filesystem":{"read":["~/x","y"]}}`, `{"unsafe_macos_seatbelt_rules":["(x)","y"],"net":1}`},
		{`{"network":{"allow_domain":[" a ",""]}}`, `{"filesystem":{"unix_socket_dir_bind":1}}`},
	} {
		for _, seed := range seeds {
			f.Add(byte(i), seed)
		}
	}
	f.Fuzz(func(t *testing.T, which byte, content string) {
		name := names[int(which)%len(names)]
		if strings.HasPrefix(content, "->") || content == "|" {
			return // our own notation
		}
		folder, err := try(t, files{name: content})
		if err != nil {
			if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), name+" ") {
				t.Fatalf("%q", err)
			}
			return
		}
		if (folder.Models != nil) != (name == names[1]) || (folder.Nono.Stance != Unconfigured) != (name == names[2]) || (folder.Sbx.Stance != Unconfigured) != (name == names[3]) {
			t.Fatalf("%+v", folder)
		}
		for _, n := range []*Network{folder.Nono.Network, folder.Sbx.Network} {
			if n != nil && slices.ContainsFunc(append(n.OpenPort, n.ListenPort...), func(p int) bool { return p < 0 || p > 65535 }) {
				t.Fatalf("%+v", n)
			}
		}
	})
}
