package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pi-cradle/cradle/state"
	"pi-cradle/internal/testenv"
)

// agentCopy copies an example into a private world, its model server replaced by url.
func agentCopy(t *testing.T, name, dir, url string) string {
	t.Helper()
	agent := filepath.Join(dir, name)
	if err := os.CopyFS(agent, os.DirFS(filepath.Join(testenv.Repo(), "examples", name))); err != nil {
		t.Fatal(err)
	}
	models := filepath.Join(agent, "models.json")
	data, err := os.ReadFile(models)
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`"baseUrl": "[^"]*"`).ReplaceAllString(string(data), `"baseUrl": "`+url+`"`)
	if err := os.WriteFile(models, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return agent
}

// personal is what must not reach an agent: each file with a word of its own that would show up in the model's request.
var personal = map[string]string{
	"SYSTEM.md":                "PERSONAL-PROMPT",
	"prompts/mine.md":          "---\ndescription: PERSONAL-TEMPLATE\n---\nPERSONAL-TEMPLATE",
	"skills/personal/SKILL.md": "---\nname: personal\ndescription: PERSONAL-SKILL\n---\n",
	"extensions/personal.ts":   personalExtension,
}

const personalExtension = `
export default function (pi) {
	pi.registerTool({ name: "personal-tool", label: "x", description: "x", parameters: { type: "object", properties: {} },
		async execute() { return { content: [], details: {} }; } });
	pi.on("before_agent_start", (event) => ({ systemPrompt: event.systemPrompt + "PERSONAL-EXTENSION" }));
}
`

func TestRealPiIsTheFoldersAgentAndNobodyElse(t *testing.T) {
	e := testenv.New(t, testenv.Options{Bare: true})
	if err := link(e.BinDir, "cradle"); err != nil {
		t.Fatal(err)
	}
	for name, text := range personal {
		e.Write(filepath.Join(e.AgentDir, name), text)
	}
	e.Setenv("GORACE", os.Getenv("GORACE"))
	e.Setenv(state.RootEnv, e.Dir("cradle-state"))
	agent := agentCopy(t, "hello", e.Root, e.Model.URL())

	// What is planted does reach a pi that runs on its own: it is well planted.
	if out := e.Exec("node", e.Pi.CLI, "-p", "--session-dir", e.Sessions, "/mine"); out.Code != 0 {
		t.Fatalf("pi: %+v", out)
	}
	alone := e.Model.Requests()[0]
	for _, word := range []string{"PERSONAL-PROMPT", "PERSONAL-SKILL", "PERSONAL-EXTENSION"} {
		if !strings.Contains(alone.System(), word) {
			t.Errorf("%s is not in the prompt of a personal pi", word)
		}
	}
	if !alone.Said("user", "PERSONAL-TEMPLATE") || !slices.Contains(alone.Tools, "personal-tool") || alone.Model != "parent" {
		t.Errorf("a personal pi asked %q with the tools %q for %q", alone.Model, alone.Tools, alone.Last().Text)
	}

	out := e.Exec("cradle", "run", agent, "--", "-p", "What time is it?\nCALL local-time {}\nTHEN\nSAY half past")
	if out.Code != 0 || out.Stdout != "half past\n" {
		t.Fatalf("exit %d, stdout %q, stderr %q", out.Code, out.Stdout, out.Stderr)
	}
	if !strings.HasPrefix(out.Stderr, "warning: sandbox/nono.json or sbx.json not found") || strings.Count(out.Stderr, "\n") != 1 {
		t.Errorf("stderr %q", out.Stderr)
	}
	requests := e.Model.Requests()[1:]
	if len(requests) != 2 {
		t.Fatalf("%d requests:\n%s", len(requests), e.Model.Summary())
	}
	first, second := requests[0], requests[1]
	if first.Model != "qwen3:8b" {
		t.Errorf("model %q", first.Model)
	}
	if !slices.Contains(first.Tools, "local-time") || slices.Contains(first.Tools, "personal-tool") {
		t.Errorf("tools %q", first.Tools)
	}
	for _, want := range []string{"You are Hello", "haiku", "How to write a haiku"} {
		if !strings.Contains(first.System(), want) {
			t.Errorf("%q is not in the prompt", want)
		}
	}
	if strings.Contains(first.System(), "PERSONAL") {
		t.Errorf("something personal is in the prompt:\n%s", first.System())
	}
	if !second.Said("tool", "20") {
		t.Errorf("the tool's result did not reach the model: %+v", second.Last())
	}
	if out := e.Exec("cradle", "run", agent, "--", "-p", "/mine"); out.Code != 0 {
		t.Errorf("exit %d, stderr %q", out.Code, out.Stderr)
	}
	if r := e.Model.Requests()[3]; !r.Said("user", "/mine") || r.Said("user", "PERSONAL-TEMPLATE") {
		t.Errorf("the personal template was used: %q", r.Last().Text)
	}
	sessions, err := filepath.Glob(filepath.Join(e.Root, "cradle-state", "agents", "hello-*", "sessions", "*.jsonl"))
	if err != nil || len(sessions) != 2 {
		t.Errorf("sessions %q, %v", sessions, err)
	}
}
