package e2e

import (
	"os"
	"testing"

	"pi-cradle/internal/testenv"
)

// The agent's instructions lie in a private file for as long as the delegate may read them, also when everything is killed.
func TestPromptFile(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	prompts := func() []string { return files(e.AgentDir+"/squire", ".prompt.md") }
	parent.Submit("/delegate scout --no-auto-exit look\nSAY seen")
	e.Model.AwaitAnswered(t, "the result", told("seen"))
	lying := prompts()
	if len(lying) != 1 {
		t.Fatalf("prompt files %v", lying)
	}
	if info, err := os.Stat(lying[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	window := e.Tmux.AwaitWindow("scout-")
	testenv.Kill(t, window.PID)
	e.Tmux.AwaitNoWindow("scout-")
	if len(prompts()) != 1 {
		t.Fatal("a launcher that was killed has tidied up")
	}
	parent.Quit()
	parent.Reopen()
	testenv.Await(t, "the end of the prompt file", func() bool { return len(prompts()) == 0 })
}
