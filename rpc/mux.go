package rpc

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sourcegraph/jsonrpc2"

	"pi-cradle/internal/bug"
)

// Mux says which function handles which method. It is filled before the first connection uses it and not changed afterwards; one
// Mux may serve many connections.
type Mux struct {
	methods map[string]method
	gate    string // the binary's path when callers must initialize first
}

type method struct {
	ordered bool
	call    func(ctx context.Context, params json.RawMessage) (any, error)
}

// NewMux makes an empty one, which answers every call with "unknown method".
func NewMux() *Mux { return &Mux{methods: map[string]method{}} }

// RequireInitialize makes connections answer wire.Initialize themselves and refuse everything before it. binary is this
// program's own path, which the text of a version mismatch names.
func (m *Mux) RequireInitialize(binary string) { m.gate = binary }

// Ordered registers a method whose calls run one after another, together with all other ordered methods and notifications of the
// connection, in the order in which the peer sent them. One that takes long holds up the rest: such a method is Concurrent.
func Ordered[P, R any](m *Mux, name string, fn func(context.Context, P) (R, error)) {
	m.add(name, true, typed(fn))
}

// Concurrent registers a method whose calls each run at once, on a goroutine of their own.
func Concurrent[P, R any](m *Mux, name string, fn func(context.Context, P) (R, error)) {
	m.add(name, false, typed(fn))
}

// Notification registers an ordered method without an answer.
func Notification[P any](m *Mux, name string, fn func(context.Context, P)) {
	m.add(name, true, typed(func(ctx context.Context, params P) (struct{}, error) {
		fn(ctx, params)
		return struct{}{}, nil
	}))
}

// Answer is a result for a handler that has something to do once the answer is on its way and ahead of whatever it says next.
type Answer struct {
	Result any
	Sent   func() // not called after an error
}

func (m *Mux) add(name string, ordered bool, call func(context.Context, json.RawMessage) (any, error)) {
	if _, twice := m.methods[name]; twice {
		bug.Reportf("method %q is registered twice", name)
	}
	m.methods[name] = method{ordered: ordered, call: call}
}

func typed[P, R any](fn func(context.Context, P) (R, error)) func(context.Context, json.RawMessage) (any, error) {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var params P
		if err := json.Unmarshal(raw, &params); err != nil {
			return nil, &Error{Code: jsonrpc2.CodeInvalidParams, Message: fmt.Sprintf("invalid params: %v", err)}
		}
		return fn(ctx, params)
	}
}
