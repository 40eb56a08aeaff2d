// Package rpc is the connection between the extension and the helper: JSON-RPC 2.0, one JSON object per line, calls in both
// directions.
//
// The rules, for whoever writes a handler:
//
//   - The reader never runs a handler. Ordered methods and notifications run one after another in the order in which they were
//     sent; concurrent ones run at once. A handler may call the peer and wait for the answer.
//   - Answers wake their callers at once, whatever is queued. What must keep its place among the ordered messages is done with
//     CallThen.
//   - wire.Cancel overtakes everything: it ends the context of the call it names, queued or running. That call is answered with
//     CodeCancelled, unless it had a result nevertheless. Call sends it when its own context ends.
//   - When the stream ends, everything ends: waiting calls return ErrClosed, the contexts of running handlers end, and what is
//     queued is dropped.
//   - Writing never blocks. A peer that does not read costs memory up to a limit, then the connection.
//   - What is unknown is answered (a method) or ignored (a field, a notification), never fatal.
package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/sourcegraph/jsonrpc2"

	"pi-cradle/internal/bug"
	"pi-cradle/internal/version"
	"pi-cradle/rpc/wire"
)

// Conn is one connection. All its methods may be called from any goroutine.
type Conn struct {
	mux    *Mux
	stream *stream
	log    *boundedLog
	peer   *jsonrpc2.Conn
	lastID atomic.Uint64 // of calls to the peer

	// ctx is what handlers get theirs from; end is called once the connection is down.
	ctx context.Context
	end context.CancelFunc

	initialized bool // the peer said the right version; the reader's own

	// report tells of a handler that panicked. Tests of just that replace it.
	report func(format string, args ...any)

	mu      sync.Mutex // guards what follows
	inbound map[jsonrpc2.ID]context.CancelCauseFunc
	turns   map[jsonrpc2.ID]func() // what the answer to a CallThen puts into the queue
	queue   []func()               // ordered work; unbounded, because a reader that waits for room can't see a cancel
	working bool                   // a goroutine is at work on the queue
	running int                    // handlers that run
	idle    chan struct{}          // closed, and replaced, when running comes down to 0
}

// errPeerCancelled is the cause of a handler's context that the peer's cancel ended.
var errPeerCancelled = fmt.Errorf("the caller cancelled: %w", context.Canceled)

// NewConn starts a connection over rwc, which it owns and closes. logf takes what is worth knowing and nobody's error, such as
// lines that are no messages; the number and length of such lines is bounded.
func NewConn(rwc io.ReadWriteCloser, mux *Mux, logf func(format string, args ...any)) *Conn {
	log := &boundedLog{printf: logf}
	ctx, end := context.WithCancel(context.Background())
	c := &Conn{
		ctx:     ctx,
		end:     end,
		mux:     mux,
		stream:  newStream(rwc, log),
		log:     log,
		report:  bug.Reportf,
		inbound: map[jsonrpc2.ID]context.CancelCauseFunc{},
		turns:   map[jsonrpc2.ID]func(){},
		idle:    make(chan struct{}),
	}
	c.peer = jsonrpc2.NewConn(ctx, c.stream, handlerFunc(c.receive), jsonrpc2.SetLogger(log), jsonrpc2.OnRecv(c.answered))
	close(c.stream.ready)
	go c.watch()
	return c
}

type handlerFunc func(*jsonrpc2.Request)

func (f handlerFunc) Handle(_ context.Context, _ *jsonrpc2.Conn, req *jsonrpc2.Request) { f(req) }

// watch ends the connection when the peer can't be written to, and the handlers when the connection ends.
func (c *Conn) watch() {
	select {
	case <-c.stream.out.failed:
		c.log.Printf("the other side can't be written to or doesn't read")
		c.disconnect()
	case <-c.Done():
		c.end()
	}
}

// Done is closed when the connection has ended, for whatever reason.
func (c *Conn) Done() <-chan struct{} { return c.peer.DisconnectNotify() }

// Close lets out what is already queued for the peer, ends the connection, and waits for the handlers, whose contexts have
// ended. The end of ctx cuts the waiting short and is returned as an error; the connection is closed in any case.
func (c *Conn) Close(ctx context.Context) error {
	c.stream.out.close(errFinished)
	select {
	case <-c.stream.out.drained:
	case <-c.Done():
	case <-ctx.Done():
	}
	c.disconnect()
	c.mu.Lock()
	running, idle := c.running, c.idle
	c.mu.Unlock()
	if running == 0 {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d handlers still run after the connection has ended: %w", running, ctx.Err())
	}
}

func (c *Conn) disconnect() {
	if err := c.peer.Close(); err != nil && !errors.Is(err, jsonrpc2.ErrClosed) {
		c.log.Printf("close: %v", err)
	}
	c.end()
}

// Call asks the peer and waits. result is a pointer, or nil to drop the answer. An error answer is a *usererr.Error (see
// wire.CodeRefused) or an *Error. When ctx ends first, the peer is told and ctx.Err() returned; when the connection ends first,
// ErrClosed.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	return c.call(ctx, jsonrpc2.ID{Num: c.lastID.Add(1)}, method, params, result)
}

// CallThen is Call, and runs then with what Call would have returned before it returns itself. When the peer has answered, that
// happens in the connection's order: after the ordered handlers of everything that the peer sent before its answer, and before
// those of everything that it sent after. So then must not wait for either, just like an ordered handler.
func (c *Conn) CallThen(ctx context.Context, method string, params, result any, then func(error)) {
	id := jsonrpc2.ID{Num: c.lastID.Add(1)}
	turn, over := make(chan struct{}), make(chan struct{})
	c.mu.Lock()
	c.turns[id] = func() {
		close(turn)
		<-over
	}
	c.mu.Unlock()
	defer close(over)
	err := c.call(ctx, id, method, params, result)
	c.mu.Lock()
	_, unanswered := c.turns[id]
	delete(c.turns, id)
	c.mu.Unlock()
	if !unanswered {
		select {
		case <-turn:
		case <-ctx.Done():
		case <-c.Done():
		}
	}
	then(err)
}

// answered runs on the reader, for each message, before the call that it answers is woken.
func (c *Conn) answered(_ *jsonrpc2.Request, resp *jsonrpc2.Response) {
	if resp == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if turn := c.turns[resp.ID]; turn != nil {
		delete(c.turns, resp.ID)
		c.enqueueLocked(turn)
	}
}

func (c *Conn) call(ctx context.Context, id jsonrpc2.ID, method string, params, result any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	call, err := c.peer.DispatchCall(ctx, method, filled(params), jsonrpc2.PickID(id))
	if err != nil {
		return fromWire(err)
	}
	err = call.Wait(ctx, result)
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return fromWire(err)
	}
	raw, err := id.MarshalJSON()
	if err == nil {
		err = c.Notify(wire.Cancel, wire.CancelParams{ID: raw})
	}
	if err != nil && !errors.Is(err, ErrClosed) {
		c.log.Printf("cancel %s %s: %v", method, id, err)
	}
	return ctx.Err()
}

// Notify tells the peer something. It returns as soon as the message is queued.
func (c *Conn) Notify(method string, params any) error {
	return fromWire(c.peer.Notify(context.Background(), method, filled(params)))
}

// Initialize opens the connection from the caller's side: both must be of this very version.
func (c *Conn) Initialize(ctx context.Context) (wire.InitializeResult, error) {
	var result wire.InitializeResult
	err := c.Call(ctx, wire.Initialize, wire.InitializeParams{Version: version.Version}, &result)
	if err == nil && result.Version != version.Version {
		err = errVersion(version.Version, result.Version, result.Binary)
	}
	return result, err
}

func errVersion(extension, helper, binary string) *Error {
	return Errorf(wire.CodeVersion, "the extension is version %q and the helper %q is version %q", extension, binary, helper)
}

// receive runs on the reader: it must not block and runs nobody's code.
func (c *Conn) receive(req *jsonrpc2.Request) {
	params := c.stream.params
	if req.Method == wire.Cancel {
		c.cancel(params)
		return
	}
	if c.mux.gate != "" && (req.Method == wire.Initialize || !c.initialized) {
		c.answerFirst(req, params)
		return
	}
	m, ok := c.mux.methods[req.Method]
	if !ok {
		c.refuse(req, Errorf(jsonrpc2.CodeMethodNotFound, "unknown method %q", req.Method))
		return
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	work := func() { c.handle(ctx, cancel, m, req, params) }
	c.mu.Lock()
	defer c.mu.Unlock()
	if !req.Notif {
		if _, twice := c.inbound[req.ID]; twice {
			cancel(nil)
			c.log.Printf("skipped %s: a call with id %s is still open", req.Method, req.ID)
			return
		}
		c.inbound[req.ID] = cancel
	}
	if m.ordered {
		c.enqueueLocked(work)
	} else {
		go work()
	}
}

func (c *Conn) enqueueLocked(work func()) {
	if c.working {
		c.queue = append(c.queue, work)
		return
	}
	c.working = true
	go c.work(work)
}

// work runs first and then what the queue holds, to its end.
func (c *Conn) work(first func()) {
	for next := first; next != nil; {
		next()
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.working, c.queue, next = false, nil, nil
		} else {
			next, c.queue[0], c.queue = c.queue[0], nil, c.queue[1:]
		}
		c.mu.Unlock()
	}
}

// answerFirst is the handshake: initialize, or anything that came before it.
func (c *Conn) answerFirst(req *jsonrpc2.Request, raw json.RawMessage) {
	var params wire.InitializeParams
	switch err := json.Unmarshal(raw, &params); {
	case req.Method != wire.Initialize:
		c.refuse(req, Errorf(jsonrpc2.CodeInvalidRequest, "%q came before %q", req.Method, wire.Initialize))
	case err != nil:
		c.refuse(req, Errorf(jsonrpc2.CodeInvalidParams, "invalid params: %v", err))
	case params.Version != version.Version:
		c.refuse(req, errVersion(params.Version, version.Version, c.mux.gate))
	default:
		c.initialized = true
		c.answer(req, wire.InitializeResult{Version: version.Version, Binary: c.mux.gate}, nil)
	}
}

func (c *Conn) cancel(raw json.RawMessage) {
	var params wire.CancelParams
	var id jsonrpc2.ID
	err := json.Unmarshal(raw, &params)
	if err == nil {
		err = json.Unmarshal(params.ID, &id)
	}
	if err != nil {
		c.log.Printf("skipped a cancel: %v", err)
		return
	}
	c.mu.Lock()
	cancel := c.inbound[id]
	c.mu.Unlock()
	if cancel != nil { // else it is answered already
		cancel(errPeerCancelled)
	}
}

// handle runs one handler and answers for it. What was cancelled while it was queued doesn't run, nor does anything after the end
// of the connection.
func (c *Conn) handle(ctx context.Context, cancel context.CancelCauseFunc, m method, req *jsonrpc2.Request, params json.RawMessage) {
	defer cancel(nil)
	var result any
	var panicked string
	err := c.enter(ctx)
	if err == nil {
		defer c.leave()
		result, panicked, err = protect(ctx, m, params)
	}
	if !req.Notif {
		c.mu.Lock()
		delete(c.inbound, req.ID)
		c.mu.Unlock()
	}
	if err != nil && errors.Is(context.Cause(ctx), errPeerCancelled) {
		err = &Error{Code: wire.CodeCancelled, Message: "cancelled"}
	}
	c.answer(req, result, err)
	if panicked != "" {
		c.report("%s: %s", req.Method, panicked)
	}
}

func protect(ctx context.Context, m method, params json.RawMessage) (result any, panicked string, err error) {
	defer func() {
		if r := recover(); r != nil {
			panicked = fmt.Sprintf("panic: %v\n%s", r, debug.Stack())
			err = Errorf(jsonrpc2.CodeInternalError, "internal error: %v", r)
		}
	}()
	result, err = m.call(ctx, params)
	return result, "", err
}

// enter counts a handler as running unless its context has ended. Close ends the contexts before it looks at the count, so none
// can start behind its back.
func (c *Conn) enter(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.running++
	return nil
}

func (c *Conn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running--; c.running == 0 {
		close(c.idle)
		c.idle = make(chan struct{})
	}
}

func (c *Conn) refuse(req *jsonrpc2.Request, err error) {
	if req.Notif {
		c.log.Printf("skipped a notification: %v", err)
		return
	}
	c.answer(req, nil, err)
}

// answer sends the one answer of a request; a notification has none.
func (c *Conn) answer(req *jsonrpc2.Request, result any, err error) {
	if req.Notif {
		if err != nil && !errors.Is(err, context.Canceled) {
			c.log.Printf("%s: %v", req.Method, err)
		}
		return
	}
	ctx := context.Background() // jsonrpc2 doesn't use it
	if err == nil {
		sent := func() {}
		if a, ok := result.(Answer); ok {
			result, sent = a.Result, a.Sent
		}
		if err = c.peer.Reply(ctx, req.ID, filled(result)); err == nil {
			sent()
			return
		}
	}
	if err = c.peer.ReplyWithError(ctx, req.ID, toWire(err)); err != nil && !errors.Is(err, jsonrpc2.ErrClosed) {
		c.log.Printf("%s can't be answered: %v", req.Method, err)
	}
}
