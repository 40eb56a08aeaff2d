package rpctest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync"
	"testing"

	"pi-cradle/internal/usererr"
	"pi-cradle/rpc"
	"pi-cradle/rpc/wire"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "serve" {
		log.SetFlags(0)
		serveToy(rpc.Stdio())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveToy is a helper whose tools do one thing each.
func serveToy(stream io.ReadWriteCloser) {
	mux := rpc.NewMux()
	mux.RequireInitialize("toy")
	var conn *rpc.Conn
	ready := make(chan struct{})
	rpc.Ordered(mux, wire.SessionStart, func(_ context.Context, p wire.SessionStartParams) (wire.SessionStartResult, error) {
		return wire.SessionStartResult{Role: "root", Claims: wire.Claims{Requests: map[string]string{"r": "child"}}}, nil
	})
	rpc.Ordered(mux, wire.SessionShutdown, func(context.Context, wire.SessionShutdownParams) (wire.Empty, error) { return wire.Empty{}, nil })
	rpc.Ordered(mux, wire.RunPrepare, func(context.Context, wire.Empty) (wire.RunPrepareResult, error) {
		return wire.RunPrepareResult{Sections: map[string]string{"k": "v"}}, nil
	})
	rpc.Ordered(mux, wire.RunSettled, func(ctx context.Context, p wire.RunSettledParams) (wire.Empty, error) {
		<-ready
		return wire.Empty{}, conn.Notify(wire.HostNotify, wire.NotifyParams{Level: "info", Text: "settled: " + p.Text})
	})
	rpc.Notification(mux, wire.InputSeen, func(context.Context, wire.InputSeenParams) {})
	rpc.Notification(mux, wire.MailStaged, func(_ context.Context, p wire.MailStagedParams) {
		<-ready
		_ = conn.Notify(wire.HostStatus, wire.StatusParams{Key: "staged", Text: p.File})
	})
	rpc.Concurrent(mux, wire.ToolCall, func(ctx context.Context, p wire.ToolCallParams) (wire.ToolCallResult, error) {
		<-ready
		text, err := toyTool(ctx, conn, p)
		return wire.ToolCallResult{Text: text, Details: json.RawMessage("{}")}, err
	})
	conn = rpc.NewConn(stream, mux, log.Printf)
	close(ready)
	<-conn.Done()
	_ = conn.Close(context.Background())
}

func toyTool(ctx context.Context, conn *rpc.Conn, p wire.ToolCallParams) (string, error) {
	var text string
	if err := json.Unmarshal(p.Params, &text); err != nil {
		return "", err
	}
	ask := func(method string, params any) (string, error) {
		var raw json.RawMessage
		err := conn.Call(ctx, method, params, &raw)
		return string(raw), err
	}
	switch p.Tool {
	case "send":
		return ask(wire.HostSend, wire.SendParams{ID: "id-" + text, Content: text, Details: json.RawMessage("{}"), Trigger: true})
	case "prompt":
		return ask(wire.HostPrompt, wire.PromptParams{Text: text})
	case "entries":
		return ask(wire.HostEntries, wire.EntriesParams{Messages: []string{"id-" + text, "no"}, Prompts: []string{text, "no"}})
	case "emit":
		return ask(wire.HostEmit, wire.EmitParams{Channel: text, Payload: json.RawMessage(`{"n":1}`)})
	case "freeze":
		return ask(wire.HostEmit, wire.EmitParams{Channel: text, Payload: json.RawMessage(`{"n":1}`), Freeze: "*"})
	case "models":
		return ask(wire.HostModels, wire.ModelsParams{All: text == "all"})
	case "dialog":
		return ask(wire.HostDialog, wire.DialogParams{Kind: "confirm"})
	case "exit":
		return ask(wire.HostExit, wire.Empty{})
	case "refuse":
		return "", usererr.New("refused")
	case "crash":
		os.Exit(7)
	case "stuck":
		<-ctx.Done()
		return "", ctx.Err()
	}
	return text, nil
}

func eachMode(t *testing.T, test func(t *testing.T, o Options)) {
	t.Run("process", func(t *testing.T) { t.Parallel(); test(t, Options{}) })
	t.Run("function", func(t *testing.T) { t.Parallel(); test(t, Options{Serve: serveToy}) })
}

func TestConversation(t *testing.T) {
	eachMode(t, func(t *testing.T, o Options) {
		pi := Start(t, o)
		session := NewSession(t.TempDir(), t.TempDir())
		if result := pi.StartSession(session); result.Role != "root" || result.Active == nil {
			t.Errorf("got %+v", result)
		}
		pi.Await(Claimed("child"))
		pi.Tool("send", "one")
		pi.Await(All(Sent("one"), func(s State) (Verdict, string) { return met(s.Running, s, "no run") }))

		// Busy: nothing gets in before the run is over.
		var calls sync.WaitGroup
		calls.Go(func() { pi.TryTool("prompt", "two") })
		pi.Await(Called(wire.HostPrompt, 1))
		if got := session.Prompts(); len(got) != 0 {
			t.Errorf("a prompt got into a run: %v", got)
		}
		pi.Settle(Done("first"))
		calls.Wait()
		pi.Await(All(Prompted("two"), Notified("info", "settled: first"), Called(wire.HostPrompt, 1)))
		pi.Settle(Aborted())

		if got := pi.Tool("entries", "one").Text; got != `{"messages":["id-one"],"prompts":[]}` {
			t.Errorf("entries: %s", got)
		}
		if got := pi.Tool("entries", "two").Text; got != `{"messages":[],"prompts":["two"]}` {
			t.Errorf("entries: %s", got)
		}
		if sections := pi.Begin("typed"); sections["k"] != "v" {
			t.Errorf("sections: %v", sections)
		}
		pi.Settle(Failed("no"))
		if err := pi.EndSession("new"); err != nil {
			t.Error(err)
		}
		if _, err := pi.TryTool("entries", "one"); !rpc.HasCode(err, wire.CodeStale) {
			t.Errorf("without a session: %v", err)
		}
	})
}

func TestHostAnswers(t *testing.T) {
	eachMode(t, func(t *testing.T, o Options) {
		o.Models = wire.ModelsResult{Thinking: "off", Models: []wire.Model{{Provider: "a", ID: "1", Available: true}, {Provider: "b", ID: "2"}}}
		pi := Start(t, o)
		pi.StartSession(NewSession(t.TempDir(), t.TempDir()))
		if got := pi.Tool("models", "some").Text; !strings.Contains(got, `"a"`) || strings.Contains(got, `"b"`) {
			t.Errorf("models: %s", got)
		}
		if got := pi.Tool("models", "all").Text; !strings.Contains(got, `"b"`) {
			t.Errorf("all models: %s", got)
		}
		pi.Listen("ch", func(payload map[string]any) { payload["n"] = payload["n"].(float64) + 1 })
		pi.Listen("ch", func(payload map[string]any) { payload["m"] = true })
		for tool, want := range map[string]string{"emit": `{"payload":{"m":true,"n":2}}`, "freeze": `{"payload":{"n":1}}`} {
			if got := pi.Tool(tool, "ch").Text; got != want {
				t.Errorf("%s: %s", tool, got)
			}
		}
		pi.AnswerDialogs(wire.DialogResult{OK: true, Value: "v"})
		for _, want := range []string{`{"ok":true,"value":"v"}`, `{"ok":false,"value":""}`} {
			if got := pi.Tool("dialog", "").Text; got != want {
				t.Errorf("dialog: %s", got)
			}
		}
		pi.On(wire.HostExit, Refuse(rpc.Errorf(wire.CodeStale, "not now")))
		if _, err := pi.TryTool("exit", ""); !rpc.HasCode(err, wire.CodeStale) {
			t.Errorf("a refused call: %v", err)
		}
		pi.On(wire.HostExit, nil)
		pi.Tool("exit", "")
		pi.Await(Exited())
		if _, err := pi.TryTool("refuse", ""); !answered(err) {
			t.Errorf("a refusal: %v", err)
		}
	})
}

func TestWithheldAnswers(t *testing.T) {
	eachMode(t, func(t *testing.T, o Options) {
		o.MayDie = true
		pi := Start(t, o)
		session := NewSession(t.TempDir(), t.TempDir())
		pi.StartSession(session)
		for method, there := range map[string]int{"done": 1, "ignored": 0} {
			pi.On(wire.HostSend, map[string]Responder{"done": Withhold, "ignored": Ignore}[method])
			var call sync.WaitGroup
			calls := pi.State().Calls[wire.HostSend]
			var err error
			call.Go(func() { _, err = pi.TryTool("send", method) })
			pi.Await(Called(wire.HostSend, calls+1))
			if there == 1 {
				pi.Await(Sent(method))
			}
			pi.Kill()
			call.Wait()
			if !errors.Is(err, rpc.ErrClosed) {
				t.Errorf("%s: the call ended with %v", method, err)
			}
			if n := session.Count(method); n != there {
				t.Errorf("%s: the conversation holds it %d times", method, n)
			}
			pi.Restart()
			pi.change(func() { pi.running = false })
		}
	})
}

func TestFaults(t *testing.T) {
	eachMode(t, func(t *testing.T, o Options) {
		o.NoRevive = true
		pi := Start(t, o)
		session := NewSession(t.TempDir(), t.TempDir())
		pi.StartSession(session)
		pi.WriteRaw("garbage")
		pi.WriteRaw(`{"id":"raw","method":"nonesuch"}`)
		pi.Await(Heard(`"raw"`, "unknown method"))
		pi.WriteRaw(`{"id":"large","method":"tool.call","params":"` + strings.Repeat("x", wire.MaxFrame) + `"}`)
		pi.Await(Heard(`"large"`, fmt.Sprint(wire.CodeTooLarge)))

		pi.PauseReading()
		var call sync.WaitGroup
		call.Go(func() {
			if result, err := pi.TryTool("echo", "slow"); err != nil || result.Text != "slow" {
				t.Errorf("after a pause: %v, %v", result, err)
			}
		})
		pi.ResumeReading()
		call.Wait()

		pi.Kill()
		pi.Await(HelperEnded(1))
		if got := pi.Tool("echo", "again").Text; got != "again" { // started again, and told of the session
			t.Errorf("got %q", got)
		}
		pi.EndInput()
		pi.Await(HelperEnded(2))
		pi.Die(false)

		next := Start(t, o)
		next.StartSession(session)
		next.Tool("send", "after all")
		next.Await(Sent("after all"))
		next.Die(true)
	})
}

func TestPlayedRunsAndRevival(t *testing.T) {
	eachMode(t, func(t *testing.T, o Options) {
		o.MayDie = true
		o.Run = func(_ context.Context, text string) wire.RunSettledParams { return Done("answer to " + text) }
		pi := Start(t, o)
		pi.StartSession(NewSession(t.TempDir(), t.TempDir()))
		pi.Tool("prompt", "question")
		pi.Await(All(Notified("info", "settled: answer to question"), Idle(1)))
		pi.Kill()
		pi.Await(Notified("error", "the helper has ended"))
		pi.Await(func(s State) (Verdict, string) {
			return met(strings.Count(pi.Transcript(), `"again":true`) == 1, s, "the session was not taken up again")
		})
	})
}

func TestDeliver(t *testing.T) {
	pi := Start(t, Options{Serve: serveToy})
	pi.StartSession(NewSession(t.TempDir(), t.TempDir()))
	inbox := t.TempDir()
	for envelope, want := range map[string]bool{
		`{"kind":"reply","from":"child","in_reply_to":["r"]}`:    true,
		`{"kind":"reply","from":"stranger","in_reply_to":["r"]}`: false,
		`{"kind":"reply","from":"child","in_reply_to":["x"]}`:    false,
		`{"kind":"request","from":"child","in_reply_to":[]}`:     false,
	} {
		taken, err := pi.Deliver(inbox, wire.Inbound{Envelope: json.RawMessage(envelope)})
		if err != nil || taken != want {
			t.Errorf("%s: %v, %v", envelope, taken, err)
		}
	}
	pi.Await(StatusIs("staged", ".json"))
	if files, err := os.ReadDir(inbox); err != nil || len(files) != 1 {
		t.Errorf("staged: %v, %v", files, err)
	}
}

// fakeT lets a test fail without failing.
type fakeT struct {
	testing.TB
	mu       sync.Mutex
	said     strings.Builder
	failed   bool
	cleanups []func()
}

func (f *fakeT) Helper()           {}
func (f *fakeT) Cleanup(fn func()) { f.cleanups = append(f.cleanups, fn) }
func (f *fakeT) say(fail bool, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = f.failed || fail
	fmt.Fprintln(&f.said, text)
}
func (f *fakeT) Failed() bool                      { f.mu.Lock(); defer f.mu.Unlock(); return f.failed }
func (f *fakeT) Logf(format string, args ...any)   { f.say(false, fmt.Sprintf(format, args...)) }
func (f *fakeT) Error(args ...any)                 { f.say(true, fmt.Sprint(args...)) }
func (f *fakeT) Errorf(format string, args ...any) { f.say(true, fmt.Sprintf(format, args...)) }
func (f *fakeT) Fatalf(format string, args ...any) { f.Errorf(format, args...); panic(f) }

// failing runs test to its end, clean-up included, and gives what it said.
func failing(t *testing.T, test func(testing.TB)) string {
	f := &fakeT{TB: t}
	func() {
		defer func() {
			if r := recover(); r != nil && r != any(f) {
				panic(r)
			}
		}()
		test(f)
	}()
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		f.cleanups[i]()
	}
	if !f.failed {
		t.Error("did not fail")
	}
	return f.said.String()
}

func TestFailuresSpeak(t *testing.T) {
	for name, test := range map[string]struct {
		body func(testing.TB)
		want []string
	}{
		"unmeetable": {func(t testing.TB) {
			pi := Start(t, Options{MayDie: true, NoRevive: true})
			pi.StartSession(NewSession("/agent", "/cwd"))
			pi.TryTool("crash", "")
			pi.Await(Sent("never"))
		}, []string{`this can't happen any more: none of 0 messages contains ["never"], and the helper is gone: exit status 7`, "-->", `"crash"`, "*** the helper has ended"}},
		"twice": {func(t testing.TB) {
			pi := Start(t, Options{Serve: serveToy})
			pi.StartSession(NewSession("/agent", "/cwd"))
			pi.Tool("send", "same")
			pi.Settle(Done(""))
			pi.Tool("send", "same")
			pi.Await(Sent("same"))
		}, []string{`2 messages contain ["same"]`}},
		"once met": {func(t testing.TB) {
			pi := Start(t, Options{Serve: serveToy})
			pi.StartSession(NewSession("/agent", "/cwd"))
			pi.Tool("send", "same")
			pi.Await(OnceMet(Sent("same"), Notified("", "x")))
		}, []string{"by then, none of 0 notices"}},
		"crash": {func(t testing.TB) {
			pi := Start(t, Options{})
			pi.TryTool("crash", "")
		}, []string{"exit status 7"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := failing(t, test.body)
			for _, want := range test.want {
				if !strings.Contains(said, want) {
					t.Errorf("%q is missing in\n%s", want, said)
				}
			}
		})
	}
}

func TestLeakIsFound(t *testing.T) {
	label := ""
	hold := make(chan struct{})
	started := make(chan struct{})
	f := &fakeT{TB: t}
	labelled(f)(func() {
		label = fmt.Sprint(lastLabel.Load())
		go func() { close(started); <-hold }()
	})
	<-started
	if stacks := goroutinesOf(label); !strings.Contains(stacks, "TestLeakIsFound") {
		t.Errorf("the leak was not seen:\n%s", stacks)
	}
	close(hold)
	f.cleanups[0]() // waits for the end of the goroutine
	if f.failed {
		t.Errorf("a goroutine that ended counts as left over:\n%s", f.said.String())
	}
}
