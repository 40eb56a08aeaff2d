package e2e

import (
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

// dieText is an extension for delegates only: their pi ends while it loads.
const dieText = `export default function () {
	if (process.env.PI_DELEGATE_PARENT) {
		console.error("no use going on");
		process.exit(7);
	}
}
`

func TestDelegateDiesAtOnce(t *testing.T) {
	t.Parallel()
	e := testenv.New(t, testenv.Options{})
	e.Scout()
	e.Write(e.AgentDir+"/extensions/die.ts", dieText)
	parent := e.Start(testenv.PiOptions{})
	parent.Submit("/delegate scout --label doomed look")
	endedWithout(t, e, parent, "scout-doomed", "exit status 7", "no use going on")
}

func TestDelegateIsKilled(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	parent.Submit("/delegate scout --label victim the task\nHOLD for-ever")
	e.Model.Await(t, "the task", child("the task"))
	window := e.Tmux.AwaitWindow("scout-victim")
	awaitScreen(t, e, window.Pane, "the task")
	testenv.Kill(t, testenv.Child(t, window.PID))
	endedWithout(t, e, parent, "scout-victim", "SIGKILL", "the task")
}

func TestWindowIsClosedByHand(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	parent.Submit("/delegate scout --label victim the task\nHOLD for-ever")
	e.Model.Await(t, "the task", child("the task"))
	e.Tmux.Run("kill-window", "-t", e.Tmux.AwaitWindow("scout-victim").ID)
	endedWithout(t, e, parent, "scout-victim")
}

// endedWithout asserts that the parent is told once that the delegate has ended, with every one of texts, and that the status
// agrees.
func endedWithout(t *testing.T, e *testenv.Env, parent *testenv.Pi, window string, texts ...string) {
	t.Helper()
	told := e.Model.AwaitAnswered(t, "the news of the end", gone).Last().Text
	for _, text := range append(texts, "[delegate]", "scout") {
		if !strings.Contains(told, text) {
			t.Errorf("no %q in\n%s", text, told)
		}
	}
	e.Tmux.AwaitNoWindow(window)
	parent.Submit("what now?\n" + call("delegation_status", map[string]any{}))
	status := e.Model.Await(t, "the status", func(r testenv.Request) bool { return r.Last().Role == "tool" })
	if !strings.Contains(status.Last().Text, "closed without a result") {
		t.Errorf("the status says\n%s", status.Last().Text)
	}
	if n := status.Times("user", "closed without a result"); n != 1 {
		t.Errorf("the model was told %d times", n)
	}
}

func TestTmuxThatCannotBeAskedIsNotClosed(t *testing.T) {
	t.Parallel()
	e := testenv.New(t, testenv.Options{})
	e.Scout()
	broken, asked := e.Root+"/broken", e.Root+"/asked"
	e.FakeTool("tmux", `if [ -e `+broken+` ]; then echo "$@" >>`+asked+`; echo 'server exited unexpectedly' >&2; exit 1; fi
PATH=${PATH#`+e.BinDir+`:}; exec tmux "$@"`)
	parent := e.Start(testenv.PiOptions{})
	parent.Submit("/delegate scout the task\nHOLD work\nSAY the answer")
	e.Model.Await(t, "the task", child("the task"))
	e.Write(broken, "")
	testenv.Await(t, "two questions to the broken tmux", func() bool { return strings.Count(read(asked), "\n") >= 2 })
	parent.Submit("status\n" + call("delegation_status", map[string]any{}))
	status := e.Model.Await(t, "the status", func(r testenv.Request) bool { return r.Last().Role == "tool" })
	if text := status.Last().Text; !strings.Contains(text, "unknown") || strings.Contains(text, "closed") {
		t.Errorf("the status says\n%s", text)
	}
	e.Model.Release("work")
	e.Model.Await(t, "the result", told("the answer"))
	if n := e.Model.Count(gone); n != 0 {
		t.Error("a delegate that could not be looked at was reported as gone")
	}
	exactlyOnce(t, parent, "the answer")
}

func TestProviderErrorIsAFailedResult(t *testing.T) {
	for _, code := range []string{"401", "500"} {
		t.Run(code, func(t *testing.T) {
			e, parent := world(t, testenv.Options{})
			parent.Submit("/delegate scout the task\nSTATUS " + code)
			got := e.Model.AwaitAnswered(t, "the failure", told("Status: failed")).Last().Text
			if !strings.Contains(got, "scripted "+code) {
				t.Errorf("no reason in\n%s", got)
			}
			e.Tmux.AwaitNoWindow("scout-")
			exactlyOnce(t, parent, "Status: failed")
		})
	}
}

func TestEscapeInTheDelegateHoldsTheTask(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	held(t, e, parent)
	window := e.Tmux.AwaitWindow("scout-")
	e.Tmux.Keys(window.Pane, "Escape")
	e.Model.AwaitAborted(t, "the stopped run", child("the task"))
	e.Model.Release("work") // the conversation still has the directive
	awaitScreen(t, e, window.Pane, "auto-exit off")

	e.Model.FailNext(child("this fails"), testenv.Response{Status: 400, Text: "scripted 400"})
	e.Tmux.Paste(window.Pane, "this fails")
	e.Tmux.Keys(window.Pane, "Enter")
	e.Model.AwaitAnswered(t, "the failing run", child("this fails"))
	awaitScreen(t, e, window.Pane, "scripted 400")
	e.Tmux.Paste(window.Pane, "carry on\nSAY finished by hand")
	e.Tmux.Keys(window.Pane, "Enter")
	got := e.Model.AwaitAnswered(t, "the result", told("finished by hand")).Last().Text
	if !strings.Contains(got, "\nStatus: done\n") {
		t.Errorf("the result reads\n%s", got)
	}
	body := got[strings.LastIndex(got, "Delegate session:"):]
	if !strings.Contains(body, "took over") {
		t.Errorf("nothing says that the user took over:\n%s", body)
	}
	if len(e.Tmux.Named("scout-")) != 1 {
		t.Error("the window that the user took over is gone")
	}
	exactlyOnce(t, parent, "finished by hand")
}

func TestTypingInTheDelegateTurnsAutoExitOff(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	parent.Submit("/delegate scout the task\nHOLD work\nSAY the answer")
	e.Model.Await(t, "the task", child("the task"))
	window := e.Tmux.AwaitWindow("scout-")
	awaitScreen(t, e, window.Pane, "auto-exit on")
	e.Tmux.Paste(window.Pane, "also this")
	e.Tmux.Keys(window.Pane, "Enter")
	awaitScreen(t, e, window.Pane, "auto-exit off")
	e.Model.Release("work")
	e.Model.Await(t, "the typed message", child("also this"))
	e.Model.AwaitAnswered(t, "the result", func(r testenv.Request) bool { return r.Model == "parent" && r.Said("user", result) })
	if len(e.Tmux.Named("scout-")) != 1 {
		t.Error("the window in which the user typed is gone")
	}
	exactlyOnce(t, parent, "Status: done")
}

func TestNoAutoExitKeepsTheWindow(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	parent.Submit("/delegate scout --no-auto-exit the task\nSAY the answer")
	e.Model.AwaitAnswered(t, "the result", told("the answer"))
	window := e.Tmux.AwaitWindow("scout-")
	awaitScreen(t, e, window.Pane, "auto-exit off")
	e.Tmux.Paste(window.Pane, "/auto-exit")
	e.Tmux.Keys(window.Pane, "Enter")
	awaitScreen(t, e, window.Pane, "auto-exit on")
	exactlyOnce(t, parent, "the answer")
}

func awaitScreen(t *testing.T, e *testenv.Env, pane, text string) {
	t.Helper()
	testenv.Await(t, text+" on the screen of the delegate", func() bool { return strings.Contains(e.Tmux.Screen(pane), text) })
}
