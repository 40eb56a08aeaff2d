package testenv

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// directed reads the answer out of the conversation. Each of these stands on a line of its own in the user messages that the
// request ends with, or ended with before the model began to call tools:
//
//	SAY <text>            answer with text; several make several lines
//	CALL <tool> <json>    call a tool; several make several calls in one message
//	THEN                  what follows is for the request after the tool results
//	HOLD <name>           wait for Release(name) before answering
//	PAUSE <name>          wait for it after the first word
//	DELAY <ms>, SLOW <ms> wait before answering, between words
//	STATUS <code>         answer with an HTTP error
//	DROP <words>          cut the connection after so many words
//	NODONE                end without a finish reason
//
// Without any, the answer is "ok".
func directed(req Request) Response {
	end, turns := len(req.Messages), 0
	for end > 0 && req.Messages[end-1].Role != "user" {
		end--
		if req.Messages[end].Role == "assistant" {
			turns++
		}
	}
	start := end
	for start > 0 && req.Messages[start-1].Role == "user" {
		start--
	}
	stage, said, answer := 0, false, Response{}
	for _, msg := range req.Messages[start:end] {
		for line := range strings.Lines(msg.Text) {
			word, rest, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
			if word == "THEN" {
				stage++
			} else if stage == turns && answer.direct(word, rest) {
				said = true
			}
		}
	}
	if !said {
		answer.Text = "ok"
	}
	return answer
}

// direct takes one directive in and reports whether it was one that gives an answer.
func (a *Response) direct(word, rest string) bool {
	number, _ := strconv.Atoi(rest)
	switch word {
	case "SAY":
		if a.Text != "" {
			a.Text += "\n"
		}
		a.Text += rest
	case "CALL":
		tool, args, _ := strings.Cut(rest, " ")
		a.Calls = append(a.Calls, Call{tool, args})
	case "STATUS":
		a.Status = number
		a.Text = "scripted " + rest
	case "HOLD":
		a.Hold = rest
		return false
	case "PAUSE":
		a.Pause = rest
		return false
	case "DELAY":
		a.Delay = time.Duration(number) * time.Millisecond
		return false
	case "SLOW":
		a.Slow = time.Duration(number) * time.Millisecond
		return false
	case "DROP":
		a.Drop = number
		return false
	case "NODONE":
		a.Unended = true
		return false
	default:
		return false
	}
	return true
}

// answer sends a and reports whether the client stayed to the end. A cut that the answer asks for counts as its end.
func (m *Model) answer(ctx context.Context, w http.ResponseWriter, a Response) bool {
	if a.Hold != "" && !m.hold(ctx, a.Hold) || !wait(ctx, a.Delay) {
		return false
	}
	if a.Status != 0 && a.Status != http.StatusOK {
		w.Header().Set("content-type", "application/json")
		w.WriteHeader(a.Status)
		fmt.Fprintf(w, `{"error":{"message":%s}}`, quote(a.Text))
		return true
	}
	w.Header().Set("content-type", "text/event-stream")
	s := &stream{w: w, flush: http.NewResponseController(w).Flush}
	s.send(`{"role":"assistant","content":""}`, "null", "")
	for i, word := range strings.SplitAfter(a.Text, " ") {
		if word != "" {
			s.send(`{"content":`+quote(word)+`}`, "null", "")
		}
		if a.Drop == i+1 {
			panic(http.ErrAbortHandler)
		}
		if i == 0 && a.Pause != "" && !m.hold(ctx, a.Pause) || !wait(ctx, a.Slow) {
			return false
		}
	}
	for i, call := range a.Calls {
		id := fmt.Sprintf("call_%d_%d", time.Now().UnixNano(), i)
		s.send(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%s,"arguments":""}}]}`, i, id, quote(call.Tool)), "null", "")
		s.send(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quote(call.Args)), "null", "")
	}
	if a.Unended {
		return true
	}
	reason := `"stop"`
	if len(a.Calls) > 0 {
		reason = `"tool_calls"`
	}
	s.send(`{}`, reason, `,"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`)
	complete := s.err == nil
	s.write("data: [DONE]\n\n") // the client may hang up as soon as it has read this
	return complete
}

func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func quote(s string) string {
	out, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always marshals
	}
	return string(out)
}

// stream writes the events of one answer and keeps the first error.
type stream struct {
	w     http.ResponseWriter
	flush func() error
	err   error
}

func (s *stream) send(delta, finish, extra string) {
	s.write(`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"scripted","choices":[{"index":0,"delta":` +
		delta + `,"finish_reason":` + finish + `}]` + extra + "}\n\n")
}

func (s *stream) write(text string) {
	if s.err == nil {
		_, s.err = s.w.Write([]byte(text))
	}
	if s.err == nil {
		s.err = s.flush()
	}
}
