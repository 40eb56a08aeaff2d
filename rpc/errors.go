package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/sourcegraph/jsonrpc2"

	"pi-cradle/internal/usererr"
	"pi-cradle/rpc/wire"
)

// Error is an error answer with a code of the wire, JSON-RPC's own or one of wire's Code constants. Handlers return one to choose
// the code; Call returns one for every error answer but CodeRefused, which is a *usererr.Error on both sides.
type Error struct {
	Code    int64
	Message string
	Data    json.RawMessage // nil for none
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an Error without data.
func Errorf(code int64, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// HasCode reports whether err is, or wraps, an Error with this code.
func HasCode(err error, code int64) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// ErrClosed says that the connection ended before an answer came, or had ended already.
var ErrClosed = errors.New("connection is closed")

func errTooLarge(size int) *Error {
	return Errorf(wire.CodeTooLarge, "a message of %d bytes is over the limit of %d: pass what is large as a file", size, wire.MaxFrame)
}

// toWire and fromWire are the one place where errors meet the wire.
func toWire(err error) *jsonrpc2.Error {
	var user *usererr.Error
	if errors.As(err, &user) {
		out := &jsonrpc2.Error{Code: wire.CodeRefused, Message: err.Error()}
		out.SetError(filled(wire.RefusedData{Hints: user.Hints}))
		return out
	}
	out := &jsonrpc2.Error{Code: jsonrpc2.CodeInternalError, Message: err.Error()}
	var e *Error
	if errors.As(err, &e) {
		out.Code = e.Code
		if e.Data != nil {
			out.Data = &e.Data
		}
	}
	return out
}

func fromWire(err error) error {
	var e *jsonrpc2.Error
	switch {
	case errors.Is(err, jsonrpc2.ErrClosed):
		return ErrClosed
	case !errors.As(err, &e):
		return err
	}
	out := &Error{Code: e.Code, Message: e.Message}
	if e.Data != nil {
		out.Data = *e.Data
	}
	if e.Code != wire.CodeRefused {
		return out
	}
	var data wire.RefusedData
	if out.Data != nil && json.Unmarshal(out.Data, &data) != nil {
		return out
	}
	return &usererr.Error{Message: e.Message, Hints: data.Hints}
}

// boundedLog keeps a peer that writes nonsense from filling the log.
type boundedLog struct {
	printf func(format string, args ...any)
	lines  atomic.Int32
}

const maxLogLines = 100

// Printf makes it a jsonrpc2.Logger too.
func (l *boundedLog) Printf(format string, args ...any) {
	switch n := l.lines.Add(1); {
	case n < maxLogLines:
		l.printf("rpc: "+format, args...)
	case n == maxLogLines:
		l.printf("rpc: no more of this is logged for this connection")
	default:
		l.lines.Store(maxLogLines) // never wraps around
	}
}
