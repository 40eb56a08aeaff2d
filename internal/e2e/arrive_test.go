package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

// held starts a delegate whose answer waits for Release("work").
func held(t *testing.T, e *testenv.Env, parent *testenv.Pi) {
	t.Helper()
	parent.Submit("/delegate scout the task\nHOLD work\nSAY the answer")
	e.Model.Await(t, "the task", child("the task"))
}

// arrive lets the answer go and returns when the parent's side has it, whether or not it shows it.
func arrive(t *testing.T, e *testenv.Env, parent *testenv.Pi) {
	t.Helper()
	before := claimed(e, parent)
	e.Model.Release("work")
	testenv.Await(t, "the parent's taking of the answer", func() bool { return claimed(e, parent) > before })
}

func TestArrivesWhileAToolRuns(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	held(t, e, parent)
	tool, open := blockingTool(t, e)
	parent.Submit("busy\n" + tool)
	parent.AwaitText("until [")
	arrive(t, e, parent)
	open()
	r := e.Model.Await(t, "the result", told("the answer"))
	if !r.Said("tool", "tool-finished") {
		t.Error("the result came before the tool had ended")
	}
	exactlyOnce(t, parent, "the answer")
}

func TestArrivesWhileTextStreams(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	held(t, e, parent)
	parent.Submit("talk\nPAUSE talk\nSAY once upon a time")
	e.Model.Await(t, "the prompt", prompt("talk"))
	parent.AwaitScreen("the first word", func(s string) bool { return strings.Contains(s, "\n once") })
	arrive(t, e, parent)
	e.Model.Release("talk")
	r := e.Model.Await(t, "the result", told("the answer"))
	if !r.Said("assistant", "once upon a time") {
		t.Error("the text that streamed when the result came is lost")
	}
	exactlyOnce(t, parent, "the answer")
}

func TestArrivesWhileADialogIsOpen(t *testing.T) {
	t.Parallel()
	e := testenv.New(t, testenv.Options{})
	e.Scout()
	parent := e.Start(testenv.PiOptions{Args: []string{"-e", filepath.Join(testenv.Repo(), "internal/e2e/testdata/ask.ts")}})
	held(t, e, parent)
	parent.Submit("/ask")
	parent.AwaitText("Which one?")
	arrive(t, e, parent)
	e.Model.Await(t, "the result", told("the answer"))
	parent.AwaitText("Which one?")
	parent.Keys("Down", "Enter")
	parent.AwaitText("picked second")
	exactlyOnce(t, parent, "the answer")
}

func TestEscapeWhileAResultWaits(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	held(t, e, parent)
	tool, _ := blockingTool(t, e)
	parent.Submit("busy\n" + tool)
	parent.AwaitText("until [")
	arrive(t, e, parent)
	e.Tmux.AwaitNoWindow("scout-")
	parent.Keys("Escape")
	testenv.Await(t, "the stop", func() bool {
		for _, entry := range parent.Entries() {
			if entry.Message.Role == "toolResult" {
				return true
			}
		}
		return false
	})
	exactlyOnce(t, parent, "the answer")
	parent.Kill()
	exactlyOnce(t, parent.Reopen(), "the answer")
}

func TestReloadWhileADelegateRuns(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	held(t, e, parent)
	before := parent.Helpers()
	parent.Submit("/reload")
	parent.AwaitText("Reloaded")
	e.Model.Release("work")
	e.Model.Await(t, "the result", told("the answer"))
	exactlyOnce(t, parent, "the answer")
	if now := parent.Helpers(); len(now) != 1 {
		t.Errorf("helpers before the reload %v, after it %v", before, now)
	}
}

func TestNewSessionWhileADelegateRuns(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	parent.Submit("remember me\nSAY remembered")
	parent.AwaitAnswer("remembered")
	held(t, e, parent)
	parent.Submit("/new")
	parent.AwaitText("New session started")
	e.Model.Release("work")
	e.Tmux.AwaitNoWindow("scout-")
	parent.Submit("other things\nSAY fine")
	if r := e.Model.AwaitAnswered(t, "the new session's prompt", prompt("other things")); r.Said("user", result) {
		t.Error("the new session was told another session's result")
	}
	parent.Quit()
	again := parent.Reopen()
	r := e.Model.Await(t, "the result in the old session", told("the answer"))
	if !r.Said("user", "remember me") {
		t.Error("the result came in another session")
	}
	exactlyOnce(t, again, "the answer")
}
