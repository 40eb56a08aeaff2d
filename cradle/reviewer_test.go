package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

// The reviewer of examples/, with the real pi in the real nono: it reads a project, fails to change it, and writes its report.
func TestReviewerReadsAndDoesNotWrite(t *testing.T) {
	nono := realNono(t)
	model := testenv.NewModel(t)
	w := newSandboxWorld(t, map[string]string{
		"home/.cradle/settings.json": `{"agents":{"reviewer":{"path":"~/../reviewer","cwd":"~/reviews"}}}`,
		"home/projects/app/main.txt": "fine as it is\n",
		"home/reviews/keep":          "",
		"home/.pi/agent/models.json": fmt.Sprintf(`{"providers":{"fake":{"baseUrl":%q,"api":"openai-completions","apiKey":"x","models":[{"id":"m"}]}}}`, model.URL()),
	})
	agent := filepath.Join(w.root, "reviewer")
	if err := os.CopyFS(agent, os.DirFS(filepath.Join(testenv.Repo(), "examples", "reviewer"))); err != nil {
		t.Fatal(err)
	}
	// pi is not where an installed one would be, so this world grants it besides what the example grants.
	config := filepath.Join(agent, "sandbox", "nono.json")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	granted := strings.Replace(string(text), `"~/projects"`, fmt.Sprintf(`"~/projects", %q`, filepath.Join(testenv.Repo(), "node_modules")), 1)
	if err := os.WriteFile(config, []byte(granted), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(nono, filepath.Join(w.bin, "nono")); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "PATH="+w.bin+":"+testenv.NodeDir()+":/usr/bin:/bin", "PI_OFFLINE=1", "PI_TELEMETRY=0",
		"HTTPS_PROXY=http://proxy.example:1") // for the generated fallback extension to pass on

	command := "cat ~/projects/app/main.txt; echo worse > ~/projects/app/main.txt; echo looks good > app.md; cat app.md; echo proxy $AGENT_BROWSER_PROXY"
	cmd := w.cradle("run", "reviewer", "--", "-p", fmt.Sprintf("Review it\nCALL bash {\"command\":%q}\nTHEN\nSAY reviewed", command))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if code := exitCode(t, cmd.Run()); code != 0 || stdout.String() != "🔒 Sandbox Active\nreviewed\n" || stderr.String() != "" {
		t.Fatalf("exit code %d, stdout %q, stderr %q\n%s", code, &stdout, &stderr, model.Summary())
	}
	if first := model.Requests()[0]; !strings.Contains(first.System(), "You review code") || !slices.Contains(first.Tools, "bash") {
		t.Errorf("tools %q, prompt:\n%s", first.Tools, first.System())
	}
	result := model.Requests()[1].Last().Text
	for _, want := range []string{"fine as it is", "Permission denied", "looks good", "proxy http://proxy.example:1"} {
		if !strings.Contains(result, want) {
			t.Errorf("%q is not in the tool's result %q", want, result)
		}
	}
	for path, want := range map[string]string{"projects/app/main.txt": "fine as it is\n", "reviews/app.md": "looks good\n"} {
		if got, err := os.ReadFile(filepath.Join(w.root, "home", path)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", path, got, err)
		}
	}
}
