package pkgs

import (
	"os"
	"testing"

	"pi-cradle/cradle/folder"
)

func TestManifest(t *testing.T) {
	p := Project{Packages: []folder.Package{{Name: "zeta", Version: "latest"}, {Name: "alpha", Version: "<2 >=1"}, {Name: "10", Version: "1"}, {Name: "zeta", Version: "^1"}}}
	want := `{
  "name": "cradle-agent-packages",
  "private": true,
  "dependencies": {
    "10": "1",
    "alpha": "<2 >=1",
    "zeta": "^1"
  }
}
`
	if got := string(p.Manifest()); got != want {
		t.Errorf("got %s", got)
	}
	if got, want := string(Project{}.Manifest()), "{\n  \"name\": \"cradle-agent-packages\",\n  \"private\": true,\n  \"dependencies\": {}\n}\n"; got != want {
		t.Errorf("got %s", got)
	}
}

func TestUpToDate(t *testing.T) {
	p := Project{Dir: t.TempDir(), Packages: []folder.Package{{Name: "a", Version: "latest"}}}
	write := func(path string, data []byte) func() {
		return func() {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		name string
		do   func()
		want bool
	}{
		{"nothing there", func() {}, false},
		{"manifest alone", write(p.ManifestPath(), p.Manifest()), false},
		{"with node_modules", func() { tree(t, p.Dir, map[string]string{"node_modules/": ""}) }, true},
		{"unfinished", write(p.Unfinished(), nil), false},
		{"finished", func() { _ = os.Remove(p.Unfinished()) }, true},
		{"other manifest", write(p.ManifestPath(), append(p.Manifest(), '\n')), false},
	} {
		step.do()
		if got := p.UpToDate(); got != step.want {
			t.Errorf("%s: %v", step.name, got)
		}
	}
}
