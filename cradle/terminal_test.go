package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"pi-cradle/cradle/state"
	"pi-cradle/internal/testenv"
)

var inputLine = regexp.MustCompile(`(?m)^─{20}`)

// The terminal is pi's: cradle must not stand between them. A shell with job control starts cradle, and pi is stopped,
// continued, resized and interrupted by keys, as if cradle were not there.
func TestTerminalIsThePis(t *testing.T) {
	e := testenv.New(t, testenv.Options{Bare: true})
	if err := link(e.BinDir, "cradle"); err != nil {
		t.Fatal(err)
	}
	e.Setenv("GORACE", os.Getenv("GORACE"))
	e.Setenv(state.RootEnv, e.Dir("cradle-state"))
	agent := agentCopy(t, "hello", e.Root, e.Model.URL())
	args := []string{"new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "=main:", "-c", e.Work, "--", "env"}
	args = append(args, e.Environ()...)
	pane := e.Tmux.Run(append(args, "PS1=shell$ ", "bash", "--norc", "--noprofile", "-i")...)

	screen := func(what string, match func(string) bool) string {
		t.Helper()
		var text string
		testenv.Await(t, what, func() bool { text = e.Tmux.Screen(pane); return match(text) })
		return text
	}
	has := func(text string) func(string) bool {
		return func(screen string) bool { return strings.Contains(screen, text) }
	}
	typed := func(text string) {
		t.Helper()
		e.Tmux.Run("send-keys", "-t", pane, "-l", text)
		e.Tmux.Keys(pane, "Enter")
	}
	screen("the shell", has("shell$"))
	typed("cradle run ./none; NO_COLOR=1 cradle run ./none; cradle run ./none 2>&1 | cat")
	screen("three errors", func(s string) bool { return strings.Count(s, "Agent folder not found") == 3 })
	if n := strings.Count(e.Tmux.Colours(pane), "\x1b[31mAgent folder not found"); n != 1 {
		t.Errorf("%d errors are red, the one for a terminal must be", n)
	}
	typed("stty -a >before; cradle run " + agent)
	// pi draws itself before it takes all keys; its title comes after.
	testenv.Await(t, "pi", func() bool {
		return strings.HasPrefix(e.Tmux.Run("display-message", "-p", "-t", pane, "#{pane_title}"), "π")
	})

	if !strings.Contains(e.Tmux.Colours(pane), "\x1b[33mwarning: ") {
		t.Errorf("the warning is not yellow:\n%q", e.Tmux.Colours(pane))
	}

	e.Tmux.Keys(pane, "C-z")
	screen("the shell after Ctrl-Z", func(s string) bool { return strings.Contains(s, "Stopped") && atPrompt(s) })
	typed("fg")
	// Not before pi has cleared what the shell wrote: input that the shell takes for its own, pi never gets.
	screen("pi after fg", func(s string) bool { return !strings.Contains(s, "Stopped") && inputLine.MatchString(s) })

	e.Tmux.Paste(pane, "hello there\nSAY good day")
	screen("the prompt", has("SAY good day"))
	e.Tmux.Keys(pane, "Enter")
	e.Model.AwaitAnswered(t, "the prompt", func(r testenv.Request) bool { return r.Said("user", "hello there") })

	e.Tmux.Run("resize-window", "-t", pane, "-x", "64", "-y", "20")
	screen("pi at its new width", func(s string) bool {
		for line := range strings.Lines(s) {
			if line = strings.TrimRight(line, "\n"); strings.Trim(line, "─") == "" && len([]rune(line)) == 64 {
				return true
			}
		}
		return false
	})

	e.Tmux.Run("send-keys", "-t", pane, "-l", "half a thought")
	screen("typed text", has("half a thought"))
	e.Tmux.Keys(pane, "C-c") // a key to pi, which clears its input
	screen("cleared input", func(s string) bool { return !strings.Contains(s, "half a thought") && inputLine.MatchString(s) })
	e.Tmux.Keys(pane, "C-d")
	screen("the shell at the end", atPrompt)
	typed("echo code $?; stty -a >after; echo done")
	if text := screen("the exit code", func(s string) bool { return strings.Contains(s, "\ndone\n") }); !strings.Contains(text, "code 0") {
		t.Errorf("no exit code 0:\n%s", text)
	}
	before, after := e.Exec("cat", "before"), e.Exec("cat", "after")
	if size := regexp.MustCompile(`rows \d+; columns \d+;`); size.ReplaceAllString(before.Stdout, "") != size.ReplaceAllString(after.Stdout, "") {
		t.Errorf("the terminal is not as it was:\n%s\n%s", before.Stdout, after.Stdout)
	}
}

// atPrompt says whether the shell waits for a command.
func atPrompt(screen string) bool {
	return strings.HasSuffix(strings.TrimRight(screen, " \n"), "shell$")
}

// Somebody who watches is told what takes so long.
func TestWaitingIsExplained(t *testing.T) {
	e := testenv.New(t, testenv.Options{Bare: true})
	w := newWorldIn(t, e.Dir("world"), map[string]string{"agent/settings.json": `{"packages":["npm:a"]}`}, "pi", "npm")
	pipe := filepath.Join(w.root, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func() (pane string) {
		args := append([]string{"new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "=main:", "--", "env", "FAKE_NPM_HOLD=" + pipe}, w.env...)
		return e.Tmux.Run(append(args, "sh", "-c", `"$@"; echo code $?; exec cat`, "sh", w.bin+"/cradle", "run", w.agent, "--no-sandbox")...)
	}
	shows := func(pane, text string) {
		t.Helper()
		testenv.Await(t, text, func() bool { return strings.Contains(e.Tmux.Screen(pane), text) })
	}
	first := run()
	shows(first, "installing a@latest")
	second := run()
	shows(second, "waiting for another run of this agent to finish its setup")
	if _, err := os.ReadFile(pipe); err != nil {
		t.Fatal(err)
	}
	shows(first, "code 0")
	shows(second, "code 0")
	if text := e.Tmux.Screen(second); strings.Contains(text, "installing") {
		t.Errorf("installed twice:\n%s", text)
	}
}
