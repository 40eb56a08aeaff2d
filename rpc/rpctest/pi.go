package rpctest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"pi-cradle/rpc"
	"pi-cradle/rpc/wire"
)

// Options says which helper to start, and what pi knows. The zero value starts the test binary with the argument "serve" in an
// empty environment.
type Options struct {
	Path  string                   // the helper; "" is the test binary itself
	Args  []string                 // nil is "serve"
	Dir   string                   // working directory
	Env   []string                 // the whole environment
	Serve func(io.ReadWriteCloser) // in place of a process: serves the stream until it ends

	Models wire.ModelsResult // the registry; those not Available are listed only when all are asked for
	Tools  wire.ToolsResult

	// Run plays every run of the model, on a goroutine of its own: it gets the text that started it and gives the outcome. ctx
	// ends with pi. nil leaves runs to the test, which ends each with Settle.
	Run func(ctx context.Context, text string) wire.RunSettledParams

	// NoRevive leaves a helper that has died alone until it is next needed. Otherwise it is started again at once, as the
	// extension does, when the session waits for answers or tasks.
	NoRevive bool
	// DiesWithHelper makes one death of both: pi does nothing more once its helper has ended.
	DiesWithHelper bool
	// MayDie says that the helper is going to end in ways that are no mistake.
	MayDie bool
}

// Pi is the fake pi. Its methods belong to the test's goroutine, but for those that say otherwise.
type Pi struct {
	t        testing.TB
	options  Options
	label    func(func())
	recorder recorder
	ctx      context.Context // ends with pi
	end      context.CancelFunc
	work     sync.WaitGroup

	connecting sync.Mutex // held while a helper is started

	mu         sync.Mutex
	changed    chan struct{} // closed, and replaced, whenever something below changes
	life       *life         // the helper at hand; nil before the first
	session    *Session
	served     *Session // the session of which some helper of this Pi has been told
	running    bool
	runs       int
	exited     bool
	notices    []wire.NotifyParams
	status     map[string]string
	tools      map[string]string
	claims     wire.Claims
	ends       int
	calls      map[string]int
	dialogs    []wire.DialogResult
	responders map[string]Responder
	listeners  map[string][]func(map[string]any)
	entering   int  // what has entered the conversation and is not answered for yet
	ending     bool // the test is over
}

// life is one helper with its connection.
type life struct {
	*helper
	tap    *tap
	conn   *rpc.Conn
	served *Session // the session that this helper has been told of
	wanted bool     // its end is the test's own doing
	down   string   // why it is not there any more
}

// endLimit is how long a helper may take to end once its input has: two seconds are promised, the rest is for busy machines.
const endLimit = 20 * time.Second

// Start makes a fake pi and starts its helper.
func Start(t testing.TB, o Options) *Pi {
	t.Helper()
	label := labelled(t)
	ctx, end := context.WithCancel(context.Background())
	p := &Pi{
		t: t, options: o, label: label, ctx: ctx, end: end, recorder: recorder{start: time.Now()}, changed: make(chan struct{}),
		status: map[string]string{}, tools: map[string]string{}, calls: map[string]int{},
		responders: map[string]Responder{}, listeners: map[string][]func(map[string]any){},
	}
	t.Cleanup(func() {
		p.change(func() { p.ending = true })
		end()
		p.Close()
		p.work.Wait()
		if t.Failed() {
			t.Logf("what was said:\n%s\nthe helper's last words:\n%s", p.recorder.String(), p.lastWords())
		}
	})
	if _, err := p.connect(); err != nil {
		t.Fatalf("start: %v", err)
	}
	return p
}

// change alters the state and wakes whoever waits for it. Any goroutine may call it.
func (p *Pi) change(fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fn()
	p.changedLocked()
}

func (p *Pi) changedLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Pi) lastWords() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life == nil {
		return "(none was started)"
	}
	return p.life.stderr.String()
}

var errOver = errors.New("pi has ended")

// connect gives a helper that is up and serves the session, after starting one if need be. Any goroutine may call it.
func (p *Pi) connect() (*life, error) {
	p.connecting.Lock()
	defer p.connecting.Unlock()
	p.mu.Lock()
	l, session, ending := p.life, p.session, p.ending
	up := l != nil && l.down == ""
	p.mu.Unlock()
	if up {
		select {
		case <-l.conn.Done():
			up = false
		default:
		}
	}
	if ending || !up && l != nil && p.options.DiesWithHelper {
		return nil, errOver
	}
	if !up {
		var err error
		if l, err = p.launch(); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	untold := session != nil && l.served != session
	p.mu.Unlock()
	if untold {
		if _, err := p.serveSession(l, session); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (p *Pi) launch() (*life, error) {
	l := &life{}
	var err error
	p.label(func() {
		if p.options.Serve != nil {
			l.helper = startFunction(p.options.Serve)
		} else if l.helper, err = startProcess(p.options); err != nil {
			return
		}
		record := func(from string) *splitter {
			return &splitter{line: func(text string) { p.change(func() { p.recorder.add(from, text) }) }}
		}
		l.tap = &tap{ReadWriteCloser: l.stream, in: record("helper"), out: record("pi")}
		l.conn = rpc.NewConn(l.tap, p.hostMux(), p.event)
		p.work.Add(1)
		go p.watch(l)
	})
	if err != nil {
		return nil, err
	}
	var ending bool
	p.change(func() { p.life, ending = l, p.ending })
	if ending {
		// Whoever ends the test has closed the life before this one, and knows of no other.
		p.label(func() { _ = l.tap.Close() })
		return nil, errOver
	}
	ctx, cancel := context.WithTimeout(context.Background(), Deadline)
	defer cancel()
	if _, err := l.conn.Initialize(ctx); err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	return l, nil
}

func (p *Pi) event(format string, args ...any) { p.recorder.add("", fmt.Sprintf(format, args...)) }

// watch sees one helper to its end.
func (p *Pi) watch(l *life) {
	defer p.work.Done()
	<-l.conn.Done()
	err := l.end(endLimit)
	_ = l.conn.Close(context.Background()) // the handlers' contexts have ended
	p.mu.Lock()
	wanted, ending, revive := l.wanted || p.options.MayDie, p.ending, p.revivesLocked()
	p.mu.Unlock()
	if err != nil && !wanted {
		p.t.Error(err)
	}
	how := l.how
	if how == "" {
		how = "exit code 0"
	}
	p.change(func() {
		l.down = how
		p.ends++
		p.recorder.add("", "the helper has ended: "+how)
		if !ending {
			p.notices = append(p.notices, wire.NotifyParams{Level: "error", Text: "squire: the helper has ended: " + how})
		}
		if p.options.DiesWithHelper {
			p.dieLocked()
		}
	})
	if revive && !ending {
		if _, err := p.connect(); err != nil {
			p.event("revive: %v", err)
		}
	}
}

func (p *Pi) revivesLocked() bool {
	return !p.options.NoRevive && !p.options.DiesWithHelper && p.session != nil && (len(p.claims.Requests) > 0 || p.claims.Parent != "")
}

// StartSession opens a session, in place of the one before.
func (p *Pi) StartSession(s *Session) wire.SessionStartResult {
	p.t.Helper()
	result, err := p.TrySession(s)
	if err != nil {
		p.t.Fatalf("session.start: %v", err)
	}
	return result
}

// TrySession is StartSession when it may fail.
func (p *Pi) TrySession(s *Session) (wire.SessionStartResult, error) {
	l, err := p.connect()
	if err != nil {
		return wire.SessionStartResult{}, err
	}
	p.change(func() { p.session, p.served, p.running, p.exited, p.claims = s, nil, false, false, s.claims() })
	return p.serveSession(l, s)
}

func (p *Pi) serveSession(l *life, s *Session) (wire.SessionStartResult, error) {
	var result wire.SessionStartResult
	start := s.Start
	p.mu.Lock()
	start.Again = p.served == s
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), Deadline)
	defer cancel()
	var failed error
	l.conn.CallThen(ctx, wire.SessionStart, start, &result, func(err error) {
		if failed = err; err != nil {
			return
		}
		p.change(func() {
			l.served, p.served = s, s
			p.claims = result.Claims
			for _, update := range result.Tools {
				p.tools[update.Name] = update.Description
			}
		})
	})
	return result, failed
}

// EndSession says goodbye as pi does on /new, /reload or /quit.
func (p *Pi) EndSession(reason string) error {
	err := p.Ask(wire.SessionShutdown, wire.SessionShutdownParams{Reason: reason}, nil)
	p.change(func() {
		p.session, p.served, p.running = nil, nil, false
		if p.life != nil {
			p.life.served = nil
		}
	})
	return err
}

// Ask calls a method of the helper, which is started if it is down. Any goroutine may call it.
func (p *Pi) Ask(method string, params, result any) error {
	l, err := p.connect()
	if err != nil {
		return err
	}
	return p.call(l, method, params, result)
}

// AskUntil is Ask that is given up, and the helper told so, when ctx ends.
func (p *Pi) AskUntil(ctx context.Context, method string, params, result any) error {
	l, err := p.connect()
	if err != nil {
		return err
	}
	return l.conn.Call(ctx, method, params, result)
}

func (p *Pi) call(l *life, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(context.Background(), Deadline)
	defer cancel()
	return l.conn.Call(ctx, method, params, result)
}

// Tell sends the helper a notification. Any goroutine may call it.
func (p *Pi) Tell(method string, params any) error {
	l, err := p.connect()
	if err != nil {
		return err
	}
	return l.conn.Notify(method, params)
}

// Tool calls a tool as the model does. args is anything that JSON can hold.
func (p *Pi) Tool(name string, args any) wire.ToolCallResult {
	p.t.Helper()
	result, err := p.TryTool(name, args)
	if err != nil {
		p.t.Fatalf("tool %s: %v", name, err)
	}
	return result
}

// TryTool is Tool when the call itself may fail. Any goroutine may call it.
func (p *Pi) TryTool(name string, args any) (wire.ToolCallResult, error) {
	var result wire.ToolCallResult
	raw, err := json.Marshal(args)
	if err != nil {
		return result, err
	}
	params := wire.ToolCallParams{Tool: name, CallID: "call-" + name, Params: raw}
	return result, p.Ask(wire.ToolCall, params, &result)
}

// Command runs a slash command.
func (p *Pi) Command(name, args string) error {
	return p.Ask(wire.CommandRun, wire.CommandRunParams{Command: name, Args: args}, nil)
}

// Complete asks for completions of a command's arguments.
func (p *Pi) Complete(name, prefix string) []wire.Completion {
	p.t.Helper()
	var result wire.CommandCompleteResult
	if err := p.Ask(wire.CommandComplete, wire.CommandCompleteParams{Command: name, Prefix: prefix}, &result); err != nil {
		p.t.Fatalf("complete %s %q: %v", name, prefix, err)
	}
	return result.Items
}

// State is what has happened so far. Any goroutine may call it.
func (p *Pi) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := State{
		Notices: slices.Clone(p.notices), Status: maps.Clone(p.status), Tools: maps.Clone(p.tools), Claims: p.claims,
		Ends: p.ends, Calls: maps.Clone(p.calls), Runs: p.runs, Running: p.running, Exited: p.exited, recorder: &p.recorder,
	}
	if p.session != nil {
		s.Messages, s.Prompts = p.session.Messages(), p.session.Prompts()
	}
	if p.life != nil && !p.revivesLocked() {
		s.Down = p.life.down
	}
	return s
}

// Changed is closed at the next change of the state. Take it before looking at State. Any goroutine may call it.
func (p *Pi) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// Await waits until e is met and gives the state that met it. It fails the test when e can't be met any more, or not in time.
func (p *Pi) Await(e Expectation) State {
	p.t.Helper()
	deadline := time.NewTimer(Deadline)
	defer deadline.Stop()
	for {
		changed := p.Changed()
		state := p.State()
		verdict, why := e(state)
		switch verdict {
		case Met:
			return state
		case Unmeetable:
			p.t.Fatalf("this can't happen any more: %s", why)
		}
		select {
		case <-changed:
		case <-deadline.C:
			p.t.Fatalf("waited %v in vain: %s", Deadline, why)
		}
	}
}
