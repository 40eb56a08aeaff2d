package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStarter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "agents")
	written, err := WriteStarter(dir)
	if err != nil || len(written) != 3 {
		t.Fatal(written, err)
	}
	r := Load(Sources{Global: dir})
	if got := strings.Join(r.Names(), " "); got != "reviewer scout worker" || len(r.Problems) > 0 {
		t.Errorf("%q %v", got, r.Problems)
	}
	for _, a := range r.Agents {
		if a.Description == "" || len(a.Body) < 200 || a.Model != "" {
			t.Errorf("%+v", a)
		}
	}
	if written, err := WriteStarter(dir); err != nil || len(written) != 0 {
		t.Errorf("a second time: %v, %v", written, err)
	}
}

func TestStarterOverwritesNothing(t *testing.T) {
	dir := t.TempDir()
	mine, dangling := filepath.Join(dir, "scout.md"), filepath.Join(dir, "worker.md")
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "nowhere"), dangling); err != nil {
		t.Fatal(err)
	}
	if written, err := WriteStarter(dir); err != nil || strings.Join(written, " ") != filepath.Join(dir, "reviewer.md") {
		t.Errorf("%v, %v", written, err)
	}
	if data, err := os.ReadFile(mine); err != nil || string(data) != "mine" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := os.Stat(dangling); err == nil {
		t.Error("written through a link")
	}
}
