// Demo shows the main job on the real pi: /delegate hands a task to another pi in a tmux window, and its answer comes back as
// one message. Everything is private to it and gone afterwards: home, pi settings, tmux server, and a scripted model on
// loopback in place of a real one.
package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"pi-cradle/internal/testenv"
)

const (
	task   = "Which files define the entry point?"
	answer = "The entry points are helper/main.go and cradle/main.go."
	thanks = "The scout found them: helper/main.go and cradle/main.go."
)

func main() {
	if err := testenv.Run("demo", demo); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

// step is one line of the account.
type step struct {
	at   time.Time
	what string
}

func demo(t testenv.T) {
	e := testenv.New(t, testenv.Options{Width: 100, Height: 30})
	e.Scout()
	e.Model.Script(func(r testenv.Request) (testenv.Response, bool) {
		if "fake/"+r.Model == testenv.ChildModel {
			return testenv.Response{Text: answer}, true
		}
		return testenv.Response{Text: thanks}, true
	})
	fmt.Printf("pi %s in tmux, 100x30, with a scripted model on loopback\n", e.Pi.Version)
	parent := e.Start(testenv.PiOptions{})
	focus := e.Tmux.Focus()

	typed := time.Now()
	parent.Submit("/delegate scout " + task)
	window := e.Tmux.AwaitWindow("scout-")
	opened := time.Now()
	asked := e.Model.AwaitAnswered(t, "the delegate's task", func(r testenv.Request) bool { return r.Said("user", task) && r.Model == "child" })
	told := e.Model.AwaitAnswered(t, "the result", func(r testenv.Request) bool {
		return r.Model == "parent" && r.Said("user", "[delegate] Result from scout")
	})
	parent.AwaitAnswer(thanks)
	screen := parent.AwaitScreen("the parent's last answer", func(s string) bool { return strings.Contains(s, thanks) })
	e.Tmux.AwaitNoWindow("scout-")
	closed := time.Now()

	result := told.Last().Text
	if n := told.Times("user", "[delegate] Result from"); n != 1 {
		t.Fatalf("the parent was told %d results instead of one", n)
	}
	if !strings.Contains(result, "Status: done") || !strings.Contains(result, answer) {
		t.Fatalf("the result is not the delegate's answer:\n%s", result)
	}
	if now := e.Tmux.Focus(); now != focus {
		t.Fatalf("the active window changed from %s to %s", focus, now)
	}

	fmt.Printf("\nThe parent's screen at the end:\n\n%s\n\n", box(screen, 100))
	fmt.Printf("What its model was told:\n\n%s\n\nWhat happened, in milliseconds from Enter:\n\n", indent(result))
	for _, s := range []step{
		{typed, "typed /delegate scout " + task},
		{opened, "window " + window.Name + " was there; the active window stayed the same"},
		{asked.At, "the delegate's model got the task"},
		{asked.Answered(), "the delegate's model had answered"},
		{told.At, "the parent's model got the result, as one [delegate] message"},
		{told.Answered(), "the parent's model had answered"},
		{closed, "the delegate's window had closed itself"},
	} {
		fmt.Printf("%7.0f  %s\n", float64(s.at.Sub(typed).Microseconds())/1000, s.what)
	}
}

func box(screen string, width int) string {
	rule := "+" + strings.Repeat("-", width) + "+"
	var b strings.Builder
	b.WriteString(rule + "\n")
	for line := range strings.Lines(screen) {
		line = strings.TrimRight(line, "\n")
		b.WriteString("|" + line + "\n")
	}
	return b.String() + rule
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
