package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

// sixAgents writes four agents that can be used and two that can't.
func sixAgents(e *testenv.Env) {
	e.Scout()
	e.Agent("recon", "---\ndisplay_name: Recon\ndescription: Read-only recon\nmodel: fake/child\nthinking: low\nauto_exit: false\ntools: read, grep\nlocked: model\n---\nLook.\n")
	e.Agent("worker", "---\ndescription: Does the work\ntools: -bash\nfallback: fake/other\n---\nWork.\n")
	e.Agent("silent", "---\ntools: []\n---\n")
	e.Agent("broken", "---\ndescription: [never closed\n---\nx\n")
	e.Agent("mixed", "---\ntools: read, -bash\n---\nx\n")
}

func described(t *testing.T, r testenv.Request) string {
	t.Helper()
	text, ok := r.ToolTexts["delegate"]
	if !ok {
		t.Fatalf("no delegate tool among %v", r.Tools)
	}
	return text
}

func TestSixAgentsTwoBroken(t *testing.T) {
	t.Parallel()
	e := testenv.New(t, testenv.Options{})
	sixAgents(e)
	e.WriteJSON(e.AgentDir+"/squire/settings.json", map[string]any{"maxDeph": 2})
	parent := e.Start(testenv.PiOptions{})
	for _, said := range []string{`agent "broken" can't be used: ` + e.AgentDir + "/agents/broken.md: the frontmatter is not readable YAML", `agent "mixed" can't be used`, "mixes names and exclusions", `unknown key "maxDeph"; did you mean "maxDepth"?`} {
		parent.AwaitScreen(said, func(s string) bool { return strings.Contains(joined(s), said) })
	}
	parent.Submit("first")
	text := described(t, e.Model.AwaitAnswered(t, "a run", prompt("first")))
	for _, line := range []string{
		`- recon "Recon" — Read-only recon (default fake/child, thinking low, auto-exit off, tools: read/grep, locked: model)`,
		`- scout — Looks things up (default fake/child)`,
		`- silent (default this session's model, no tools)`,
		`- worker — Does the work (default this session's model, fallback fake/other, tools: this session's except bash)`,
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	if strings.Contains(text, "broken") || strings.Contains(text, "mixed") {
		t.Errorf("an agent that can't be used is on offer:\n%s", text)
	}
	parent.Submit("/delegate mixed look")
	parent.AwaitScreen("the reason", func(s string) bool { return strings.Contains(joined(s), `agent "mixed" can't be used: tools mixes`) })

	// Nothing has changed, so nothing of what the model reads changes.
	parent.Submit("second")
	if again := described(t, e.Model.AwaitAnswered(t, "a run", prompt("second"))); again != text {
		t.Errorf("the description changed without a reason:\n%s", again)
	}
	// An edit shows in the very run that comes next; a file that turns bad is told of, one that is mended comes back.
	e.Agent("mixed", "---\ndescription: Mended\n---\nx\n")
	e.Agent("worker", "---\ntools: +bash\n---\nx\n")
	parent.Submit("third")
	third := described(t, e.Model.AwaitAnswered(t, "a run", prompt("third")))
	if !strings.Contains(third, "- mixed — Mended (") || strings.Contains(third, "worker") {
		t.Errorf("after the edits:\n%s", third)
	}
	parent.AwaitScreen("the new warning", func(s string) bool { return strings.Contains(joined(s), `agent "worker" can't be used`) })
	if n := strings.Count(joined(parent.History()), `agent "broken" can't be used`); n != 1 {
		t.Errorf("a problem that has not changed was told %d times", n)
	}
}

// What a project brings along counts only where the user trusts it.
func TestProjectAgents(t *testing.T) {
	for name, args := range map[string][]string{"trusted": {"--approve"}, "untrusted": {"--no-approve"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testenv.New(t, testenv.Options{})
			e.Scout()
			e.Write(e.Work+"/.pi/agents/scout.md", "---\ndescription: The project's\nmodel: fake/child\n---\nProject instructions.\n")
			e.Write(e.Work+"/.pi/agents/local.md", "---\ndescription: Local\n---\nx\n")
			parent := e.Start(testenv.PiOptions{Args: args})
			parent.Submit("who is there?")
			text := described(t, e.Model.AwaitAnswered(t, "a run", prompt("who is there?")))
			if has := strings.Contains(text, "The project's") && strings.Contains(text, "local"); has != (name == "trusted") {
				t.Errorf("%s:\n%s", name, text)
			}
			parent.Submit("/delegate scout look")
			r := e.Model.AwaitAnswered(t, "the task", child("look"))
			if has := r.Said("system", "Project instructions."); has != (name == "trusted") {
				t.Errorf("%s: the delegate is told\n%s", name, r.System())
			}
			e.Tmux.AwaitNoWindow("scout-")
		})
	}
}

func TestGuidance(t *testing.T) {
	t.Parallel()
	e := testenv.New(t, testenv.Options{})
	e.Scout()
	guide := e.AgentDir + "/squire/delegation_prompt.md"
	e.Write(guide, "Hand on  what takes long.\n")
	parent := e.Start(testenv.PiOptions{})
	system := func(ask string) string {
		parent.Submit(ask)
		return e.Model.AwaitAnswered(t, ask, prompt(ask)).System()
	}
	const section = "<squire_parent_delegation>\nHand on  what takes long.\n"
	if s := system("one"); strings.Count(s, section) != 1 {
		t.Errorf("not once:\n%s", s)
	}
	parent.Submit("/delegate scout --label x look\nSAY the answer")
	r := e.Model.AwaitAnswered(t, "the result", told("the answer"))
	if !strings.Contains(r.System(), section) {
		t.Error("a run that a result started has no guidance")
	}
	if task := e.Model.AwaitAnswered(t, "the task", child("look")); strings.Contains(task.System(), "Hand on") {
		t.Error("the delegate got its parent's guidance")
	}
	e.Tmux.AwaitNoWindow("scout-")
	if err := os.Remove(guide); err != nil {
		t.Fatal(err)
	}
	if s := system("two"); lastSection(s) != "" {
		t.Errorf("the section stays: %q", lastSection(s))
	}
	if err := os.Mkdir(guide, 0o700); err != nil {
		t.Fatal(err)
	}
	if s := system("three"); lastSection(s) != "" {
		t.Errorf("a folder gave a section: %q", lastSection(s))
	}
	parent.AwaitScreen("a warning with the path", func(s string) bool { return strings.Contains(joined(s), guide+" can't be read") })
}

// lastSection is the guidance in the leading system prompt, which pi rewrites when a section goes away.
func lastSection(system string) string {
	_, rest, ok := strings.Cut(system, "<squire_parent_delegation>")
	if !ok {
		return ""
	}
	text, _, _ := strings.Cut(rest, "</squire_parent_delegation>")
	return text
}

func TestFallback(t *testing.T) {
	t.Parallel()
	e := testenv.New(t, testenv.Options{})
	e.Agent("scout", "---\nmodel: anthropic/claude-haiku-4-5\nfallback: [fake/child, fake/other]\n---\nx\n")
	parent := e.Start(testenv.PiOptions{})
	parent.Submit("go\n" + delegate("look"))
	r := e.Model.AwaitAnswered(t, "the tool's answer", func(r testenv.Request) bool { return r.Model == "parent" && r.Last().Role == "tool" })
	const note = "Used fallback fake/child because anthropic/claude-haiku-4-5 has no configured credentials"
	if !strings.Contains(r.Last().Text, note) {
		t.Errorf("the tool says %q", r.Last().Text)
	}
	e.Model.AwaitAnswered(t, "the task", child("look"))
	var details struct {
		Skipped []struct{ Model, Reason string }
	}
	for _, entry := range parent.Entries() {
		if entry.Message.Role == "toolResult" {
			if err := json.Unmarshal(entry.Message.Details, &details); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(details.Skipped) != 1 || details.Skipped[0].Model != "anthropic/claude-haiku-4-5" || details.Skipped[0].Reason == "" {
		t.Errorf("details.skipped is %+v", details.Skipped)
	}
	e.Tmux.AwaitNoWindow("scout-")
}

// Whoever has no agents is asked whether to begin with ours.
func TestStarterSet(t *testing.T) {
	t.Parallel()
	e := testenv.New(t, testenv.Options{})
	parent := e.Start(testenv.PiOptions{})
	ask := func() {
		parent.Submit("/delegate scout the task\nSAY the answer")
		parent.AwaitScreen("the offer", func(s string) bool { return strings.Contains(joined(s), "Write three to begin with?") })
	}
	ask()
	parent.Keys("Escape")
	parent.AwaitScreen("the refusal", func(s string) bool {
		return strings.Contains(joined(s), "there are no agents yet an agent is a Markdown file")
	})
	if found := files(e.AgentDir+"/agents", ".md"); len(found) != 0 {
		t.Errorf("written without consent: %v", found)
	}
	ask()
	parent.Keys("Enter")
	e.Model.AwaitAnswered(t, "the result", told("the answer"))
	if found := files(e.AgentDir+"/agents", ".md"); len(found) != 3 {
		t.Errorf("written: %v", found)
	}
	e.Tmux.AwaitNoWindow("scout-")
}
