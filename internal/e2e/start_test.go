package e2e

import (
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

func TestByCommand(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	focus := e.Tmux.Focus()
	parent.Submit("/delegate scout --label first Which files define the entry point?\nHOLD work\nSAY helper/main.go")
	work := e.Model.Await(t, "the task", child("Which files define the entry point?"))
	if !work.Said("user", "[delegate]") || !work.Said("system", "Answer briefly.") || !strings.Contains(work.System(), parent.Session) {
		t.Errorf("the delegate's first request: %+v", work)
	}
	if n := e.Model.Count(func(r testenv.Request) bool { return r.Model == "parent" }); n != 0 {
		t.Errorf("starting a delegate made %d requests of the parent", n)
	}
	for _, entry := range parent.Entries() {
		if entry.Type == "message" && entry.Message.Role != "system" || entry.Type == "custom_message" {
			t.Errorf("starting a delegate added to the conversation: %s", entry.Text())
		}
	}
	if dir := e.Tmux.AwaitWindow("scout-first").Dir; dir != e.Work {
		t.Errorf("the window is in %s, not %s", dir, e.Work)
	}
	if now := e.Tmux.Focus(); now != focus {
		t.Errorf("the focus went from %s to %s", focus, now)
	}

	e.Model.Release("work")
	got := e.Model.AwaitAnswered(t, "the result", told("helper/main.go")).Last().Text
	for _, line := range []string{"(" + testenv.ChildModel + "), delegation ", "\nStatus: done\n", "\n> Which files define the entry point?\n", "\nWorking directory: " + e.Work + "\n", "\nEnvelope: " + e.MailRoot, "\nDelegate session: " + e.Sessions} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
	if !strings.HasPrefix(got, result) || !strings.HasSuffix(strings.TrimSpace(got), "\n\nhelper/main.go") {
		t.Errorf("the result reads\n%s", got)
	}
	e.Tmux.AwaitNoWindow("scout-")
	if now := e.Tmux.Focus(); now != focus {
		t.Errorf("the focus went from %s to %s", focus, now)
	}
	exactlyOnce(t, parent, "helper/main.go")
	parent.AwaitText("✓ scout-first")
}

func TestByTool(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	parent.Submit("please look\n" + delegate("look around\nSAY seen it") + "\nTHEN\nSAY waiting for the scout")
	started := e.Model.Await(t, "the tool's answer", func(r testenv.Request) bool { return r.Model == "parent" && r.Last().Role == "tool" })
	if strings.Contains(started.Last().Text, "look around") {
		t.Errorf("the tool's answer repeats the task: %s", started.Last().Text)
	}
	e.Model.Await(t, "the task", child("look around"))
	e.Model.AwaitAnswered(t, "the result", told("seen it"))
	e.Tmux.AwaitNoWindow("scout-")
	exactlyOnce(t, parent, "seen it")
}

func TestThreeInOneMessage(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	focus := e.Tmux.Focus()
	parent.Submit("three\n" + delegate("task one\nHOLD all\nSAY answer one") + "\n" + delegate("task two\nHOLD all\nSAY answer two") + "\n" + delegate("task three\nHOLD all\nSAY answer three"))
	for _, n := range []string{"one", "two", "three"} {
		e.Model.Await(t, "task "+n, child("task "+n))
	}
	if windows := e.Tmux.Named("scout-"); len(windows) != 3 {
		t.Errorf("%d windows: %+v", len(windows), windows)
	}
	if now := e.Tmux.Focus(); now != focus {
		t.Errorf("the focus went from %s to %s", focus, now)
	}
	e.Model.Release("all")
	e.Tmux.AwaitNoWindow("scout-")
	for _, n := range []string{"one", "two", "three"} {
		e.Model.Await(t, "answer "+n, told("answer "+n))
	}
	for _, n := range []string{"one", "two", "three"} {
		exactlyOnce(t, parent, "answer "+n)
	}
}

func TestStatusAndClose(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	parent.Submit("go\n" + delegate("never ends\nHOLD for-ever") + "\nTHEN\n" + call("delegation_status", map[string]any{}))
	status := e.Model.Await(t, "the status", func(r testenv.Request) bool { return r.Said("tool", "state: running") })
	id, _, _ := strings.Cut(after(status.Last().Text, "1 delegation:\n\n"), " ")
	window := e.Tmux.AwaitWindow("scout-")
	if !strings.Contains(status.Last().Text, "window: "+window.Name+" ("+window.ID+")") {
		t.Errorf("no window %s in\n%s", window.Name, status.Last().Text)
	}
	e.Model.Await(t, "the task", child("never ends"))
	parent.Submit("enough\n" + call("delegation_close", map[string]any{"id": id}) + "\nTHEN\n" + call("delegation_status", map[string]any{}))
	e.Tmux.AwaitNoWindow("scout-")
	e.Model.Await(t, "the status afterwards", func(r testenv.Request) bool {
		return r.Last().Role == "tool" && strings.Contains(r.Last().Text, "state: closed")
	})
	if n := e.Model.Count(gone); n != 0 {
		t.Error("a delegation that was closed on request was reported as gone")
	}
}

func TestOldestPi(t *testing.T) {
	e, parent := world(t, testenv.Options{Pi: testenv.Oldest(t)})
	parent.Submit("/delegate scout look\nSAY the oldest answers")
	e.Model.AwaitAnswered(t, "the result", told("the oldest answers"))
	e.Tmux.AwaitNoWindow("scout-")
	parent.Submit("again\n" + delegate("look\nSAY by tool"))
	e.Model.AwaitAnswered(t, "the result", told("by tool"))
	e.Tmux.AwaitNoWindow("scout-")
	exactlyOnce(t, parent, "the oldest answers")
}

// after is what follows mark in text.
func after(text, mark string) string {
	_, rest, _ := strings.Cut(text, mark)
	return rest
}
