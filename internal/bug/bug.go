// Package bug reports broken invariants. A helper that serves a live pi session must not die for one, and a test must.
package bug

import (
	"fmt"
	"log"
	"runtime"
	"testing"
)

// Reportf records a broken invariant with the place that found it. It panics inside a test binary and logs elsewhere.
func Reportf(format string, args ...any) {
	where := "unknown place"
	if _, file, line, ok := runtime.Caller(1); ok {
		where = fmt.Sprintf("%s:%d", file, line)
	}
	text := fmt.Sprintf("bug at %s: %s", where, fmt.Sprintf(format, args...))
	if testing.Testing() {
		panic(text)
	}
	log.Print(text)
}
