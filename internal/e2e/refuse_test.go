package e2e

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

func files(root string, parts ...string) []string {
	var found []string
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			for _, part := range parts {
				if strings.Contains(path, part) {
					found = append(found, path)
				}
			}
		}
		return nil
	})
	return found
}

func TestRefusals(t *testing.T) {
	cases := map[string]struct {
		options testenv.Options
		prepare func(e *testenv.Env)
		command string
		says    []string
	}{
		"no usable agents": {
			prepare: func(e *testenv.Env) { e.Agent("broken", "---\n- x\n---\n") },
			command: "/delegate scout look", says: []string{"none of the agents can be used", "broken.md"},
		},
		"unknown agent":    {prepare: (*testenv.Env).Scout, command: "/delegate scuot look", says: []string{`"scuot"`, "scout"}},
		"unknown model":    {prepare: (*testenv.Env).Scout, command: "/delegate scout --model fake/chidl look", says: []string{"fake/chidl", "fake/child"}},
		"unknown thinking": {prepare: (*testenv.Env).Scout, command: "/delegate scout --thinking hgih look", says: []string{`"hgih"`, "high"}},
		"bad label":        {prepare: (*testenv.Env).Scout, command: "/delegate scout --label a:b look", says: []string{`"a:b"`}},
		"no task":          {prepare: (*testenv.Env).Scout, command: "/delegate scout", says: []string{"task"}},
		"model without credentials": {
			prepare: (*testenv.Env).Scout, command: "/delegate scout --model anthropic/claude-haiku-4-5 look", says: []string{"anthropic/claude-haiku-4-5"},
		},
		"hooks without a provider": {
			prepare: func(e *testenv.Env) {
				e.Scout()
				e.WriteJSON(e.AgentDir+"/squire/settings.json", map[string]any{"mail": "hooks"})
			},
			command: "/delegate scout look", says: []string{"message:"},
		},
		"old tmux": {
			prepare: func(e *testenv.Env) {
				e.Scout()
				e.FakeTool("tmux", `PATH=${PATH#`+e.BinDir+`:}; tmux "$@" | sed "s/$(tmux -V | cut -d' ' -f2)/3.1c/"`)
			},
			command: "/delegate scout look", says: []string{`"3.1c"`, "3.2"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testenv.New(t, c.options)
			c.prepare(e)
			parent := e.Start(testenv.PiOptions{})
			parent.Submit(c.command)
			refused(t, e, parent, c.says...)
		})
	}
}

// The tool refuses as the command does, and the model reads why.
func TestToolRefuses(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	parent.Submit("go\n" + call("delegate", map[string]any{"agent": "scuot", "task": "look"}))
	r := e.Model.Await(t, "the refusal", func(r testenv.Request) bool { return r.Last().Role == "tool" })
	if text := r.Last().Text; !strings.Contains(text, `"scuot"`) || !strings.Contains(text, "scout") {
		t.Errorf("the tool says %q", text)
	}
	refused(t, e, parent)
}
