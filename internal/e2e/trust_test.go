package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

// A delegate in its parent's directory trusts the project as its parent does, whatever pi's defaults say, and never asks. What it
// does without is said at its start.
func TestInheritsTrust(t *testing.T) {
	for name, c := range map[string]struct {
		args    []string // of the parent
		preset  string   // defaultProjectTrust
		trusted bool
	}{
		"trusted for once":   {[]string{"--approve"}, "never", true},
		"untrusted for once": {[]string{"--no-approve"}, "always", false},
		"trusted by default": {nil, "always", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testenv.New(t, testenv.Options{Settings: map[string]any{"defaultProjectTrust": c.preset}})
			e.Scout()
			log := filepath.Join(e.Root, "loaded")
			e.Write(filepath.Join(e.Work, ".pi", "extensions", "own.ts"), `import { appendFileSync } from "node:fs";
export default function () { appendFileSync("`+log+`", (process.env.PI_DELEGATE_AGENT ?? "parent") + "\n"); }
`)
			parent := e.Start(testenv.PiOptions{Args: c.args})
			parent.Submit("/delegate scout look\nSAY done looking")
			e.Model.AwaitAnswered(t, "the result", told("done looking"))
			data, err := os.ReadFile(log)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			loaded := strings.Fields(string(data))
			if slices.Contains(loaded, "scout") != c.trusted || slices.Contains(loaded, "parent") != c.trusted {
				t.Errorf("the project's extension was loaded by %q", loaded)
			}
			if said := strings.Contains(joined(parent.History()), "is not trusted: the delegate's pi leaves"); said == c.trusted {
				t.Errorf("on the screen:\n%s", parent.History())
			}
			if _, err := os.Stat(filepath.Join(e.AgentDir, "trust.json")); !os.IsNotExist(err) {
				t.Errorf("something was saved: %v", err)
			}
		})
	}
}
