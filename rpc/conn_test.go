package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"pi-cradle/internal/usererr"
	"pi-cradle/internal/version"
	"pi-cradle/rpc/wire"
)

const testVersion = version.Version

func TestTextSurvives(t *testing.T) {
	texts := []string{
		"", "x", "\u2028\u2029\u0085\x00\x1f\x7f", "a\nb\r\nc", "\U0001F600\U0001F468\u200d\U0001F469", `"\u0000"`, "</script>&", "{}\n[]",
		strings.Repeat("y", 64<<10-1), strings.Repeat("y", 64<<10), strings.Repeat("y", 64<<10+1),
		strings.Repeat("\u2028", 1<<15), strings.Repeat("z", 1<<20),
	}
	eachMode(t, func(t *testing.T, start func(*testing.T) link) {
		conn := dial(t, start(t))
		for _, text := range texts {
			echo(t, conn, text)
			var got textParams
			if err := conn.Call(within(t), "back", textParams{text}, &got); err != nil || got.Text != text {
				t.Fatalf("there and back changed %.100q into %.100q (%v)", text, got.Text, err)
			}
		}
	})
}

func TestOrderIsKept(t *testing.T) {
	eachMode(t, func(t *testing.T, start func(*testing.T) link) {
		conn := dial(t, start(t))
		var want []string
		var calls sync.WaitGroup
		for i := range 300 {
			text := fmt.Sprint(i)
			want = append(want, text)
			if i%3 == 0 {
				if err := conn.Notify("tell", textParams{text}); err != nil {
					t.Fatal(err)
				}
				continue
			}
			// Dispatched here, in order; waited for elsewhere.
			call, err := conn.peer.DispatchCall(t.Context(), "note", textParams{text}, jsonrpc2.PickID(jsonrpc2.ID{Num: conn.lastID.Add(1)}))
			if err != nil {
				t.Fatal(err)
			}
			ctx := within(t)
			calls.Go(func() {
				if err := call.Wait(ctx, nil); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		var got listResult
		if err := conn.Call(within(t), "recorded", wire.Empty{}, &got); err != nil || !slices.Equal(got.List, want) {
			t.Errorf("order changed: %v (%v)", got.List, err)
		}
	})
}

// A host whose answer and next message come in one breath.
func TestAnswersKeepTheirPlace(t *testing.T) {
	eachMode(t, func(t *testing.T, start func(*testing.T) link) {
		r := dialRaw(t, start(t))
		var want []string
		for i := range 200 {
			r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"call","method":"back then","params":{"text":"%d"}}`, i))
			id, isRequest, ok := scanHead([]byte(r.receive()))
			if !ok || !isRequest {
				t.Fatal("the server did not call")
			}
			tell := `{"jsonrpc":"2.0","method":"tell","params":{"text":"%s %d"}}`
			r.send(fmt.Sprintf(tell+"\n"+`{"jsonrpc":"2.0","id":%s,"result":{"text":"%d"}}`+"\n"+tell, "before", i, id, i, "after", i))
			r.want(fmt.Sprintf(`{"id":"call","result":{"text":"%d"},"jsonrpc":"2.0"}`, i))
			want = append(want, fmt.Sprintf(`"before %d","answered %d","after %d"`, i, i, i))
		}
		r.send(`{"jsonrpc":"2.0","id":"last","method":"note","params":{"text":"end"}}`)
		r.receive()
		r.send(`{"jsonrpc":"2.0","id":"all","method":"recorded"}`)
		r.want(`{"id":"all","result":{"list":[` + strings.Join(want, ",") + `,"end"]},"jsonrpc":"2.0"}`)
	})
}

func TestCallThenAlwaysRunsThen(t *testing.T) {
	near, far := net.Pipe()
	mux, called := NewMux(), make(chan struct{})
	Concurrent(mux, "never", func(ctx context.Context, _ wire.Empty) (wire.Empty, error) {
		called <- struct{}{}
		<-ctx.Done()
		return wire.Empty{}, ctx.Err()
	})
	server, client := NewConn(far, mux, t.Logf), NewConn(near, NewMux(), t.Logf)
	got := make(chan error, 1)
	call := func(ctx context.Context, method string, params any) {
		go client.CallThen(ctx, method, params, nil, func(err error) { got <- err })
	}
	ctx, cancel := context.WithCancel(context.Background())
	call(ctx, "never", nil)
	<-called
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	call(ctx, "never", nil)
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	call(context.Background(), "nonesuch", nil)
	if err := <-got; !HasCode(err, jsonrpc2.CodeMethodNotFound) {
		t.Errorf("refused: %v", err)
	}
	call(context.Background(), "never", textParams{strings.Repeat("x", wire.MaxFrame)})
	if err := <-got; !HasCode(err, wire.CodeTooLarge) {
		t.Errorf("too large: %v", err)
	}
	call(context.Background(), "never", nil)
	<-called
	if err := server.Close(within(t)); err != nil {
		t.Error(err)
	}
	if err := <-got; !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if err := client.Close(within(t)); err != nil || len(client.turns) > 0 {
		t.Errorf("left over: %v, %v", client.turns, err)
	}
}

func TestCancelOvertakesTheQueue(t *testing.T) {
	eachMode(t, func(t *testing.T, start func(*testing.T) link) {
		r := dialRaw(t, start(t))
		r.send(`{"jsonrpc":"2.0","id":1,"method":"block","params":{"text":"first"}}`)
		r.awaitRecorded("first")
		r.send(`{"jsonrpc":"2.0","id":"two","method":"note","params":{"text":"second"}}`)
		r.send(`{"jsonrpc":"2.0","id":3,"method":"note","params":{"text":"third"}}`)
		r.send(`{"jsonrpc":"2.0","method":"cancel","params":{"id":"two"}}`)
		r.send(`{"jsonrpc":"2.0","id":4,"method":"echo","params":{"text":"concurrent ones are not held up"}}`)
		r.want(`{"id":4,"result":{"text":"concurrent ones are not held up"},"jsonrpc":"2.0"}`)
		r.send(`{"jsonrpc":"2.0","method":"cancel","params":{"id":1}}`)
		if code := r.code("1"); code != wire.CodeCancelled {
			t.Errorf("running: code %d", code)
		}
		if code := r.code(`"two"`); code != wire.CodeCancelled {
			t.Errorf("queued: code %d", code)
		}
		r.want(`{"id":3,"result":{},"jsonrpc":"2.0"}`)
		r.send(`{"jsonrpc":"2.0","id":5,"method":"recorded"}`)
		r.want(`{"id":5,"result":{"list":["first","first-ended","third"]},"jsonrpc":"2.0"}`)
	})
}

func TestCancelledCallMayStillFinish(t *testing.T) {
	eachMode(t, func(t *testing.T, start func(*testing.T) link) {
		r := dialRaw(t, start(t))
		r.send(`{"jsonrpc":"2.0","id":1,"method":"deaf","params":{"text":"runs"}}`)
		r.awaitRecorded("runs")
		r.send(`{"jsonrpc":"2.0","method":"cancel","params":{"id":1}}`)
		r.want(`{"id":1,"result":{"text":"finished nevertheless"},"jsonrpc":"2.0"}`)
		for _, params := range []string{`{"id":1}`, `{"id":99}`, `{"id":null}`, `{"id":{}}`, `{}`, `[]`, `null`} {
			r.send(`{"jsonrpc":"2.0","method":"cancel","params":` + params + `}`)
		}
		r.send(`{"jsonrpc":"2.0","id":2,"method":"echo","params":{"text":"alive"}}`)
		r.want(`{"id":2,"result":{"text":"alive"},"jsonrpc":"2.0"}`)
	})
}

func TestEndOfCallersContextCancels(t *testing.T) {
	eachMode(t, func(t *testing.T, start func(*testing.T) link) {
		conn := dial(t, start(t))
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() { result <- conn.Call(ctx, "wait", textParams{"called"}, nil) }()
		awaitRecorded(t, conn, "called")
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("Call returned %v", err)
		}
		awaitRecorded(t, conn, "called-ended")
		if err := conn.Call(ctx, "echo", textParams{}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("Call with an ended context returned %v", err)
		}
	})
}

func TestErrorAnswers(t *testing.T) {
	eachMode(t, func(t *testing.T, start func(*testing.T) link) {
		conn := dial(t, start(t))
		for _, test := range []struct {
			method string
			params any
			code   int64
			text   string
		}{
			{"nonesuch", wire.Empty{}, jsonrpc2.CodeMethodNotFound, `unknown method "nonesuch"`},
			{"echo", map[string]int{"text": 3}, jsonrpc2.CodeInvalidParams, "invalid params: "},
			{"echo", []string{"a"}, jsonrpc2.CodeInvalidParams, "invalid params: "},
			{"note", "text", jsonrpc2.CodeInvalidParams, "invalid params: "},
			{"fail", wire.Empty{}, wire.CodeNoSession, "outer: no session"},
			{"plain", wire.Empty{}, jsonrpc2.CodeInternalError, "plain"},
			{"panic", wire.Empty{}, jsonrpc2.CodeInternalError, "internal error: oh"},
		} {
			err := conn.Call(within(t), test.method, test.params, nil)
			if !HasCode(err, test.code) || !strings.HasPrefix(err.Error(), test.text) {
				t.Errorf("%s %v: got %v", test.method, test.params, err)
			}
			echo(t, conn, "alive after "+test.method)
		}
		err := conn.Call(within(t), "refuse", nil, nil)
		var refused *usererr.Error
		if !errors.As(err, &refused) {
			t.Fatalf("refuse: got %v", err)
		}
		if got, want := usererr.Text(err, "hint: "), "delegate: no agent \"scuot\"\nhint: did you mean \"scout\"?"; got != want {
			t.Errorf("refuse: got %q", got)
		}
	})
}

func TestGreaseIsIgnored(t *testing.T) {
	eachMode(t, func(t *testing.T, start func(*testing.T) link) {
		r := dialRaw(t, start(t))
		r.send(`{"x-grease":[{"y":null}],"jsonrpc":"2.0","id":1,"meta":7,"method":"echo","params":{"grease":{"a":1},"text":"t"},"extra":"}"}`)
		r.want(`{"id":1,"result":{"text":"t"},"jsonrpc":"2.0"}`)
		r.send(`{"jsonrpc":"2.0","method":"unknown.notification","params":{}}`)
		r.send(`{"jsonrpc":"2.0","id":77,"result":{"an":"answer to nothing"}}`)
		r.send(`{"jsonrpc":"2.0","id":2,"method":"tell","params":{"text":"a notification sent as a call"}}`)
		r.want(`{"id":2,"result":{},"jsonrpc":"2.0"}`)
		r.send(`{"jsonrpc":"2.0","method":"note","params":{"text":"a call sent as a notification"}}`)
		r.send(`{"jsonrpc":"2.0","id":3,"method":"note","params":{"text":"last"}}`)
		r.want(`{"id":3,"result":{},"jsonrpc":"2.0"}`)
	})
}

func TestSameIDTwice(t *testing.T) {
	eachMode(t, func(t *testing.T, start func(*testing.T) link) {
		r := dialRaw(t, start(t))
		r.send(`{"jsonrpc":"2.0","id":1,"method":"wait","params":{"text":"first"}}`)
		r.send(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"twice"}}`)
		r.send(`{"jsonrpc":"2.0","id":2,"method":"release"}`)
		got := []string{r.receive(), r.receive()}
		slices.Sort(got)
		if want := []string{`{"id":1,"result":{},"jsonrpc":"2.0"}`, `{"id":2,"result":{},"jsonrpc":"2.0"}`}; !slices.Equal(got, want) {
			t.Errorf("got %v", got)
		}
		r.send(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"free again"}}`)
		r.want(`{"id":1,"result":{"text":"free again"},"jsonrpc":"2.0"}`)
	})
}

func TestHandshake(t *testing.T) {
	eachMode(t, func(t *testing.T, start func(*testing.T) link) {
		conn := NewConn(start(t), NewMux(), t.Logf)
		defer conn.Close(context.Background())
		if err := conn.Call(within(t), "echo", textParams{"early"}, nil); !HasCode(err, jsonrpc2.CodeInvalidRequest) {
			t.Errorf("before initialize: %v", err)
		}
		if err := conn.Notify("tell", textParams{"early"}); err != nil {
			t.Fatal(err)
		}
		err := conn.Call(within(t), wire.Initialize, wire.InitializeParams{Version: "0.0.1"}, nil)
		if !HasCode(err, wire.CodeVersion) {
			t.Errorf("another version: %v", err)
		}
		for _, part := range []string{`"0.0.1"`, `"` + testVersion + `"`, `"/the/binary"`} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not name %s", err, part)
			}
		}
		if err := conn.Call(within(t), wire.Initialize, []int{}, nil); !HasCode(err, jsonrpc2.CodeInvalidParams) {
			t.Errorf("params that are none: %v", err)
		}
		if err := conn.Call(within(t), "note", textParams{"early"}, nil); !HasCode(err, jsonrpc2.CodeInvalidRequest) {
			t.Errorf("after a refused initialize: %v", err)
		}
		result, err := conn.Initialize(within(t))
		if err != nil || result.Version != testVersion || result.Binary != "/the/binary" {
			t.Errorf("initialize: %+v, %v", result, err)
		}
		var got listResult
		if err := conn.Call(within(t), "recorded", nil, &got); err != nil || len(got.List) > 0 {
			t.Errorf("ran before initialize: %v, %v", got, err)
		}
	})
}

func TestHelperOfAnotherVersion(t *testing.T) {
	near, far := net.Pipe()
	mux := NewMux()
	Ordered(mux, wire.Initialize, func(context.Context, wire.InitializeParams) (wire.InitializeResult, error) {
		return wire.InitializeResult{Version: "9.9.9", Binary: "/old/helper"}, nil
	})
	helper, conn := NewConn(far, mux, t.Logf), NewConn(near, NewMux(), t.Logf)
	defer helper.Close(context.Background())
	defer conn.Close(context.Background())
	_, err := conn.Initialize(within(t))
	if !HasCode(err, wire.CodeVersion) || !strings.Contains(err.Error(), `helper "/old/helper" is version "9.9.9"`) {
		t.Errorf("got %v", err)
	}
}

func TestEndOfStreamEndsEverything(t *testing.T) {
	eachMode(t, func(t *testing.T, start func(*testing.T) link) {
		to := start(t)
		conn := dial(t, to)
		results := make(chan error, 3)
		for _, c := range []struct{ method, text string }{{"block", "ordered"}, {"wait", "concurrent"}} {
			go func() { results <- conn.Call(context.Background(), c.method, textParams{c.text}, nil) }()
			awaitRecorded(t, conn, c.text)
		}
		go func() { results <- conn.Call(context.Background(), "note", textParams{"queued"}, nil) }()
		echo(t, conn, "still alive")
		to.Close()
		for range 3 {
			if err := <-results; !errors.Is(err, ErrClosed) {
				t.Errorf("a waiting call returned %v", err)
			}
		}
		if err := conn.Call(context.Background(), "echo", textParams{}, nil); !errors.Is(err, ErrClosed) {
			t.Errorf("a later call returned %v", err)
		}
		if err := conn.Notify("tell", textParams{}); !errors.Is(err, ErrClosed) {
			t.Errorf("a later notification returned %v", err)
		}
		logged := to.wait()
		if !strings.Contains(logged, "closed; cancelled handlers: 2;") || strings.Contains(logged, "queued") {
			t.Errorf("the server said\n%s", logged)
		}
	})
}

func TestHalfALineAtTheEndIsDropped(t *testing.T) {
	eachMode(t, func(t *testing.T, start func(*testing.T) link) {
		r := dialRaw(t, start(t))
		r.send(`{"jsonrpc":"2.0","id":1,"method":"note","params":{"text":"whole"}}`)
		r.want(`{"id":1,"result":{},"jsonrpc":"2.0"}`)
		if _, err := r.Write([]byte(`{"jsonrpc":"2.0","method":"tell","params":{"text":"half"}}`)); err != nil {
			t.Fatal(err)
		}
		r.Close()
		if logged := r.wait(); !strings.HasSuffix(logged, "recorded: whole\n") {
			t.Errorf("the server said\n%s", logged)
		}
	})
}

func TestCloseLetsOutWhatIsQueued(t *testing.T) {
	eachMode(t, func(t *testing.T, start func(*testing.T) link) {
		to := start(t)
		conn := dial(t, to)
		for i := range 50 { // more than a pipe holds
			if err := conn.Notify("tell", textParams{fmt.Sprintf("%d:%s", i, strings.Repeat("x", 10<<10))}); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.Notify("tell", textParams{"last"}); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(within(t)); err != nil {
			t.Error(err)
		}
		if conn.stream.out.size != 0 {
			t.Errorf("%d bytes were not written", conn.stream.out.size)
		}
		select {
		case <-conn.Done():
		default:
			t.Error("closed and not done")
		}
	})
}

func TestCloseHasALimit(t *testing.T) {
	near, far := net.Pipe()
	mux, entered, leave := NewMux(), make(chan struct{}), make(chan struct{})
	Concurrent(mux, "stuck", func(context.Context, wire.Empty) (wire.Empty, error) {
		close(entered)
		<-leave
		return wire.Empty{}, nil
	})
	server, client := NewConn(far, mux, t.Logf), NewConn(near, NewMux(), t.Logf)
	result := make(chan error, 1)
	go func() { result <- client.Call(context.Background(), "stuck", nil, nil) }()
	<-entered
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := server.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close with a stuck handler: %v", err)
	}
	if err := <-result; !errors.Is(err, ErrClosed) {
		t.Errorf("the call: %v", err)
	}
	close(leave)
	for _, conn := range []*Conn{server, client, server} {
		if err := conn.Close(within(t)); err != nil {
			t.Error(err)
		}
	}
}

func TestNilIsSentAsEmpty(t *testing.T) {
	type inner struct {
		A []string          `json:"a"`
		M map[string][]bool `json:"m"`
	}
	type outer struct {
		Inner []inner         `json:"inner"`
		Ptr   *inner          `json:"ptr"`
		Skip  []int           `json:"skip,omitempty"`
		Raw   json.RawMessage `json:"raw"`
		Bytes []byte          `json:"bytes"`
		Next  *outer          `json:"next,omitempty"`
	}
	in := outer{Inner: []inner{{}, {M: map[string][]bool{"k": nil}}}, Ptr: &inner{}, Next: &outer{}}
	got, err := json.Marshal(filled(in))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"inner":[{"a":[],"m":{}},{"a":[],"m":{"k":[]}}],"ptr":{"a":[],"m":{}},"raw":null,"bytes":null,` +
		`"next":{"inner":[],"ptr":null,"raw":null,"bytes":null}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if in.Inner[0].A != nil || in.Inner[1].M["k"] != nil || in.Ptr.A != nil || in.Next.Inner != nil {
		t.Errorf("the original was changed: %+v", in)
	}
	for _, same := range []any{nil, "text", 3, json.RawMessage("[]"), wire.Empty{}} {
		if got := fmt.Sprintf("%#v", filled(same)); got != fmt.Sprintf("%#v", same) {
			t.Errorf("%#v became %s", same, got)
		}
	}
}
