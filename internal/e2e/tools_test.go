package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

// testdata is the path of a file for pi to load.
func testdata(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The delegate's own model request is the proof: it declares exactly the tools that its agent file gives it, with an extension's
// tools and a real MCP server in play.
func TestToolsOfDelegates(t *testing.T) {
	t.Parallel()
	e := testenv.New(t, testenv.Options{Settings: map[string]any{"extensions": []string{testdata(t, "tools.ts")}}})
	e.WriteJSON(e.AgentDir+"/mcp.json", map[string]any{"mcpServers": map[string]any{"docs": map[string]any{
		"command": "node", "args": []string{testdata(t, "mcp.ts")}, "exposure": "direct",
	}}})
	parent := e.Start(testenv.PiOptions{})
	parent.Submit("what have I got?")
	own := e.Model.AwaitAnswered(t, "the parent's tools", prompt("what have I got?")).Tools
	for _, name := range []string{"bash", "edit", "gadget", "notes_add", "notes_find", "read", "write", "mcp__docs__find", "mcp__docs__drop", "delegate"} {
		if !slices.Contains(own, name) {
			t.Fatalf("the parent has no %s: %v", name, own)
		}
	}
	inherited := slices.DeleteFunc(slices.Clone(own), func(name string) bool { return strings.HasPrefix(name, "delegat") })
	without := func(gone ...string) []string {
		return slices.DeleteFunc(slices.Clone(inherited), func(name string) bool { return slices.Contains(gone, name) })
	}
	settings := map[string]any{"toolBundles": map[string]any{"readonly": []string{"read", "grep", "find", "ls"}}}
	for _, c := range []struct {
		name, tools string   // a line of frontmatter
		extra       []string // delegateTools
		want        []string
	}{
		{"inherit", "", nil, inherited},
		{"list", "tools: read, notes_*", nil, []string{"read", "notes_add", "notes_find"}},
		{"mcp", "tools: [read, mcp__docs__find]", nil, []string{"read", "mcp__docs__find"}},
		{"servers", "tools: ['mcp__docs__*']", nil, []string{"mcp__docs__find", "mcp__docs__drop"}},
		{"except", "tools: -bash, -mcp__*, -notes_*", nil, without("bash", "mcp__docs__find", "mcp__docs__drop", "notes_add", "notes_find")},
		{"empty", "tools:", nil, nil},
		{"bundle", "tools: [$readonly, gadget]", nil, []string{"read", "grep", "find", "ls", "gadget"}},
		{"ours", "tools: [delegate, delegation_*, read]", nil, []string{"read"}},
		{"added", "tools: []", []string{"notes_*"}, []string{"notes_add", "notes_find"}},
		{"addedtoo", "tools: -notes_*", []string{"notes_add"}, without("notes_find")},
	} {
		settings["delegateTools"] = append([]string{}, c.extra...)
		e.WriteJSON(e.AgentDir+"/squire/settings.json", settings)
		e.Agent(c.name, "---\nmodel: "+testenv.ChildModel+"\n"+c.tools+"\n---\nBe brief.\n")
		task := "task for " + c.name
		parent.Submit("/delegate " + c.name + " " + task)
		got := slices.Clone(e.Model.AwaitAnswered(t, task, child(task)).Tools)
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the delegate has %v, not %v", c.name, got, c.want)
		}
		e.Tmux.AwaitNoWindow(c.name + "-")
	}
}

// A parent that was given less hands on no more.
func TestToolsOfALimitedParent(t *testing.T) {
	t.Parallel()
	e := testenv.New(t, testenv.Options{})
	e.Scout()
	parent := e.Start(testenv.PiOptions{Args: []string{"--tools", "read"}})
	parent.Submit("/delegate scout look")
	if got := e.Model.AwaitAnswered(t, "the task", child("look")).Tools; !slices.Equal(got, []string{"read"}) {
		t.Errorf("the delegate has %v", got)
	}
	e.Tmux.AwaitNoWindow("scout-")
}
