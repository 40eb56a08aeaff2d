package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

// The tmux server was started long ago by something else: what it has left in the environment means nobody here, and what the
// settings inherit comes from the parent, seen by the delegate alone.
func TestEnvironmentOfDelegates(t *testing.T) {
	t.Parallel()
	const conf = `
set-environment -g CLAUDECODE 1
set-environment -g PI_DELEGATE_FALLBACK stale/model
set-environment -g PI_DELEGATE_ROOT stranger
set-environment -g XDG_STATE_HOME /nowhere
set-environment -g KEPT server
`
	e := testenv.New(t, testenv.Options{CleanServer: true, TmuxConf: conf})
	e.Agent("scout", "---\nmodel: fake/child\ntools: bash\n---\nx\n")
	e.WriteJSON(e.AgentDir+"/squire/settings.json", map[string]any{"inheritEnv": []string{"X_*", "PI_DELEGATE_*"}})
	tools := e.Dir("tools")
	secret := "s3cret-" + filepath.Base(e.Root)
	parent := e.Start(testenv.PiOptions{Environ: map[string]string{
		"X_API_KEY": secret, "Y_OTHER": "not for delegates", "PI_DELEGATE_AGENT": "me", "PATH": tools + ":" + path(e),
	}})
	show := call("bash", map[string]any{"command": `echo "claude=$CLAUDECODE fallback=$PI_DELEGATE_FALLBACK root=$PI_DELEGATE_ROOT agent=$PI_DELEGATE_AGENT kept=$KEPT other=$Y_OTHER dir=$PI_CODING_AGENT_DIR exit=$PI_DELEGATE_AUTO_EXIT"; echo "key=$X_API_KEY"; echo "path=$PATH"`})
	parent.Submit("/delegate scout look\n" + show + "\nTHEN\nHOLD work\nSAY done")
	text := e.Model.Await(t, "the environment", func(r testenv.Request) bool { return r.Model == "child" && r.Last().Role == "tool" }).Last().Text
	for _, want := range []string{
		"claude= fallback= root=" + parent.Session + " agent=scout kept=server other= dir=" + e.AgentDir + " exit=1", "key=" + secret, tools + ":" + e.BinDir,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	window := e.Tmux.AwaitWindow("scout-")
	for what, said := range map[string]string{
		"the window's command": e.Tmux.Run("display-message", "-p", "-t", window.Pane, "#{pane_start_command}"),
		"tmux's environment":   e.Tmux.Run("show-environment", "-g") + e.Tmux.Run("show-environment", "-t", "=main:"),
		"a command line":       commandLines(t, window.PID),
	} {
		if strings.Contains(said, secret) {
			t.Errorf("%s shows the secret: %s", what, said)
		}
	}
	if specs := files(e.AgentDir+"/squire", "/launch/"); len(specs) != 1 || !strings.HasSuffix(specs[0], ".prompt.md") {
		t.Errorf("beside the prompt there are launch files: %v", specs)
	}
	e.Model.Release("work")
	e.Tmux.AwaitNoWindow("scout-")
	testenv.Await(t, "the end of the prompt file", func() bool { return len(files(e.AgentDir+"/squire", ".prompt.md")) == 0 })
}

// path is the PATH of everything in e.
func path(e *testenv.Env) string {
	for _, kv := range e.Environ() {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			return value
		}
	}
	return ""
}

// commandLines are those of a process and all below it.
func commandLines(t *testing.T, pid int) string {
	t.Helper()
	var all strings.Builder
	for _, p := range append(testenv.Below(pid, ""), pid) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p))
		if err == nil {
			all.Write(line)
		}
	}
	if _, err := os.Stat("/proc/self"); err == nil && all.Len() == 0 {
		t.Error("no command lines were read")
	}
	return all.String()
}
