package testenv

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Output is what a finished program left behind.
type Output struct {
	Stdout, Stderr string
	Code           int
}

// Print runs pi in print mode, in a pane's environment, to its end.
func (e *Env) Print(args ...string) Output {
	e.T.Helper()
	_, file := e.NewSession(e.Work)
	return e.Exec("node", append([]string{e.Pi.CLI, "-p", "--session-dir", e.Sessions, "--session", file}, args...)...)
}

// Exec runs a program of e's PATH to its end, with an empty standard input.
func (e *Env) Exec(name string, args ...string) Output {
	e.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, e.lookPath(name), args...)
	cmd.Dir, cmd.Env = e.Work, e.Environ()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		e.T.Fatalf("%s did not end within %v\n%s%s", name, Patience, &stdout, &stderr)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		e.T.Fatalf("%s: %v", name, err)
	}
	return Output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// lookPath finds a program on e's PATH rather than on that of the tests.
func (e *Env) lookPath(name string) string {
	e.T.Helper()
	for dir := range strings.SplitSeq(e.environ["PATH"], ":") {
		if path, err := exec.LookPath(dir + "/" + name); err == nil {
			return path
		}
	}
	e.T.Fatalf("%s is not on PATH", name)
	return ""
}

// RPC is a real pi in RPC mode.
type RPC struct {
	Env     *Env
	Session string
	File    string
	stdin   io.WriteCloser
	cmd     *exec.Cmd
	ended   chan struct{}

	mu     sync.Mutex
	events []Event
	noise  []string // lines of stdout that are no JSON
	stderr bytes.Buffer
	next   int
}

// Event is a line that pi wrote.
type Event struct {
	Type, ID, Command, Method string
	Success                   bool
	Error                     string
	Raw                       json.RawMessage
}

// StartRPC starts pi in RPC mode, in a pane's environment, and waits until it answers. It ends with the test.
func (e *Env) StartRPC(args ...string) *RPC {
	e.T.Helper()
	id, file := e.NewSession(e.Work)
	r := &RPC{Env: e, Session: id, File: file, ended: make(chan struct{})}
	r.cmd = exec.Command(e.lookPath("node"), append([]string{e.Pi.CLI, "--mode", "rpc", "--session-dir", e.Sessions, "--session", file}, args...)...)
	r.cmd.Dir, r.cmd.Env = e.Work, e.Environ()
	stdin, err := r.cmd.StdinPipe()
	if err != nil {
		e.T.Fatalf("%v", err)
	}
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		e.T.Fatalf("%v", err)
	}
	r.stdin, r.cmd.Stderr = stdin, lockedWriter{&r.mu, &r.stderr}
	if err := r.cmd.Start(); err != nil {
		e.T.Fatalf("%v", err)
	}
	go r.read(stdout)
	e.T.Cleanup(func() { r.Close() })
	r.Call(map[string]any{"type": "get_state"})
	return r
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (r *RPC) read(stdout io.Reader) {
	defer close(r.ended)
	for lines := bufio.NewReader(stdout); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		event := Event{Raw: bytes.TrimSpace(line)}
		bad := json.Unmarshal(line, &event) != nil
		r.mu.Lock()
		if bad {
			r.noise = append(r.noise, string(line))
		} else {
			r.events = append(r.events, event)
		}
		r.mu.Unlock()
	}
}

// Call sends a command and returns its response.
func (r *RPC) Call(command map[string]any) Event {
	r.Env.T.Helper()
	r.mu.Lock()
	r.next++
	id := "t" + strconv.Itoa(r.next)
	r.mu.Unlock()
	command["id"] = id
	r.Send(command)
	return r.Await("the response to "+quote(id), func(ev Event) bool { return ev.Type == "response" && ev.ID == id })
}

// Send writes a line without waiting for anything.
func (r *RPC) Send(v any) {
	r.Env.T.Helper()
	line, err := json.Marshal(v)
	if err != nil {
		r.Env.T.Fatalf("%v", err)
	}
	if _, err := r.stdin.Write(append(line, '\n')); err != nil {
		r.Env.T.Fatalf("pi does not read any more: %v\n%s", err, r.Stderr())
	}
}

// Await returns the first event, past or to come, that matches.
func (r *RPC) Await(what string, match func(Event) bool) Event {
	r.Env.T.Helper()
	var found Event
	ok := eventually(Patience, func() bool {
		for _, ev := range r.Events() {
			if match(ev) {
				found = ev
				return true
			}
		}
		return false
	})
	if !ok {
		r.Env.T.Fatalf("waited %v for %s\n%s", Patience, what, r.Stderr())
	}
	return found
}

// Events returns what pi has written so far.
func (r *RPC) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Event(nil), r.events...)
}

// Noise returns the lines of stdout that are not JSON: there must be none.
func (r *RPC) Noise() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.noise...)
}

// Stderr is what pi has written there so far.
func (r *RPC) Stderr() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stderr.String()
}

// PID is pi's process id.
func (r *RPC) PID() int { return r.cmd.Process.Pid }

// Close ends pi by ending its standard input, and returns its exit code.
func (r *RPC) Close() int {
	r.Env.T.Helper()
	_ = r.stdin.Close() // closing it twice does no harm
	select {
	case <-r.ended:
	case <-time.After(Patience):
		r.Env.T.Errorf("pi did not end with its standard input")
		_ = r.cmd.Process.Kill()
	}
	_ = r.cmd.Wait() // how it ended is in the state
	return r.cmd.ProcessState.ExitCode()
}
