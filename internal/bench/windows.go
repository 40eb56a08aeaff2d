package main

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"time"

	"pi-cradle/internal/testenv"
)

// windows tells when windows come and go, by a control-mode client.
type windows struct {
	t      testenv.T
	events chan windowEvent
}

type windowEvent struct {
	at   time.Time
	line string
}

func watchWindows(e *testenv.Env) *windows {
	w := &windows{t: e.T, events: make(chan windowEvent, 1000)}
	cmd := exec.Command("tmux", "-S", e.Tmux.Socket, "-C", "attach-session", "-t", "=main", "-f", "no-output")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		e.T.Fatalf("%v", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		e.T.Fatalf("%v", err)
	}
	if err := cmd.Start(); err != nil {
		e.T.Fatalf("%v", err)
	}
	go w.read(stdout)
	e.T.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	return w
}

// read ends with the client.
func (w *windows) read(stdout io.Reader) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, "%window-") || strings.HasPrefix(line, "%unlinked-window-") {
			w.events <- windowEvent{time.Now(), line}
		}
	}
}

// next returns when the next window was opened ("add") or closed ("close"), whatever else happens before.
func (w *windows) next(what string) time.Time {
	deadline := time.After(testenv.Patience)
	for {
		select {
		case ev := <-w.events:
			if verb, _, _ := strings.Cut(ev.line, " "); strings.HasSuffix(verb, "-"+what) {
				return ev.at
			}
		case <-deadline:
			w.t.Fatalf("no window was seen to %s", what)
		}
	}
}

// drain forgets what has happened so far.
func (w *windows) drain() {
	for {
		select {
		case <-w.events:
		default:
			return
		}
	}
}
