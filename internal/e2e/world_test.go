package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

// world is what most tests here begin with: an agent named scout, and a parent that takes keys.
func world(t *testing.T, o testenv.Options) (*testenv.Env, *testenv.Pi) {
	t.Helper()
	t.Parallel()
	e := testenv.New(t, o)
	e.Scout()
	return e, e.Start(testenv.PiOptions{})
}

const result = "[delegate] Result from scout"

// results counts the results with text that the model is told of in a request.
func results(r testenv.Request, text string) int {
	n := 0
	for _, msg := range r.Messages {
		if msg.Role == "user" && strings.Contains(msg.Text, result) && strings.Contains(msg.Text, text) {
			n++
		}
	}
	return n
}

// told matches a request in which the parent's model reads a result with text.
func told(text string) func(testenv.Request) bool {
	return func(r testenv.Request) bool { return r.Model == "parent" && results(r, text) > 0 }
}

// gone matches a request in which the parent's model reads that a delegate ended without a result.
func gone(r testenv.Request) bool {
	return r.Model == "parent" && r.Said("user", "closed without a result")
}

// child matches a delegate's request with text in a prompt.
func child(text string) func(testenv.Request) bool {
	return func(r testenv.Request) bool { return r.Model == "child" && r.Said("user", text) }
}

// prompt matches a request of the parent that ends with a prompt with text.
func prompt(text string) func(testenv.Request) bool {
	return func(r testenv.Request) bool {
		return r.Model == "parent" && r.Last().Role == "user" && strings.Contains(r.Last().Text, text)
	}
}

// call is a directive with which the model calls a tool.
func call(tool string, args map[string]any) string {
	data, err := json.Marshal(args)
	if err != nil {
		panic(err) // a map of plain values always marshals
	}
	return "CALL " + tool + " " + string(data)
}

func delegate(task string) string {
	return call("delegate", map[string]any{"agent": "scout", "task": task})
}

// exactlyOnce waits for a result with text in the session, and asserts that the model is told of just one.
func exactlyOnce(t *testing.T, p *testenv.Pi, text string) {
	t.Helper()
	testenv.Await(t, "the result "+text+" in the session", func() bool {
		return slices.ContainsFunc(p.Entries(), func(e testenv.Entry) bool {
			return strings.Contains(e.Text(), result) && strings.Contains(e.Text(), text)
		})
	})
	asked := "how many results? " + filepath.Base(t.TempDir()) // a text of its own each time
	p.Submit(asked + "\nSAY counted")
	r := p.Env.Model.AwaitAnswered(t, "the prompt that counts", prompt(asked))
	if n := results(r, text); n != 1 {
		t.Errorf("the model was told the result %q %d times instead of once", text, n)
	}
}

// claimed counts the envelopes that a session has taken out of its mailbox.
func claimed(e *testenv.Env, p *testenv.Pi) int {
	files, err := os.ReadDir(filepath.Join(e.MailRoot, p.Session, "cur"))
	if err != nil {
		return 0
	}
	return len(files)
}

// blockingTool is a call of bash that ends when Open is called, and the function that opens.
func blockingTool(t *testing.T, e *testenv.Env) (directive string, open func()) {
	t.Helper()
	gate := filepath.Join(e.Root, "gate")
	return call("bash", map[string]any{"command": "until [ -e " + gate + " ]; do sleep 0.02; done; echo tool-finished"}),
		func() { e.Write(gate, "") }
}
