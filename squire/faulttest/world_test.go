package faulttest

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pi-cradle/rpc/rpctest"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/records"
	"pi-cradle/squire/session"
	"pi-cradle/squire/tmux/tmuxtest"
)

const (
	task   = "find the entry point; it is called #{pane_id}"
	answer = "the entry point is main.go"

	goneText = "closed without a result"
)

// noRaceWait makes a race-enabled program end at once, and not after a second.
const noRaceWait = "GORACE=atexit_sleep_ms=0"

// world is a home of its own with a tmux server, an agent, and a parent session.
type world struct {
	t        *testing.T
	dir      string
	agentDir string
	parent   *rpctest.Session
	env      []string
	inTmux   []string
	arrivals chan arrival
}

func newWorld(t *testing.T) *world {
	server := tmuxtest.Start(t, "s", "")
	dir := t.TempDir()
	w := &world{t: t, dir: dir, agentDir: filepath.Join(dir, "agent"), arrivals: make(chan arrival, 10)}
	cwd := filepath.Join(dir, "work")
	for _, folder := range []string{cwd, filepath.Join(w.agentDir, "agents")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	agent := "---\ndescription: looks around\nauto-exit: true\n---\nLook around.\n"
	if err := os.WriteFile(filepath.Join(w.agentDir, "agents", "scout.md"), []byte(agent), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(server.Dir, "panes"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go w.accept(listener)
	w.parent = rpctest.NewSession(w.agentDir, cwd)
	w.parent.Start.PiCommand = []string{os.Args[0], "pane", listener.Addr().String()}
	w.env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", noRaceWait}
	w.inTmux = []string{"TMUX=" + server.Getenv("TMUX"), "TMUX_PANE=" + server.Getenv("TMUX_PANE")}
	return w
}

func (w *world) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		// Kept, for a connection that nobody holds is closed at some time, and ends the pane.
		w.t.Cleanup(func() { conn.Close() })
		a := arrival{conn: conn}
		if json.NewDecoder(conn).Decode(&a) == nil {
			w.arrivals <- a
		}
	}
}

// options are those of a pi whose runs all end well with the same words.
func (w *world) options(env []string, reply string) rpctest.Options {
	return rpctest.Options{
		Env: append(append([]string{}, w.env...), env...), MayDie: true,
		Models: wire.ModelsResult{
			Models:  []wire.Model{{Provider: "test", ID: "model", Name: "Model", Available: true, Thinking: []string{"off"}}},
			Current: &wire.ModelRef{Provider: "test", ID: "model"}, Thinking: "off",
		},
		Run: func(context.Context, string) wire.RunSettledParams { return rpctest.Done(reply) },
	}
}

// record is the parent's own, as it is on disk.
func (w *world) record() []*session.Delegation {
	w.t.Helper()
	children, _, err := records.In(w.agentDir).Load(w.parent.ID())
	if err != nil {
		w.t.Fatal(err)
	}
	return children.Delegations
}

// waiting is how many envelopes lie unread in a mailbox.
func (w *world) waiting(address string) int {
	entries, _ := os.ReadDir(filepath.Join(w.dir, ".local", "state", "pi-session-mail", address, "new"))
	return len(entries)
}

// victim says which helper dies, at which step, and whether its pi dies as well.
type victim struct {
	mail     string // "hooks": both sides have a provider; "embedded"
	delegate bool   // the delegate's helper, not the parent's
	step     string
	pi       bool
}

// play is one delegation with all that is needed to see how it ends.
type play struct {
	*world
	victim victim
	marker string

	pi     *rpctest.Pi // the parent's
	mail   *provider   // the parent's, if any
	strays []string    // tasks and answers that earlier providers showed as ordinary mail
	tool   chan error  // how the call ended; nil for a result that says "started"
	failed error       // what the parent's model was told at once
	called bool        // the call has ended
	piDied bool

	child     *rpctest.Session
	childPi   *rpctest.Pi
	childMail *provider
	pane      net.Conn
	paneEnded bool
}

// start begins a delegation. The victim's first life is armed.
func start(w *world, v victim) *play {
	if err := os.MkdirAll(filepath.Join(w.agentDir, "squire"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	settings := []byte(`{"mail":"` + v.mail + `"}`)
	if err := os.WriteFile(filepath.Join(w.agentDir, "squire", "settings.json"), settings, 0o600); err != nil {
		w.t.Fatal(err)
	}
	p := &play{world: w, victim: v, marker: filepath.Join(w.dir, "died"), tool: make(chan error, 1)}
	p.startParent()
	pi := p.pi
	go func() {
		result, err := pi.TryTool("delegate", map[string]any{"agent": "scout", "task": task})
		if err == nil && result.IsError {
			err = errorText(result.Text)
		}
		p.tool <- err
	}()
	return p
}

type errorText string

func (e errorText) Error() string { return string(e) }

func (p *play) startParent() {
	env := p.inTmux
	if !p.victim.delegate {
		env = append(append([]string{}, env...), p.fault()...)
	}
	options := p.options(env, "noted")
	options.DiesWithHelper = p.victim.pi && !p.victim.delegate
	p.pi = rpctest.Start(p.t, options)
	if p.victim.mail == "hooks" {
		p.strays = append(p.strays, p.mail.strays()...)
		p.mail = p.provide(p.pi, p.parent.ID())
	}
	if _, err := p.pi.TrySession(p.parent); err != nil {
		p.t.Logf("the parent's session.start: %v", err) // its helper may have died in it
	}
}

func (p *play) fault() []string {
	if p.victim.step == "" {
		return []string{logVar + "=" + filepath.Join(p.dir, "steps")}
	}
	return []string{dieVar + "=" + p.victim.step, oneVar + "=" + p.marker}
}

func (p *play) startDelegate(a arrival) {
	p.t.Helper()
	if p.child != nil {
		p.t.Fatalf("a second delegate was started: %s after %s", a.ID, p.child.ID())
	}
	p.child, p.pane = rpctest.OpenSession(p.agentDir, a.Cwd, a.ID), a.conn
	p.child.Start.SessionFile = a.File
	var env []string
	if p.victim.delegate {
		env = p.fault()
	}
	options := p.options(env, answer)
	options.DiesWithHelper = p.victim.delegate && p.victim.pi
	p.childPi = rpctest.Start(p.t, options)
	if p.victim.mail == "hooks" {
		p.childMail = p.provide(p.childPi, a.ID)
	}
	if _, err := p.childPi.TrySession(p.child); err != nil {
		p.t.Logf("the delegate's session.start: %v", err) // its helper may have died in it
	}
}

// finish plays until nothing is left open: the delegation's end is recorded and processed, no mail waits, the pane is gone.
func (p *play) finish() {
	p.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond) // for what happens in files
	defer tick.Stop()
	limit := time.After(rpctest.Deadline)
	for {
		parentChanged, delegateChanged := p.pi.Changed(), make(<-chan struct{})
		if p.childPi != nil {
			delegateChanged = p.childPi.Changed()
		}
		p.mourn()
		open := p.open()
		if open == "" {
			return
		}
		select {
		case a := <-p.arrivals:
			p.startDelegate(a)
		case p.failed = <-p.tool:
			p.called = true
		case <-parentChanged:
		case <-delegateChanged:
		case <-tick.C:
			p.deliver()
		case <-limit:
			p.t.Fatalf("still open: %s\nrecord: %s", open, p.describe())
		}
	}
}

// deliver is what a provider does about new mail.
func (p *play) deliver() {
	if p.mail != nil {
		p.mail.claim()
	}
	if p.childMail != nil && !p.paneEnded {
		p.childMail.claim()
	}
}

// mourn does what pi does about a death.
func (p *play) mourn() {
	if p.victim.pi && !p.victim.delegate && !p.piDied && p.pi.State().Ends > 0 {
		p.piDied = true
		p.startParent()
	}
	if p.called && p.failed != nil && p.pi.State().Down != "" {
		p.pi.Restart() // the user or the model goes on in that session
	}
	if p.childPi == nil || p.paneEnded {
		return
	}
	switch s := p.childPi.State(); {
	case s.Exited:
		p.endPane(0)
		_ = p.childPi.EndSession("quit")
		p.childPi.Die(false)
	case p.victim.pi && p.victim.delegate && s.Ends > 0:
		p.endPane(137)
	case s.Down != "":
		p.childPi.Restart()
	}
}

func (p *play) endPane(code byte) {
	p.paneEnded = true
	_, _ = p.pane.Write([]byte{code})
	p.pane.Close()
}

// open says what is still to come, or "".
func (p *play) open() string {
	if !p.called {
		return "the tool call"
	}
	list := p.record()
	if len(list) == 0 && p.failed == nil {
		return "a record of what was said to be started"
	}
	for _, d := range list {
		told := false
		for _, o := range []*session.Outcome{d.Result, d.Gone} {
			if o != nil && o.Delivery != session.Processed {
				return "an outcome that is " + string(o.Delivery)
			}
			told = told || o != nil
		}
		if !told {
			return "the outcome of a delegation that is " + string(d.Phase)
		}
	}
	if p.waiting(p.parent.ID()) > 0 {
		return "mail"
	}
	if p.child != nil && !p.paneEnded {
		return "the delegate's pane"
	}
	return ""
}

func (p *play) describe() string {
	data, err := json.MarshalIndent(p.record(), "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// check holds the end against the promise.
func (p *play) check() {
	p.t.Helper()
	answers, gone := p.parent.Count(answer), p.parent.Count(goneText)
	prompts := 0
	if p.child != nil {
		for _, prompt := range p.child.Prompts() {
			if strings.Contains(prompt, task) {
				prompts++
			}
		}
	}
	list := p.record()
	strays := append(append(p.strays, p.mail.strays()...), p.childMail.strays()...)
	switch {
	case len(strays) > 0:
		p.t.Errorf("shown as ordinary mail: %s", strays)
	case answers+gone > 1:
		p.t.Errorf("told %d times of an answer and %d times of none", answers, gone)
	case answers+gone == 0 && p.failed == nil:
		p.t.Error("the parent was told nothing")
	case answers+gone == 0 && (len(list) > 0 || p.child != nil):
		p.t.Errorf("the call failed (%v), there is a delegation, and the parent was told nothing of it", p.failed)
	case prompts > 1:
		p.t.Errorf("the delegate was given its task %d times", prompts)
	case answers == 0 && prompts == 1 && !(p.victim.delegate && p.victim.pi):
		p.t.Errorf("the delegate worked for nothing: %s", p.describe())
	}
	if p.t.Failed() {
		p.t.Logf("the call ended with: %v\nrecord: %s", p.failed, p.describe())
	}
}
