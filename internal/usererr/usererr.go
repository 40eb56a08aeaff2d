// Package usererr is the one shape of an error that a person reads.
//
// The voice, everywhere: what happened, in lower case, without a full stop, with the offending value in quotes; then hints,
// each of them something the reader can do or type. Behaviour never hangs on the text: callers that decide use errors.As on
// their own types, and wrap or embed these only to speak.
package usererr

import (
	"errors"
	"fmt"
	"strings"
)

// Error is a refusal or failure meant for the user. Hints may be empty.
type Error struct {
	Message string
	Hints   []string
	Code    int // exit code; 0 means the default, 1
	cause   error
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause, so that errors.Is sees through the wording.
func (e *Error) Unwrap() error { return e.cause }

// New makes an error from a format. A %w in it is kept as the cause.
func New(format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Message: err.Error(), cause: errors.Unwrap(err)}
}

// Hint adds one thing the reader can do and returns the same error.
func (e *Error) Hint(format string, args ...any) *Error {
	e.Hints = append(e.Hints, fmt.Sprintf(format, args...))
	return e
}

// Exit sets the exit code and returns the same error.
func (e *Error) Exit(code int) *Error {
	e.Code = code
	return e
}

// Text renders any error as a first line and one line per hint, each hint led by hintPrefix.
func Text(err error, hintPrefix string) string {
	var user *Error
	if !errors.As(err, &user) {
		return err.Error()
	}
	lines := make([]string, 0, 1+len(user.Hints))
	lines = append(lines, err.Error())
	for _, h := range user.Hints {
		lines = append(lines, hintPrefix+h)
	}
	return strings.Join(lines, "\n")
}

// ExitCode is the process exit code for err: 0 for nil, the error's own code, else 1.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	var user *Error
	if errors.As(err, &user) && user.Code != 0 {
		return user.Code
	}
	return 1
}
