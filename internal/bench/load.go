package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"pi-cradle/internal/testenv"
)

const idleFor = time.Minute

// idle is what the helper of a parent with ten running delegates needs while nothing happens.
func idle(t testenv.T, _ int) []row {
	e := testenv.New(t, testenv.Options{})
	e.Scout()
	e.WriteJSON(e.AgentDir+"/squire/settings.json", map[string]any{"maxConcurrentDelegates": 10})
	parent := e.Start(testenv.PiOptions{})
	for i := range 10 {
		task := fmt.Sprintf("idle %d", i)
		parent.Submit("/delegate scout " + task + "\nHOLD for-ever")
		e.Model.Await(t, task, func(r testenv.Request) bool { return r.Model == "child" && r.Said("user", task) })
	}
	helpers := parent.Helpers()
	if len(helpers) != 1 {
		t.Fatalf("the parent has helpers %v", helpers)
	}
	before := usage(t, helpers[0])
	time.Sleep(idleFor) // the span that is measured
	after := usage(t, helpers[0])
	return []row{
		{what: "helper: CPU in a minute with ten running delegates", unit: "ms", ours: []float64{after.cpu - before.cpu}},
		{what: "helper: memory then", unit: "MB", ours: []float64{after.rss}},
	}
}

const streamed, typed = 4000, 200

// stream is what a streamed word and a keystroke cost pi, with and without our extension.
func stream(t testenv.T, n int) []row {
	bare, ours := testenv.New(t, testenv.Options{Bare: true}), testenv.New(t, testenv.Options{})
	ours.Scout()
	word := row{what: "pi: CPU of a streamed word, beside bare pi", unit: "µs"}
	key := row{what: "pi: CPU of a keystroke, beside bare pi", unit: "µs"}
	helper := row{what: "helper: CPU meanwhile, in all", unit: "ms"}
	with, without := ours.Start(testenv.PiOptions{}), bare.Start(testenv.PiOptions{})
	for i := range n + 1 {
		floor := streamOnce(t, without, i)
		before := usage(t, with.Helpers()[0])
		sample := streamOnce(t, with, i)
		after := usage(t, with.Helpers()[0])
		if i == 0 {
			continue
		}
		word.floor, key.floor = append(word.floor, floor.word), append(key.floor, floor.key)
		word.ours, key.ours = append(word.ours, sample.word), append(key.ours, sample.key)
		helper.ours = append(helper.ours, after.cpu-before.cpu)
	}
	return []row{word, key, helper}
}

type costs struct{ word, key float64 }

func streamOnce(t testenv.T, p *testenv.Pi, i int) costs {
	text := fmt.Sprintf("stream %d", i)
	before := usage(t, p.PID)
	p.Submit(text + "\nSAY " + strings.Repeat("word ", streamed))
	p.Env.Model.AwaitAnswered(t, text, said(text))
	testenv.Await(t, "the end of the run", func() bool {
		n := 0
		for _, entry := range p.Entries() {
			if entry.Message.Role == "assistant" {
				n++
			}
		}
		return n > i
	})
	between := usage(t, p.PID)
	for range typed / 10 {
		p.Keys("-l", "--", "abcdefghij")
	}
	p.AwaitScreen("what was typed", func(s string) bool {
		return strings.Count(s, "abcdefghij") == typed/10 || strings.Contains(s, strings.Repeat("abcdefghij", 9))
	})
	after := usage(t, p.PID)
	p.Keys("C-u", "C-c")
	return costs{(between.cpu - before.cpu) * 1000 / streamed, (after.cpu - between.cpu) * 1000 / typed}
}

type load struct{ cpu, rss float64 } // ms, MB

// usage reads what a process has used so far. It needs Linux.
func usage(t testenv.T, pid int) load {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatalf("only Linux tells what a process uses: %v", err)
	}
	ns := 0.0
	for _, thread := range threads {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, thread.Name()))
		if err != nil {
			continue // it has ended meanwhile
		}
		used, _, _ := strings.Cut(string(stat), " ")
		v, err := strconv.ParseFloat(used, 64)
		if err != nil {
			t.Fatalf("schedstat: %v", err)
		}
		ns += v
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatalf("%v", err)
	}
	kb := 0.0
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			kb, _ = strconv.ParseFloat(f[1], 64)
		}
	}
	return load{ns / 1e6, kb / 1024}
}
