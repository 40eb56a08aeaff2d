package testenv

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// Model is a scripted model server on loopback that speaks streaming OpenAI chat completions. What it answers is written in the
// conversation itself (see directives), or decided by Script. Its request log is the oracle of a test: it says what a model
// was really told, and when.
type Model struct {
	server *httptest.Server

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced whenever anything below changes
	log      []*Request
	script   func(Request) (Response, bool)
	faults   []fault
	released map[string]bool
}

type fault struct {
	match  func(Request) bool
	answer Response
}

// Request is what a model was asked. Texts are whole and unescaped.
type Request struct {
	Seq       int       // in order of arrival, from 0
	At        time.Time // when it had been received
	Model     string
	Effort    string // the thinking level asked for; empty for none
	Messages  []Message
	Tools     []string // names of the tools on offer
	ToolTexts map[string]string

	answered time.Time // when its last byte was sent; zero before
	aborted  bool
}

// Message is one message of a conversation.
type Message struct {
	Role  string // system, developer, user, assistant, tool
	Text  string
	Calls []Call // of an assistant
}

// Call is one call of a tool. Args is JSON.
type Call struct{ Tool, Args string }

// Response is what the model does. The zero value answers with no text.
type Response struct {
	Text    string        // streamed word by word
	Calls   []Call        // after the text; all in the same assistant message
	Hold    string        // nothing is sent before Release of this name
	Pause   string        // the first word is sent, the rest not before Release of this name
	Delay   time.Duration // before anything is sent
	Slow    time.Duration // between two words
	Status  int           // another HTTP status than 200, with Text as the error's message
	Drop    int           // cut the connection after so many words, when positive
	Unended bool          // end the stream without a finish reason
}

// NewModel starts a model server; it ends with t.
func NewModel(t T) *Model {
	m := &Model{changed: make(chan struct{}), released: map[string]bool{}}
	m.server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(func() {
		m.server.CloseClientConnections() // held answers end with their connection
		m.server.Close()
	})
	return m
}

// URL is the base URL to configure.
func (m *Model) URL() string { return m.server.URL + "/v1" }

// Script sets a function that is asked first, for every request; its false means to go by the directives.
func (m *Model) Script(f func(Request) (Response, bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script = f
}

// FailNext answers the next request for which match holds with answer, once, before any script or directive.
func (m *Model) FailNext(match func(Request) bool, answer Response) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = append(m.faults, fault{match, answer})
}

// Release lets every answer go on that is, or will be, held or paused under name.
func (m *Model) Release(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.released[name] = true
	m.notify()
}

// notify wakes everyone who awaits. The caller holds mu.
func (m *Model) notify() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// Requests returns a copy of the log so far.
func (m *Model) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]Request, len(m.log))
	for i, r := range m.log {
		all[i] = *r
	}
	return all
}

// Count returns how many requests so far match.
func (m *Model) Count(match func(Request) bool) int {
	n := 0
	for _, r := range m.Requests() {
		if match(r) {
			n++
		}
	}
	return n
}

// Await returns the first request, past or to come, that matches.
func (m *Model) Await(t T, what string, match func(Request) bool) Request {
	t.Helper()
	return m.await(t, what, match)
}

// AwaitAnswered is Await for a request whose answer has been sent to its end.
func (m *Model) AwaitAnswered(t T, what string, match func(Request) bool) Request {
	t.Helper()
	return m.await(t, what, func(r Request) bool { return match(r) && !r.answered.IsZero() })
}

// AwaitAborted is Await for a request whose client hung up before the end of the answer.
func (m *Model) AwaitAborted(t T, what string, match func(Request) bool) Request {
	t.Helper()
	return m.await(t, what, func(r Request) bool { return match(r) && r.aborted })
}

func (m *Model) await(t T, what string, match func(Request) bool) Request {
	t.Helper()
	deadline := time.After(Patience)
	for {
		m.mu.Lock()
		changed := m.changed
		m.mu.Unlock()
		for _, r := range m.Requests() {
			if match(r) {
				return r
			}
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("waited %v for a model request: %s\n%s", Patience, what, m.Summary())
		}
	}
}

// Summary is the log in short, for a person.
func (m *Model) Summary() string {
	var b strings.Builder
	for _, r := range m.Requests() {
		state := "open"
		if r.aborted {
			state = "aborted"
		} else if !r.answered.IsZero() {
			state = "answered"
		}
		last := r.Last()
		b.WriteString(r.At.Format("15:04:05.000 ") + r.Model + " " + state + ", last " + last.Role + ": " + Clip(last.Text, 200) + "\n")
	}
	return b.String()
}

// Clip is s as one line of at most n bytes or so.
func Clip(s string, n int) string {
	s = strings.ReplaceAll(s, "\n", "\\n")
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// Last is the last message, or an empty one.
func (r Request) Last() Message {
	if len(r.Messages) == 0 {
		return Message{}
	}
	return r.Messages[len(r.Messages)-1]
}

// Answered is when the last byte of the answer was sent.
func (r Request) Answered() time.Time { return r.answered }

// System is the text of all system messages.
func (r Request) System() string {
	var texts []string
	for _, msg := range r.Messages {
		if msg.Role == "system" || msg.Role == "developer" {
			texts = append(texts, msg.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Said reports whether any message of the role holds text.
func (r Request) Said(role, text string) bool { return r.Times(role, text) > 0 }

// Times counts the messages of the role that hold text.
func (r Request) Times(role, text string) int {
	n := 0
	for _, msg := range r.Messages {
		if msg.Role == role && strings.Contains(msg.Text, text) {
			n++
		}
	}
	return n
}

func (m *Model) serve(w http.ResponseWriter, hr *http.Request) {
	body, err := io.ReadAll(hr.Body)
	if err != nil {
		return
	}
	req, err := parseRequest(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	logged, answer := m.admit(req)
	complete := false
	defer func() { // also when answer panics to cut the connection
		m.mu.Lock()
		defer m.mu.Unlock()
		if complete {
			logged.answered = time.Now()
		} else {
			logged.aborted = true
		}
		m.notify()
	}()
	complete = m.answer(hr.Context(), w, answer)
}

// admit logs a request and decides its answer.
func (m *Model) admit(req Request) (*Request, Response) {
	m.mu.Lock()
	req.Seq = len(m.log)
	logged := &req
	m.log = append(m.log, logged)
	seen, script := *logged, m.script
	i := slices.IndexFunc(m.faults, func(f fault) bool { return f.match(seen) })
	var failed *Response
	if i >= 0 {
		failed = &m.faults[i].answer
		m.faults = slices.Delete(slices.Clone(m.faults), i, i+1)
	}
	m.notify()
	m.mu.Unlock()
	if failed != nil {
		return logged, *failed
	}
	if script != nil {
		if answer, ok := script(seen); ok {
			return logged, answer
		}
	}
	return logged, directed(seen)
}

// hold waits for the release of name, or the end of ctx, and reports whether the name was released.
func (m *Model) hold(ctx context.Context, name string) bool {
	for {
		m.mu.Lock()
		released, changed := m.released[name], m.changed
		m.mu.Unlock()
		if released {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func parseRequest(body []byte) (Request, error) {
	var in struct {
		Model    string
		Effort   string `json:"reasoning_effort"`
		Messages []struct {
			Role      string
			Content   json.RawMessage
			ToolCalls []struct {
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		Tools []struct {
			Function struct{ Name, Description string }
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	req := Request{At: time.Now(), Model: in.Model, Effort: in.Effort, ToolTexts: map[string]string{}}
	for _, msg := range in.Messages {
		out := Message{Role: msg.Role, Text: contentText(msg.Content)}
		for _, call := range msg.ToolCalls {
			out.Calls = append(out.Calls, Call{call.Function.Name, call.Function.Arguments})
		}
		req.Messages = append(req.Messages, out)
	}
	for _, tool := range in.Tools {
		req.Tools = append(req.Tools, tool.Function.Name)
		req.ToolTexts[tool.Function.Name] = tool.Function.Description
	}
	return req, nil
}

// contentText reads a message's content, which is a string or a list of parts.
func contentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct{ Text string }
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = part.Text
	}
	return strings.Join(texts, "\n")
}
