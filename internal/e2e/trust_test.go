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

// A delegate in another repository starts as pi's store has it, and is asked about in the parent where the store says nothing. Each
// answer shows in the store and in the delegate.
func TestAsksForTrustElsewhere(t *testing.T) {
	const extension = `import { appendFileSync } from "node:fs";
export default function () { appendFileSync("%LOG%", (process.env.PI_DELEGATE_AGENT ?? "parent") + "\n"); }
`
	for name, c := range map[string]struct {
		saved   string   // trust.json before; %REPO% and %ABOVE% stand for the repository and the folder above it
		keys    []string // that answer the question; nil when none may come
		trusted bool
		after   string // trust.json at the end
		refused bool
	}{
		"saved no":               {`{"%REPO%":false}`, nil, false, `{"%REPO%":false}`, false},
		"saved yes above":        {`{"%ABOVE%":true}`, nil, true, `{"%ABOVE%":true}`, false},
		"trust":                  {"", []string{"Enter"}, true, `{"%REPO%":true}`, false},
		"trust the folder above": {"", []string{"Down", "Enter"}, true, `{"%ABOVE%":true}`, false},
		"trust this once":        {"", []string{"Down", "Down", "Enter"}, true, "", false},
		"do not trust":           {"", []string{"Down", "Down", "Down", "Enter"}, false, `{"%REPO%":false}`, false},
		"do not trust this once": {"", []string{"Down", "Down", "Down", "Down", "Enter"}, false, "", false},
		"Escape":                 {"", []string{"Escape"}, false, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testenv.New(t, testenv.Options{Height: 50})
			e.Scout()
			above := e.Dir("elsewhere")
			repo := filepath.Join(above, "project")
			log := filepath.Join(e.Root, "loaded")
			e.Write(filepath.Join(repo, ".pi", "extensions", "own.ts"), strings.ReplaceAll(extension, "%LOG%", log))
			fill := strings.NewReplacer("%REPO%", repo, "%ABOVE%", above)
			store := filepath.Join(e.AgentDir, "trust.json")
			if c.saved != "" {
				e.Write(store, fill.Replace(c.saved))
			}
			parent := e.Start(testenv.PiOptions{})
			parent.Submit("/delegate scout --cwd " + repo + " look\nSAY done looking")
			if c.keys != nil {
				screen := parent.AwaitScreen("the question", func(s string) bool { return strings.Contains(s, "Do not trust (this session only)") })
				if !strings.Contains(joined(screen), "scout") || !strings.Contains(strings.ReplaceAll(screen, "\n", ""), filepath.Base(repo)) {
					t.Errorf("the question names neither agent nor directory:\n%s", screen)
				}
				parent.Keys(c.keys...)
			}
			if c.refused {
				parent.AwaitScreen("the question's end", func(s string) bool { return !strings.Contains(s, "Do not trust") })
				parent.Submit("well?\nSAY well")
				parent.AwaitAnswer("well")
				if n := len(e.Tmux.Named("scout-")); n != 0 {
					t.Errorf("%d delegates were started", n)
				}
			} else {
				e.Model.AwaitAnswered(t, "the result", told("done looking"))
			}
			loaded, err := os.ReadFile(log)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if slices.Contains(strings.Fields(string(loaded)), "scout") != c.trusted {
				t.Errorf("the project's extension was loaded by %q", loaded)
			}
			kept, err := os.ReadFile(store)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if got := strings.Join(strings.Fields(string(kept)), ""); got != fill.Replace(c.after) {
				t.Errorf("trust.json holds %q, want %q", got, fill.Replace(c.after))
			}
		})
	}
}
