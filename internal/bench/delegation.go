package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"pi-cradle/internal/testenv"
)

// delegation follows one delegation after another from the model's call to its result, each step beside its floor.
func delegation(t testenv.T, n int) []row {
	ours := testenv.New(t, testenv.Options{})
	ours.Scout()
	bare := testenv.New(t, testenv.Options{Bare: true})
	parent := ours.Start(testenv.PiOptions{})
	poked := bare.Start(testenv.PiOptions{Args: []string{"-e", filepath.Join(testenv.Repo(), "internal/bench/testdata/poke.ts")}})
	oursSeen, bareSeen := watchWindows(ours), watchWindows(bare)

	window := row{what: "delegate call to window, beside tmux new-window", unit: "ms"}
	first := row{what: "delegate call to the delegate's first request, beside pi in a new window", unit: "ms"}
	answer := row{what: "delegate call to its answer to the model", unit: "ms"}
	result := row{what: "delegate's last byte to the parent's request, beside an idle custom message", unit: "ms"}
	closed := row{what: "delegate's last byte to its window closed", unit: "ms"}
	for i := range n + 1 {
		d := delegateOnce(ours, parent, oursSeen, i)
		b := bareOnce(bare, bareSeen, i)
		poke := pokeOnce(bare, poked, i)
		if i == 0 {
			continue
		}
		window.ours = append(window.ours, ms(d.called, d.window))
		window.floor = append(window.floor, b.plainWindow)
		first.ours = append(first.ours, ms(d.called, d.asked))
		first.floor = append(first.floor, b.toRequest)
		answer.ours = append(answer.ours, ms(d.called, d.returned))
		result.ours = append(result.ours, ms(d.answered, d.told))
		result.floor = append(result.floor, poke)
		closed.ours = append(closed.ours, ms(d.answered, d.closed))
	}
	return []row{window, first, answer, result, closed}
}

type delegated struct{ called, window, returned, asked, answered, told, closed time.Time }

func delegateOnce(e *testenv.Env, parent *testenv.Pi, seen *windows, i int) delegated {
	task := fmt.Sprintf("task number %d", i)
	args, err := json.Marshal(map[string]string{"agent": "scout", "task": task + "\nSAY answer " + strconv.Itoa(i)})
	if err != nil {
		e.T.Fatalf("%v", err)
	}
	begin := fmt.Sprintf("begin %d", i)
	seen.drain()
	parent.Submit(begin + "\nCALL delegate " + string(args))
	var d delegated
	d.window = seen.next("add")
	d.called = e.Model.AwaitAnswered(e.T, begin, said(begin)).Answered()
	d.returned = e.Model.Await(e.T, "the tool's result", func(r testenv.Request) bool {
		return r.Last().Role == "tool" && r.At.After(d.called) && r.Model == "parent"
	}).At
	asked := e.Model.AwaitAnswered(e.T, task, func(r testenv.Request) bool { return r.Model == "child" && r.Said("user", task) })
	d.asked, d.answered = asked.At, asked.Answered()
	d.closed = seen.next("close")
	d.told = e.Model.AwaitAnswered(e.T, "the result", func(r testenv.Request) bool {
		return r.Model == "parent" && strings.Contains(r.Last().Text, "answer "+strconv.Itoa(i)) && strings.Contains(r.Last().Text, "[delegate]")
	}).At
	return d
}

type floors struct{ plainWindow, toRequest float64 }

func bareOnce(e *testenv.Env, seen *windows, i int) floors {
	seen.drain()
	begin := time.Now()
	e.Tmux.Run("new-window", "-d", "-t", "=main:", "-n", "plain", "--", "env", "cat")
	f := floors{plainWindow: ms(begin, seen.next("add"))}
	e.Tmux.Run("kill-window", "-t", "=main:plain")

	_, file := e.NewSession(e.Work)
	text := fmt.Sprintf("bare %d", i)
	begin = time.Now()
	e.Tmux.Run("new-window", "-d", "-t", "=main:", "-n", "bare", "--", "node", e.Pi.CLI, "--session-dir", e.Sessions, "--session", file, "--", text)
	f.toRequest = ms(begin, e.Model.AwaitAnswered(e.T, text, said(text)).At)
	e.Tmux.Run("kill-window", "-t", "=main:bare")
	return f
}

func pokeOnce(e *testenv.Env, pi *testenv.Pi, i int) float64 {
	file := filepath.Join(e.Root, fmt.Sprintf("poke-%d", i))
	pi.Submit("/poke " + file)
	at := e.Model.AwaitAnswered(e.T, file, said("poke "+file)).At
	var sent float64
	testenv.Await(e.T, "the time of the poke", func() bool {
		data, err := os.ReadFile(file)
		if err == nil {
			sent, err = strconv.ParseFloat(string(data), 64)
		}
		return err == nil
	})
	return float64(at.UnixMicro())/1000 - sent
}
