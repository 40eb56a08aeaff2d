package nono

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"pi-cradle/cradle/folder"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func ptr[T any](v T) *T { return &v }

var plain = Input{Name: "helper-1a2b3c4d", Home: "/home/u", CWD: "/work/project", Agent: "/agents/helper", State: "/home/u/.cradle/agents/helper-1a2b3c4d"}

// inputs are the profiles that the golden files show.
func inputs() map[string]Input {
	offline, full, odd := plain, plain, plain
	offline.Network = &folder.Network{Block: ptr(true)}
	full.GitDir = "/src/main/.git"
	full.Folder = folder.Grants{
		Read: []string{"~/data", "$HOME/data", "/x/../y/"}, Write: []string{"~"}, Allow: []string{"~/scratch", "~other", "/work/project"}, UnixSocketDirBind: []string{"~/.agent-browser"},
	}
	full.Rules = []string{"(allow mach-register)", "(allow iokit-open)"}
	full.Network = &folder.Network{Block: ptr(false), Profile: ptr("developer"), AllowDomain: []string{"localhost", "*.example.com"}, OpenPort: []int{0, 11434}, ListenPort: []int{3000}}
	odd.CWD = "/work/<a> & \"b\"\\c\u2028日本\x01"
	odd.Network = &folder.Network{AllowDomain: []string{"a<b"}}
	return map[string]Input{"plain": plain, "offline": offline, "full": full, "odd": odd}
}

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	f, err := os.Open("../../testdata/nono-profile.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	properties := doc.(map[string]any)["$defs"].(map[string]any)["FilesystemConfig"].(map[string]any)["properties"].(map[string]any)
	properties["unix_socket_dir_bind"] = properties["allow"]
	c := jsonschema.NewCompiler()
	if err := c.AddResource("profile.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("profile.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestProfiles(t *testing.T) {
	s := schema(t)
	for name, in := range inputs() {
		t.Run(name, func(t *testing.T) {
			got := Profile(in)
			path := filepath.Join("../../testdata/golden/nono", name+".json")
			if *update {
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || got != string(want) {
				t.Errorf("%v\n got %s\nwant %s", err, got, want)
			}
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(got))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(doc); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSchemaCanRefuse shows that the validation above can fail.
func TestSchemaCanRefuse(t *testing.T) {
	s := schema(t)
	for _, text := range []string{`{"filesystem":{"raed":[]}}`, `{"network":{"open_port":["x"]}}`, `{"typo":1}`} {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if s.Validate(doc) == nil {
			t.Errorf("%s is valid", text)
		}
	}
}

func TestRealNonoTakesTheProfiles(t *testing.T) {
	bin, err := exec.LookPath("nono")
	if err != nil {
		t.Log("LOUD: nono is not installed, so the generated profiles were held against its schema only")
		return
	}
	for name, in := range inputs() {
		path := filepath.Join(t.TempDir(), "profile.json")
		if err := os.WriteFile(path, []byte(Profile(in)), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(bin, "profile", "validate", path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestPlainGrants(t *testing.T) {
	var allowed []string
	for _, g := range Grants(plain) {
		if g.Reason == "" {
			t.Errorf("%+v has no reason", g)
		}
		if g.Access == Allow {
			allowed = append(allowed, g.Path)
		}
	}
	if want := []string{"$HOME/.pi/agent", plain.CWD, plain.State}; !slices.Equal(allowed, want) {
		t.Errorf("got %q", allowed)
	}
}

func TestLinkedGitDir(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string // below a directory R, the working directory being R/cwd
		want  string            // below R
	}{
		"none":                  {nil, ""},
		"plain clone":           {map[string]string{"cwd/.git/HEAD": "ref"}, ""},
		"worktree":              {map[string]string{"cwd/.git": "gitdir: R/main/.git/worktrees/w\n", "main/.git/worktrees/w/commondir": "../..\n"}, "main/.git"},
		"bare layout":           {map[string]string{"cwd/.git": "gitdir: R/bare/worktrees/w", "bare/worktrees/w/commondir": "../.."}, "bare"},
		"submodule":             {map[string]string{"cwd/.git": "gitdir: ../super/.git/modules/m\n"}, "super/.git/modules/m"},
		"relative":              {map[string]string{"cwd/.git": "gitdir:   ../main/.git/worktrees/w  \r\n", "main/.git/worktrees/w/commondir": "../../"}, "main/.git"},
		"absolute commondir":    {map[string]string{"cwd/.git": "gitdir: R/g", "g/commondir": " R/common \n"}, "common"},
		"commondir is a folder": {map[string]string{"cwd/.git": "gitdir: R/g", "g/commondir/x": ""}, "g"},
		"gone":                  {map[string]string{"cwd/.git": "gitdir: /gone/../gone/x/"}, "/gone/x"},
		"malformed":             {map[string]string{"cwd/.git": "gitdir R/g"}, ""},
		"leading space":         {map[string]string{"cwd/.git": " gitdir: R/g"}, ""},
		"empty":                 {map[string]string{"cwd/.git": ""}, ""},
		"empty pointer":         {map[string]string{"cwd/.git": "gitdir:"}, ""},
		"inside":                {map[string]string{"cwd/.git": "gitdir: .real"}, ""},
		"link to a file":        {map[string]string{"cwd/.git": "->../pointer", "pointer": "gitdir: R/g"}, "g"},
		"link to a folder":      {map[string]string{"cwd/.git": "->../main", "main/HEAD": ""}, ""},
		"dangling":              {map[string]string{"cwd/.git": "->gone"}, ""},
		"huge":                  {map[string]string{"cwd/.git": "gitdir: R/" + strings.Repeat("x", 1<<20)}, ""},
	} {
		root := t.TempDir()
		for path, content := range c.files {
			path = filepath.Join(root, path)
			err := os.MkdirAll(filepath.Dir(path), 0o700)
			if target, ok := strings.CutPrefix(content, "->"); ok {
				err = errors.Join(err, os.Symlink(target, path))
			} else {
				err = errors.Join(err, os.WriteFile(path, []byte(strings.ReplaceAll(content, "R/", root+"/")), 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		want := c.want
		if want != "" && want[0] != '/' {
			want = filepath.Join(root, want)
		}
		if got := LinkedGitDir(filepath.Join(root, "cwd")); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestLinkedGitDirOfRealGit lets git itself make the layouts.
func TestLinkedGitDirOfRealGit(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "HOME="+root, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "main")
	git("-C", "main", "commit", "-q", "--allow-empty", "-m", "x")
	git("-C", "main", "worktree", "add", "-q", "../linked")
	git("clone", "-q", "--bare", "main", "bare")
	git("-C", "bare", "worktree", "add", "-q", "../of-bare")
	git("init", "-q", "super")
	git("-C", "super", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", root+"/main", "sub")
	for dir, want := range map[string]string{"main": "", "linked": root + "/main/.git", "of-bare": root + "/bare", "super": "", "super/sub": root + "/super/.git/modules/sub"} {
		if got := LinkedGitDir(filepath.Join(root, dir)); got != want {
			t.Errorf("%s: got %q, want %q", dir, got, want)
		}
	}
}

func TestDegenerateWorkingDirectory(t *testing.T) {
	for _, cwd := range []string{"/home/u", "/home", "/", "/home/u/.local", "/home/u/.local/state", "/home/u/.local/state/nono", "/home/u/.local/state/nono/audit"} {
		want := "cannot sandbox from " + cwd + " — this directory is (or contains) nono's protected state root (~/.local/state/nono) and nono refuses to start with an overlapping grant; run `cradle run` from a project directory instead"
		if err := CheckCWD(cwd, "/home/u"); err == nil || err.Error() != want {
			t.Errorf("%s: %v", cwd, err)
		}
	}
	for _, cwd := range []string{"/work/project", "/home/u/.cradle", "/home/u/.local/state/nonox", "/home/v", "/home/u/.local/share"} {
		if err := CheckCWD(cwd, "/home/u"); err != nil {
			t.Errorf("%s: %v", cwd, err)
		}
	}
}
