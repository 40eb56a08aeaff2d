package main

import (
	"fmt"
	"syscall"
	"time"

	"pi-cradle/internal/testenv"
)

// death is how long it takes until the parent's model is told that a delegate ended without an answer.
func death(t testenv.T, n int) []row {
	killed := row{what: "delegate killed to the parent's model told", unit: "ms"}
	e := testenv.New(t, testenv.Options{})
	e.Scout()
	parent := e.Start(testenv.PiOptions{})
	for i := range n + 1 {
		task := fmt.Sprintf("victim %d", i)
		parent.Submit("/delegate scout " + task + "\nHOLD for-ever")
		e.Model.Await(t, task, func(r testenv.Request) bool { return r.Model == "child" && r.Said("user", task) })
		pi := testenv.Child(t, e.Tmux.AwaitWindow("scout-").PID)
		at := time.Now()
		if err := syscall.Kill(pi, syscall.SIGKILL); err != nil {
			t.Fatalf("%v", err)
		}
		if d := ms(at, told(e, i+1)); i > 0 {
			killed.ours = append(killed.ours, d)
		}
		e.Tmux.AwaitNoWindow("scout-")
	}

	stillborn := row{what: "delegate's pi exits while it starts: its exit to the parent's model told", unit: "ms"}
	e = testenv.New(t, testenv.Options{})
	e.Scout()
	e.Write(e.AgentDir+"/extensions/die.ts", "export default function () { if (process.env.PI_DELEGATE_PARENT) process.exit(7); }\n")
	parent = e.Start(testenv.PiOptions{})
	seen := watchWindows(e)
	for i := range n + 1 {
		seen.drain()
		parent.Submit(fmt.Sprintf("/delegate scout stillborn %d", i))
		at := seen.next("close")
		if d := ms(at, told(e, i+1)); i > 0 {
			stillborn.ours = append(stillborn.ours, d)
		}
	}
	return []row{killed, stillborn}
}

// told returns when the parent's model was told of the nth end without a result.
func told(e *testenv.Env, nth int) time.Time {
	return e.Model.AwaitAnswered(e.T, "the news of the end", func(r testenv.Request) bool {
		return r.Model == "parent" && r.Times("user", "closed without a result") == nth
	}).At
}
