package testenv

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

func user(texts ...string) []Message {
	var all []Message
	for _, text := range texts {
		all = append(all, Message{Role: "user", Text: text})
	}
	return all
}

func TestDirectives(t *testing.T) {
	stages := "go\nCALL bash {\"command\":\"a\"}\nCALL read {}\nTHEN\nSAY done\nTHEN\nSTATUS 503"
	after := append(user(stages), Message{Role: "assistant"}, Message{Role: "tool"}, Message{Role: "tool"})
	cases := map[string]struct {
		messages []Message
		want     Response
	}{
		"none":                {user("hello"), Response{Text: "ok"}},
		"no message":          {nil, Response{Text: "ok"}},
		"say":                 {user("SAY one\nSAY  two"), Response{Text: "one\n two"}},
		"all trailing":        {user("SAY one", "PAUSE gate"), Response{Text: "one", Pause: "gate"}},
		"not in a quotation":  {user("> SAY one"), Response{Text: "ok"}},
		"not what is past":    {append(user("SAY one"), append([]Message{{Role: "assistant"}}, user("x")...)...), Response{Text: "ok"}},
		"two calls":           {user(stages), Response{Calls: []Call{{"bash", `{"command":"a"}`}, {"read", "{}"}}}},
		"after the tools":     {after, Response{Text: "done"}},
		"after more tools":    {append(after, Message{Role: "assistant"}, Message{Role: "tool"}), Response{Text: "scripted 503", Status: 503}},
		"after the last THEN": {append(after, Message{Role: "assistant"}, Message{Role: "tool"}, Message{Role: "assistant"}, Message{Role: "tool"}), Response{Text: "ok"}},
		"the rest":            {user("DELAY 5\nSLOW 7\nDROP 2\nNODONE\nHOLD x"), Response{Text: "ok", Delay: 5 * time.Millisecond, Slow: 7 * time.Millisecond, Drop: 2, Unended: true, Hold: "x"}},
	}
	for name, c := range cases {
		if got := directed(Request{Messages: c.messages}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v instead of %+v", name, got, c.want)
		}
	}
}

func ask(ctx context.Context, m *Model, text string) (string, error) {
	body := `{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"text","text":` + quote(text) + `}]}]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL()+"/chat/completions", bytes.NewReader([]byte(body)))
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	return string(out), err
}

func TestHeldAnswers(t *testing.T) {
	m := NewModel(t)
	answered := make(chan string, 1)
	go func() {
		out, _ := ask(context.Background(), m, "HOLD gate\nSAY released")
		answered <- out
	}()
	held := m.Await(t, "the request", func(r Request) bool { return r.Said("user", "gate") })
	if !held.Answered().IsZero() {
		t.Error("answered while held")
	}
	m.Release("gate")
	if out := <-answered; !strings.Contains(out, "released") {
		t.Errorf("got %q", out)
	}

	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		m.Await(t, "the second request", func(r Request) bool { return r.Said("user", "other") })
		cancel()
	}()
	if _, err := ask(ctx, m, "HOLD other"); err == nil {
		t.Error("a held answer came without its release")
	}
	m.AwaitAborted(t, "the second request", func(r Request) bool { return r.Said("user", "other") })
}
