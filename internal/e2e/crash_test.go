package e2e

import (
	"os"
	"testing"

	"pi-cradle/internal/testenv"
)

func read(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(data)
}

func TestParentIsKilledWhileTheDelegateWorks(t *testing.T) {
	for _, when := range []string{"reopened before the answer", "reopened after the answer"} {
		t.Run(when, func(t *testing.T) {
			e, parent := world(t, testenv.Options{})
			parent.Submit("remember me\nSAY remembered")
			parent.AwaitAnswer("remembered")
			held(t, e, parent)
			parent.Kill()
			var again *testenv.Pi
			if when == "reopened before the answer" {
				again = parent.Reopen()
				e.Model.Release("work")
			} else {
				e.Model.Release("work")
				e.Tmux.AwaitNoWindow("scout-")
				again = parent.Reopen()
			}
			r := e.Model.AwaitAnswered(t, "the result", told("the answer"))
			if !r.Said("user", "remember me") {
				t.Error("the reopened session has lost its past")
			}
			exactlyOnce(t, again, "the answer")
			again.Kill()
			exactlyOnce(t, again.Reopen(), "the answer")
		})
	}
}

func TestParentIsKilledWhileAResultWaits(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	held(t, e, parent)
	tool, _ := blockingTool(t, e)
	parent.Submit("busy\n" + tool)
	parent.AwaitText("until [")
	arrive(t, e, parent)
	e.Tmux.AwaitNoWindow("scout-")
	parent.Kill()
	again := parent.Reopen()
	e.Model.Await(t, "the result", told("the answer"))
	exactlyOnce(t, again, "the answer")
	again.Kill()
	exactlyOnce(t, again.Reopen(), "the answer")
}

func TestParentsHelperIsKilled(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	held(t, e, parent)
	helper := parent.Helpers()
	if len(helper) != 1 {
		t.Fatalf("the parent's helpers: %v", helper)
	}
	testenv.Kill(t, helper[0])
	e.Model.Release("work")
	e.Model.Await(t, "the result", told("the answer"))
	exactlyOnce(t, parent, "the answer")
}

func TestDelegatesHelperIsKilled(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	held(t, e, parent)
	window := e.Tmux.AwaitWindow("scout-")
	served := testenv.Below(window.PID, "cradle-helper serve")
	if len(served) != 1 {
		t.Fatalf("the delegate's helpers: %v", served)
	}
	testenv.Kill(t, served[0])
	e.Model.Release("work")
	e.Model.Await(t, "the result", told("the answer"))
	exactlyOnce(t, parent, "the answer")
}

func TestLauncherIsKilled(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	held(t, e, parent)
	testenv.Kill(t, e.Tmux.AwaitWindow("scout-").PID)
	e.Model.Await(t, "the news of the end", gone)
	e.Tmux.AwaitNoWindow("scout-")
	_ = parent
}
