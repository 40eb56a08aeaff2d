package e2e

import (
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

func TestPrintMode(t *testing.T) {
	t.Parallel()
	e := testenv.New(t, testenv.Options{})
	e.Scout()
	out := e.Print("go\n" + delegate("the task\nHOLD work\nSAY the answer") + "\nTHEN\nSAY started")
	if out.Code != 0 || out.Stdout != "started\n" || out.Stderr != "" {
		t.Errorf("by tool: %+v", out)
	}
	e.Model.Await(t, "the task", child("the task"))
	e.Model.Release("work")
	e.Tmux.AwaitNoWindow("scout-")

	out = e.Print("/delegate scout another task\nSAY the answer")
	if out.Code != 0 || out.Stdout != "" || out.Stderr != "" {
		t.Errorf("by command: %+v", out)
	}
	e.Model.Await(t, "the task", child("another task"))
	e.Tmux.AwaitNoWindow("scout-")
}

func TestRPCMode(t *testing.T) {
	t.Parallel()
	e := testenv.New(t, testenv.Options{})
	e.Scout()
	rpc := e.StartRPC()
	rpc.Call(map[string]any{"type": "prompt", "message": "/delegate scout the task\nSAY the answer"})
	e.Model.AwaitAnswered(t, "the result", told("the answer"))
	e.Tmux.AwaitNoWindow("scout-")
	rpc.Call(map[string]any{"type": "prompt", "message": "by tool\n" + delegate("a second task\nSAY a second answer")})
	e.Model.AwaitAnswered(t, "the result", told("a second answer"))
	e.Tmux.AwaitNoWindow("scout-")
	if code := rpc.Close(); code != 0 || len(rpc.Noise()) != 0 || rpc.Stderr() != "" {
		t.Errorf("exit code %d, stdout beside JSON %q, stderr %q", code, rpc.Noise(), rpc.Stderr())
	}
	if strings.Contains(rpc.Stderr(), "Error") {
		t.Error(rpc.Stderr())
	}
}
