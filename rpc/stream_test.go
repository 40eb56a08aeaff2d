package rpc

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/sourcegraph/jsonrpc2"

	"pi-cradle/rpc/wire"
)

var garbage = []string{
	"garbage", "", "   ", "\r", "{", "}", "[]", "[1,2]", `"text"`, "null", "{}", "\xff\xfe\x00", "\x00", "{\"id\":1}",
	`{"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"2.0","id":1,"method":7}`, `{"jsonrpc":"2.0","id":1,"method":""}`,
	`{"jsonrpc":"2.0","id":1.5,"method":"echo"}`, `{"jsonrpc":"2.0","id":-1,"method":"echo"}`, `{"jsonrpc":"2.0","id":{},"method":"echo"}`,
	`{"jsonrpc":"2.0","id":18446744073709551615,"method":"echo"}`, `{"jsonrpc":"2.0","id":null,"result":1}`, `{"jsonrpc":"2.0","result":1}`,
	`{"jsonrpc":"2.0","id":1,"error":"text"}`, `{"jsonrpc":"2.0","id":1,"method":"echo","result":1}`, `{"jsonrpc":"2.0","id":1,"method":"echo"`,
	`{"jsonrpc":"2.0","id":1,"method":"echo","params":{}}}`, `[{"jsonrpc":"2.0","id":1,"method":"echo"}]`, "node:internal/errors:496",
	strings.Repeat("{", 10000), strings.Repeat("long ", 10000), "\u2028", "{\"id\":1,\u2028\"method\":\"x\"}",
}

func TestGarbageIsSkipped(t *testing.T) {
	eachMode(t, func(t *testing.T, start func(*testing.T) link) {
		r := dialRaw(t, start(t))
		for i, line := range garbage {
			r.send(line)
			r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"echo","params":{"text":"t"}}`, i+100))
			r.want(fmt.Sprintf(`{"id":%d,"result":{"text":"t"},"jsonrpc":"2.0"}`, i+100))
		}
		for range 200 {
			r.send("more and more")
		}
		r.send(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"t"}}`)
		r.want(`{"id":1,"result":{"text":"t"},"jsonrpc":"2.0"}`)
		r.Close()
		logged := r.wait()
		if lines := strings.Count(logged, "\n"); lines > maxLogLines+10 || len(logged) > maxLogLines*500 || !strings.Contains(logged, "no more of this") {
			t.Errorf("garbage made %d lines of log, %d bytes", lines, len(logged))
		}
	})
}

// request is one with exactly size bytes.
func request(id string, method string, size int) string {
	head, tail := `{"jsonrpc":"2.0",`+id+`"method":"`+method+`","params":{"text":"`, `"}}`
	return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
}

func TestTooLongIncoming(t *testing.T) {
	eachMode(t, func(t *testing.T, start func(*testing.T) link) {
		r := dialRaw(t, start(t))
		for _, size := range []int{wire.MaxFrame + 1, 20 << 20} {
			r.send(request(`"id":1,`, "note", size))
			if code := r.code("1"); code != wire.CodeTooLarge {
				t.Errorf("%d bytes: code %d", size, code)
			}
			r.send(request(`"id":"s",`, "note", size))
			if code := r.code(`"s"`); code != wire.CodeTooLarge {
				t.Errorf("%d bytes: code %d", size, code)
			}
			r.send(request("", "tell", size))
			r.send(strings.Repeat("g", size))
			r.send(strings.Repeat("{", size))
			r.send(`{"jsonrpc":"2.0","id":2,"method":"recorded"}`)
			r.want(`{"id":2,"result":{"list":[]},"jsonrpc":"2.0"}`)
		}
		r.send(request(`"id":3,`, "note", wire.MaxFrame))
		r.want(`{"id":3,"result":{},"jsonrpc":"2.0"}`)
	})
}

func TestTooLongOutgoing(t *testing.T) {
	eachMode(t, func(t *testing.T, start func(*testing.T) link) {
		conn := dial(t, start(t))
		if err := conn.Call(within(t), "note", textParams{strings.Repeat("x", wire.MaxFrame)}, nil); !HasCode(err, wire.CodeTooLarge) {
			t.Errorf("call: %v", err)
		}
		if err := conn.Notify("tell", textParams{strings.Repeat("x", wire.MaxFrame)}); !HasCode(err, wire.CodeTooLarge) {
			t.Errorf("notification: %v", err)
		}
		if err := conn.Call(within(t), "size", map[string]int{"Size": wire.MaxFrame}, nil); !HasCode(err, wire.CodeTooLarge) {
			t.Errorf("answer: %v", err)
		}
		var got listResult
		if err := conn.Call(within(t), "recorded", nil, &got); err != nil || len(got.List) > 0 {
			t.Errorf("afterwards: %v, %v", got.List, err)
		}
	})
}

func TestTooLongAnswerEndsTheCall(t *testing.T) {
	near, far := net.Pipe()
	conn := NewConn(near, NewMux(), t.Logf)
	defer conn.Close(within(t))
	go func() {
		peer := lineServer{far}
		peer.answer(`{"id":1,"result":"` + strings.Repeat("x", wire.MaxFrame) + `","jsonrpc":"2.0"}`)
		peer.answer(`{"jsonrpc":"2.0","result":{"text":"fine"},"id":2}`)
	}()
	if err := conn.Call(within(t), "any", nil, nil); !HasCode(err, wire.CodeTooLarge) {
		t.Errorf("got %v", err)
	}
	var got textParams
	if err := conn.Call(within(t), "any", nil, &got); err != nil || got.Text != "fine" {
		t.Errorf("got %v, %v", got, err)
	}
}

// lineServer reads one line and writes another, whatever they are.
type lineServer struct{ net.Conn }

func (d lineServer) answer(line string) {
	one := make([]byte, 1)
	for one[0] != '\n' {
		if _, err := d.Read(one); err != nil {
			return
		}
	}
	io.WriteString(d, line+"\n")
}

func TestPeerThatDoesNotRead(t *testing.T) {
	eachMode(t, func(t *testing.T, start func(*testing.T) link) {
		r := dialRaw(t, start(t))
		const calls, size = 200, 10 << 10 // far more than any pipe holds, less than the backlog
		for i := range calls {
			r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"size","params":{"Size":%d}}`, i, size))
		}
		r.send(`{"jsonrpc":"2.0","id":"after","method":"note","params":{"text":"the reader is not held up"}}`)
		seen := map[string]bool{}
		for range calls + 1 {
			id, _, ok := scanHead([]byte(r.receive()))
			if !ok {
				t.Fatal("an answer without an id")
			}
			seen[id.String()] = true
		}
		if len(seen) != calls+1 {
			t.Errorf("%d answers", len(seen))
		}
	})
}

func TestBacklogEndsTheConnection(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	conn := NewConn(near, NewMux(), t.Logf)
	defer conn.Close(within(t))
	const limit = 1 << 20
	conn.stream.out.mu.Lock()
	conn.stream.out.limit = limit
	conn.stream.out.mu.Unlock()
	text := textParams{strings.Repeat("x", 10<<10)}
	for sent := 0; conn.Notify("tell", text) == nil; sent += len(text.Text) {
		if sent > limit {
			t.Fatal("the backlog has no end")
		}
	}
	select {
	case <-conn.Done():
	case <-within(t).Done():
		t.Error("the connection lives on")
	}
}

func TestScanHead(t *testing.T) {
	for head, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"method":"m","params":{"te`:        "7 true true",
		`{"jsonrpc":"2.0","id":"a b","method":"m","params":[1,`:     `"a b" true true`,
		`{"method":"m","id":7,"params":"xxx`:                        "7 true true",
		`{"id":7,"params":"xxx`:                                     "7 true true",
		`{"id":7,"result":{"id":8,"x":"`:                            "7 false true",
		`{"meta":{"id":3},"id":7,"error":{"me`:                      "7 false true",
		`{"jsonrpc":"2.0","method":"m","params":{"id":7,"x":"`:      "0 true false",
		`{"jsonrpc":"2.0","id":7,"grease":"xxxxxxxxxxxxxxxxxxxxxxx`: "7 false false",
		`{"id":7}`:                         "7 false false",
		`{"id":-7,"method":"m","params":"`: "0 false false",
		`{"id":`:                           "0 false false",
		`[`:                                "0 false false",
		"":                                 "0 false false",
	} {
		id, isRequest, ok := scanHead([]byte(head))
		if got := fmt.Sprint(id, isRequest, ok); got != want {
			t.Errorf("%s: got %s, want %s", head, got, want)
		}
	}
}

// Whatever a peer writes on a line of its own, the reader comes through to the next message.
func FuzzStream(f *testing.F) {
	for _, line := range garbage {
		f.Add([]byte(line))
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"t"}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m","data":[1]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := append(append([]byte{}, data...), "\n"+`{"jsonrpc":"2.0","id":"end","method":"the end","params":{"a":[1,  2]}}`+"\n"...)
		s := newStream(&pretend{Reader: bytes.NewReader(in)}, &boundedLog{printf: func(string, ...any) {}})
		close(s.ready)
		defer s.Close()
		for range bytes.Count(in, []byte("\n")) {
			var seen jsonrpc2.Request
			if err := s.ReadObject(&anything{&seen}); err != nil {
				t.Fatalf("the last message never came: %v", err)
			}
			if seen.Method == "the end" && seen.ID.Str == "end" {
				if string(s.params) != `{"a":[1,  2]}` {
					t.Fatalf("params: %s", s.params)
				}
				return
			}
		}
		t.Fatal("the last message never came")
	})
}

// anything takes a request or a response.
type anything struct{ request *jsonrpc2.Request }

func (a *anything) UnmarshalJSON(data []byte) error {
	*a.request = jsonrpc2.Request{}
	if bytes.Contains(data, []byte(`"method"`)) {
		return a.request.UnmarshalJSON(data)
	}
	return new(jsonrpc2.Response).UnmarshalJSON(data)
}

type pretend struct{ io.Reader }

func (*pretend) Write(p []byte) (int, error) { return len(p), nil }
func (*pretend) Close() error                { return nil }
