package rpctest

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var lastLabel atomic.Int64

const labelKey = "rpctest"

// labelled gives a way to run functions such that every goroutine they start, directly or not, can be told from those of other
// tests, and checks at the end of the test that none is left.
func labelled(t testing.TB) func(func()) {
	label := fmt.Sprint(lastLabel.Add(1))
	t.Cleanup(func() {
		var left string
		for limit := time.Now().Add(Deadline); time.Now().Before(limit); {
			if left = goroutinesOf(label); left == "" {
				return
			}
			// Goroutines that are ending need the processor, and there is nothing to wait on for their end.
			time.Sleep(time.Millisecond)
		}
		t.Errorf("goroutines are left over:\n%s", left)
	})
	return func(fn func()) {
		pprof.Do(context.Background(), pprof.Labels(labelKey, label), func(context.Context) { fn() })
	}
}

// goroutinesOf gives the stacks of all goroutines with the label.
func goroutinesOf(label string) string {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return err.Error()
	}
	var found []string
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, fmt.Sprintf("# labels: {%q:%q", labelKey, label)) {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}
