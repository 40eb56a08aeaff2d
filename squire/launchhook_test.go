package squire

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

func offered() launchOffer {
	return launchOffer{
		Args: []string{"--session", "/s/1.jsonl", "--approve", "--tools", "read,mcp__"}, Env: map[string]string{"PI_UNATTENDED": "1", "PI_DELEGATE_PARENT": "p"},
		Agent: "scout", Cwd: "/work", Parent: "p", Root: "p", Depth: 1, Chain: []string{"scout"},
	}
}

// left is the payload as a listener leaves it.
func left(t *testing.T, change func(args []any, env map[string]any) ([]any, map[string]any)) json.RawMessage {
	t.Helper()
	args, env := []any{}, map[string]any{}
	for _, a := range offered().Args {
		args = append(args, a)
	}
	for k, v := range offered().Env {
		env[k] = v
	}
	args, env = change(args, env)
	raw, err := json.Marshal(map[string]any{"args": args, "env": env, "cwd": "/elsewhere", "agent": "other"})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestAcceptTakesWhatIsAdded(t *testing.T) {
	got, err := accept(offered(), left(t, func(args []any, env map[string]any) ([]any, map[string]any) {
		env["GATE_MODE"], env["EMPTY"] = "auto", ""
		return append(args, "--auto", "--tools", "bash", "--append-system-prompt", "a -a b"), env
	}))
	if err != nil || !slices.Equal(got.args, append(offered().Args, "--auto", "--tools", "bash", "--append-system-prompt", "a -a b")) ||
		!maps.Equal(got.env, map[string]string{"GATE_MODE": "auto", "EMPTY": ""}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAcceptRefuses(t *testing.T) {
	type change = func(args []any, env map[string]any) ([]any, map[string]any)
	add := func(more ...any) change {
		return func(args []any, env map[string]any) ([]any, map[string]any) { return append(args, more...), env }
	}
	set := func(name string, value any) change {
		return func(args []any, env map[string]any) ([]any, map[string]any) {
			env[name] = value
			return args, env
		}
	}
	cases := map[string]struct {
		change change
		says   string
	}{
		"number":  {add(3), "argument 3"},
		"removed": {func(args []any, env map[string]any) ([]any, map[string]any) { return args[1:], env }, "arguments were changed"},
		"replaced": {func(args []any, env map[string]any) ([]any, map[string]any) {
			args[2] = "--no-approve"
			return args, env
		}, "arguments were changed"},
		"no args":  {func(_ []any, env map[string]any) ([]any, map[string]any) { return nil, env }, "arguments were changed"},
		"contract": {set("PI_DELEGATE_PARENT", "x"), "PI_DELEGATE_PARENT was changed"},
		"contract gone": {func(args []any, env map[string]any) ([]any, map[string]any) {
			delete(env, "PI_UNATTENDED")
			return args, env
		}, "PI_UNATTENDED was changed"},
		"no text":  {set("X", 3), `"X"`},
		"odd name": {set("X=Y", "z"), `"X=Y"`},
		"no env":   {func(args []any, _ map[string]any) ([]any, map[string]any) { return args, nil }, "was changed or removed"},
	}
	for flag := range chosen {
		cases[flag] = struct {
			change change
			says   string
		}{add("--fine", flag, "x"), `"` + flag + `"`}
	}
	cases["joined value"] = struct {
		change change
		says   string
	}{add("--session-dir=/x"), `"--session-dir=/x", but the session directory is chosen by the parent`}
	for name, c := range cases {
		if got, err := accept(offered(), left(t, c.change)); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "session:launch") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for _, raw := range []string{`[]`, `{"args":"x"}`, `{"args":["a"],"env":[]}`, ``} {
		if _, err := accept(offered(), json.RawMessage(raw)); err == nil {
			t.Errorf("%s was accepted", raw)
		}
	}
}

func TestEnvironment(t *testing.T) {
	l := &live{svc: &Service{cfg: Config{Binary: "/bin/helper", Environ: func() []string {
		return []string{"HOME=/h", "PATH=/p", "XDG_STATE_HOME=", "X_API_KEY=secret", "X_OTHER=o", "AI_AGENT=pi", "PI_DELEGATE_FALLBACK=old", "EMPTY=", "ODD"}
	}}}}
	contract := map[string]string{"PI_DELEGATE_PARENT": "me", "PI_UNATTENDED": "1"}
	set, unset := l.environment([]string{"X_*", "EMPTY", "ODD", "*AGENT", "PI_*", "PATH"}, contract, map[string]string{"PATH": "/listener", "NEW": "n"})
	want := map[string]string{
		"CRADLE_HELPER": "/bin/helper", "HOME": "/h", "PATH": "/listener", "NEW": "n", "X_API_KEY": "secret", "X_OTHER": "o", "EMPTY": "", "ODD": "",
		"PI_DELEGATE_PARENT": "me", "PI_UNATTENDED": "1",
	}
	if !maps.Equal(set, want) {
		t.Errorf("set %v", set)
	}
	for _, name := range []string{"XDG_STATE_HOME", "AI_AGENT", "CLAUDECODE", "PI_DELEGATE_FALLBACK", "PI_DELEGATE_ROOT", "PI_CODING_AGENT_SESSION_DIR"} {
		if !slices.Contains(unset, name) {
			t.Errorf("%s stays as the tmux server has it", name)
		}
	}
	if slices.Contains(unset, "PI_DELEGATE_PARENT") || slices.Contains(unset, "X_API_KEY") {
		t.Errorf("unset %v", unset)
	}
	if set, _ := l.environment(nil, contract, nil); set["X_API_KEY"] != "" || set["PATH"] != "/p" {
		t.Errorf("nothing is inherited by default: %v", set)
	}
}
