package testenv

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Pi is a real pi in its terminal interface, in a window of e's tmux server.
type Pi struct {
	Env     *Env
	Pane    string
	Window  string
	PID     int
	Session string // session id
	File    string // session file
	options PiOptions
}

// PiOptions shape a start of pi.
type PiOptions struct {
	Args       []string          // more arguments
	Dir        string            // working directory; empty: Env.Work
	Environ    map[string]string // besides the Env's; an empty value unsets
	Session    *Pi               // reopen this one's session
	Background bool              // do not make its window the active one
	Unready    bool              // do not wait until it takes keys
}

var sessionCount atomic.Int64

// editor is the border of the input line. pi takes keys when it is there and the terminal's title is set: the border alone comes
// while pi still starts.
var editor = regexp.MustCompile(`(?m)^─{20}`)

// Start opens pi in a new window, which becomes the active one, and waits until it takes keys.
func (e *Env) Start(o PiOptions) *Pi {
	e.T.Helper()
	dir := o.Dir
	if dir == "" {
		dir = e.Work
	}
	p := &Pi{Env: e, options: o}
	if o.Session != nil {
		p.Session, p.File = o.Session.Session, o.Session.File
	} else {
		p.Session, p.File = e.NewSession(dir)
	}
	// The shell changes directory, since tmux would expand formats in it; env sets what the server lacks.
	command := []string{"/bin/sh", "-c", `cd "$1" && shift && exec env "$@"`, "sh", dir}
	command = append(command, o.env(e)...)
	command = append(command, e.lookPath("node"), e.Pi.CLI, "--session-dir", e.Sessions, "--session", p.File)
	command = append(command, o.Args...)
	args := []string{"new-window", "-P", "-F", "#{pane_id} #{window_id} #{pane_pid}", "-n", "pi", "-t", "=main:"}
	if o.Background {
		args = append(args, "-d")
	}
	out := e.Tmux.Run(append(append(args, "--"), command...)...)
	f := strings.Fields(out)
	if len(f) != 3 {
		e.T.Fatalf("tmux new-window printed %q", out)
	}
	p.Pane, p.Window = f[0], f[1]
	p.PID, _ = strconv.Atoi(f[2])
	if !o.Unready {
		p.AwaitScreen("the input line", func(screen string) bool {
			return editor.MatchString(screen) && strings.HasPrefix(e.Tmux.title(p.Pane), "π")
		})
	}
	return p
}

// env is the arguments for env(1).
func (o PiOptions) env(e *Env) []string {
	var args []string
	for key, value := range o.Environ {
		if value == "" {
			args = append(args, "-u", key)
		}
	}
	args = append(args, flatten(e.environ)...)
	for key, value := range o.Environ {
		if value != "" {
			args = append(args, key+"="+value)
		}
	}
	return args
}

// NewSession makes a session file with only its header, as pi resumes it: path, id and working directory are known beforehand.
func (e *Env) NewSession(dir string) (id, file string) {
	e.T.Helper()
	id = fmt.Sprintf("test-%d-%d", os.Getpid(), sessionCount.Add(1))
	file = filepath.Join(e.Sessions, id+".jsonl")
	header, err := json.Marshal(map[string]any{"type": "session", "version": 3, "id": id, "timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), "cwd": dir})
	if err != nil {
		e.T.Fatalf("%v", err)
	}
	e.Write(file, string(header)+"\n")
	return id, file
}

// Reopen starts pi again on the same session with the same arguments.
func (p *Pi) Reopen() *Pi {
	p.Env.T.Helper()
	o := p.options
	o.Session = p
	return p.Env.Start(o)
}

// Submit pastes text into the input line and presses Enter.
func (p *Pi) Submit(text string) {
	p.Env.T.Helper()
	p.Env.Tmux.Paste(p.Pane, text)
	p.Keys("Enter")
}

// Keys sends keys by their tmux names.
func (p *Pi) Keys(keys ...string) {
	p.Env.T.Helper()
	p.Env.Tmux.Keys(p.Pane, keys...)
}

// Screen is what the user sees.
func (p *Pi) Screen() string { return p.Env.Tmux.Screen(p.Pane) }

// History is everything the user can scroll back to, wrapped lines joined.
func (p *Pi) History() string { return p.Env.Tmux.History(p.Pane) }

// AwaitScreen returns the screen as soon as it matches.
func (p *Pi) AwaitScreen(what string, match func(screen string) bool) string {
	p.Env.T.Helper()
	var screen string
	ok := eventually(Patience, func() bool {
		screen = p.Screen()
		return match(screen)
	})
	if !ok {
		p.Env.T.Fatalf("waited %v for %s on this screen:\n%s", Patience, what, screen)
	}
	return screen
}

// AwaitText waits until text was shown, be it scrolled off by now.
func (p *Pi) AwaitText(text string) {
	p.Env.T.Helper()
	if !eventually(Patience, func() bool { return strings.Contains(p.History(), text) }) {
		p.Env.T.Fatalf("waited %v for %q on this screen:\n%s", Patience, text, p.Screen())
	}
}

// Kill ends pi with SIGKILL: it gets no chance to tidy up.
func (p *Pi) Kill() {
	p.Env.T.Helper()
	Kill(p.Env.T, p.PID)
}

// Quit ends pi as a user does and waits for it.
func (p *Pi) Quit() {
	p.Env.T.Helper()
	p.Submit("/quit")
	Await(p.Env.T, "the end of pi", func() bool { return !Running(p.PID) })
}

// Helpers lists the process ids of this pi's cradle-helper.
func (p *Pi) Helpers() []int { return Below(p.PID, "cradle-helper") }

// Entry is a line of a session file, as far as tests look at it.
type Entry struct {
	Type       string
	CustomType string
	Display    bool
	Content    json.RawMessage // of a custom message
	Details    json.RawMessage
	Message    struct {
		Role       string
		Content    json.RawMessage
		Details    json.RawMessage // of a tool's result
		StopReason string
	}
}

// Text is the text of a message, whichever way it is stored.
func (e Entry) Text() string {
	if len(e.Content) > 0 {
		return contentText(e.Content)
	}
	return contentText(e.Message.Content)
}

// Entries reads the session file.
func (p *Pi) Entries() []Entry { p.Env.T.Helper(); return p.Env.EntriesOf(p.File) }

// AwaitAnswer waits until the session holds an answer of the model with text.
func (p *Pi) AwaitAnswer(text string) {
	p.Env.T.Helper()
	Await(p.Env.T, "the model's answer "+quote(text), func() bool {
		return slices.ContainsFunc(p.Entries(), func(e Entry) bool {
			return e.Message.Role == "assistant" && strings.Contains(e.Text(), text)
		})
	})
}

// EntriesOf reads a session file; a missing one has none.
func (e *Env) EntriesOf(file string) []Entry {
	e.T.Helper()
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		e.T.Fatalf("%v", err)
	}
	defer f.Close()
	var all []Entry
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return all // a last line without its end is still being written
		}
		var entry Entry
		if err := json.Unmarshal(line, &entry); err != nil {
			e.T.Fatalf("%s: %v", file, err)
		}
		all = append(all, entry)
	}
}
