package faulttest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pi-cradle/rpc/rpctest"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/records"
	"pi-cradle/squire/session"
)

// open starts a pi whose runs the test ends itself, on the parent's session.
func (w *world) open() *rpctest.Pi {
	o := w.options(w.inTmux, "")
	o.Run = nil
	pi := rpctest.Start(w.t, o)
	pi.StartSession(w.parent)
	return pi
}

// openDelegate is open for the delegate that has arrived in its pane.
func (w *world) openDelegate(a arrival) (*rpctest.Pi, *rpctest.Session) {
	s := rpctest.OpenSession(w.agentDir, a.Cwd, a.ID)
	s.Start.SessionFile = a.File
	o := w.options(nil, "")
	o.Run = nil
	pi := rpctest.Start(w.t, o)
	pi.StartSession(s)
	return pi, s
}

// delegate starts one by the tool and plays its pi up to the point at which it has its task.
func (w *world) delegate(pi *rpctest.Pi) (*rpctest.Pi, *rpctest.Session, arrival) {
	w.t.Helper()
	if r := pi.Tool("delegate", map[string]any{"agent": "scout", "task": task}); r.IsError {
		w.t.Fatal(r.Text)
	}
	select {
	case a := <-w.arrivals:
		child, s := w.openDelegate(a)
		child.Await(rpctest.Prompted(task))
		return child, s, a
	case <-time.After(rpctest.Deadline):
		w.t.Fatalf("no pane has said hello; the session's messages are %+v", w.parent.Messages())
		panic("unreachable")
	}
}

const wakeText = "arrived just before this session was interrupted"

func TestRecordsThatCannotBeReadBlockAndStay(t *testing.T) {
	good := `{"version":1,"session":%q,"data":{}}`
	for name, text := range map[string]string{
		"garbage": "{", "newer": `{"version":2,"session":%q,"data":{}}`, "another's": strings.Replace(good, "%q", `"x"`, 1),
		"wrong types": `{"version":1,"session":%q,"data":{"delegations":7}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			path := records.In(w.agentDir).Children(w.parent.ID())
			if strings.Contains(text, "%q") {
				text = fmt.Sprintf(text, w.parent.ID())
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			pi := w.open()
			pi.Await(rpctest.Notified("error", path, "move the file away"))
			for _, tool := range []string{"delegate", "delegation_status"} {
				if r := pi.Tool(tool, map[string]any{"agent": "scout", "task": task}); !r.IsError || !strings.Contains(r.Text, path) {
					t.Errorf("%s: %s", tool, r.Text)
				}
			}
			pi.Begin("go on")
			pi.Settle(rpctest.Done("fine"))
			if data, err := os.ReadFile(path); err != nil || string(data) != text {
				t.Errorf("the record holds %q now, %v", data, err)
			}
		})
	}
}

func TestOneProcessActsForASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.open()
	child, _, _ := w.delegate(owner)
	double := w.open()
	double.Await(rpctest.Notified("error", "already served by process", records.In(w.agentDir).Lock(w.parent.ID())))
	if r := double.Tool("delegate", map[string]any{"agent": "scout", "task": task}); !r.IsError || !strings.Contains(r.Text, "already served") {
		t.Errorf("the double could launch: %s", r.Text)
	}
	double.Close()
	child.Settle(rpctest.Done(answer))
	owner.Await(rpctest.Sent(answer))
	owner.Die(true) // a crash leaves the lock to the kernel
	next := w.open()
	if r := next.Tool("delegation_status", map[string]any{}); r.IsError || !strings.Contains(r.Text, "state: done") {
		t.Errorf("the next owner: %s", r.Text)
	}
}

func TestACopyOfASessionOwnsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pi := w.open()
	w.delegate(pi)
	if err := pi.EndSession("fork"); err != nil {
		t.Fatal(err)
	}
	fork := rpctest.NewSession(w.agentDir, w.parent.Start.Cwd)
	res := pi.StartSession(fork)
	if res.Role != "root" || len(res.Claims.Requests) > 0 {
		t.Errorf("the fork got %+v", res)
	}
	if r := pi.Tool("delegation_status", map[string]any{}); r.Text != "No delegations." {
		t.Errorf("the fork knows of %s", r.Text)
	}
}

func TestAResultThatWasShownGetsItsRunAfterReopening(t *testing.T) {
	for name, c := range map[string]struct {
		outcome *wire.RunSettledParams // how the run with the result ended before pi did; nil for not at all
		wakes   int
	}{
		"cut short by a crash": {nil, 1},
		"failed":               {ptr(rpctest.Failed("503")), 1},
		"stopped by the user":  {ptr(rpctest.Aborted()), 0},
		"completed":            {ptr(rpctest.Done("thanks")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			pi := w.open()
			child, _, _ := w.delegate(pi)
			child.Settle(rpctest.Done(answer))
			pi.Await(rpctest.Sent(answer))
			if c.outcome != nil {
				pi.Settle(*c.outcome)
			}
			pi.Die(true)
			again := w.open()
			again.Await(rpctest.Called(wire.HostStatus, 0))
			if c.wakes > 0 {
				again.Await(rpctest.Sent(wakeText))
			}
			// Whatever the restart has to send is on its way before this is answered, for it is asked after the restored state.
			again.Begin("and now?")
			again.Settle(rpctest.Done("well"))
			if n := w.parent.Count(answer); n != 1 {
				t.Errorf("the result was shown %d times", n)
			}
			if n := w.parent.Count(wakeText); n != c.wakes {
				t.Errorf("%d wakes, want %d", n, c.wakes)
			}
			for _, d := range w.record() {
				if d.Result == nil || d.Result.Delivery != session.Processed || d.Result.Body != "" {
					t.Errorf("left as %+v", d.Result)
				}
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestAResultForAStoppedSessionWaitsForItsUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pi := w.open()
	child, _, _ := w.delegate(pi)
	child.Settle(rpctest.Done(answer))
	pi.Await(rpctest.Sent(answer))
	pi.Settle(rpctest.Aborted())
	second, _, _ := w.delegate(pi)
	pi.Die(true)
	again := w.open()
	if again.State().Running {
		t.Error("reopening started a run that the user had stopped")
	}
	second.Settle(rpctest.Done("something fresh"))
	again.Await(rpctest.Sent("something fresh"))
	for _, m := range w.parent.Messages() {
		if strings.Contains(m.Content, "something fresh") && !m.Trigger {
			t.Error("a fresh result started no run")
		}
	}
}

func TestCompletionHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pi := w.open()
	child, _, _ := w.delegate(pi)
	held := rpctest.Done("too early")
	for _, state := range []string{"waiting", "malformed"} {
		held.Holds = state
		child.Settle(held)
		if child.State().Exited {
			t.Fatalf("the delegate ended while a hold was %s", state)
		}
		child.Begin("go on")
	}
	child.Settle(rpctest.Done(answer))
	pi.Await(rpctest.Sent(answer))
	if w.parent.Count("too early") != 0 {
		t.Error("a held run was reported")
	}
}

func TestAReplyFromSomebodyElseIsNotTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pi := w.open()
	child, _, _ := w.delegate(pi)
	var request string
	for id := range pi.State().Claims.Requests {
		request = id
	}
	forged := fmt.Sprintf(`{"id":"11111111-1111-4111-8111-111111111111","from":"stranger","to":%q,"kind":"reply","hops":0,"in_reply_to":[%q],"status":"done","ts":"2026-01-01T00:00:00.000Z","body":"forged"}`, w.parent.ID(), request)
	path := filepath.Join(w.dir, ".local", "state", "pi-session-mail", w.parent.ID(), "new", "000000000000001-11111111-1111-4111-8111-111111111111.json")
	draft := filepath.Join(w.dir, "draft") // mail comes whole, by a rename
	if err := os.WriteFile(draft, []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(draft, path); err != nil {
		t.Fatal(err)
	}
	child.Settle(rpctest.Done(answer))
	pi.Await(rpctest.Sent(answer))
	if w.parent.Count("forged") != 0 {
		t.Error("a stranger answered")
	}
	if _, err := os.Stat(path); err != nil {
		there, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "..", "*", "*"))
		t.Errorf("somebody else's mail was touched: %v; there are %q", err, there)
	}
}

func TestALateAnswerAfterGoneAndAfterClose(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pi := w.open()
	child, _, a := w.delegate(pi)
	if _, err := a.conn.Write([]byte{3}); err != nil { // the pane's program ends with that code
		t.Fatal(err)
	}
	pi.Await(rpctest.Sent(goneText, "exit status 3"))
	pi.Settle(rpctest.Done("a pity"))
	child.Settle(rpctest.Done(answer))
	pi.Await(rpctest.Sent(answer))
	if r := pi.Tool("delegation_status", map[string]any{}); !strings.Contains(r.Text, "state: done") {
		t.Errorf("status says %s", r.Text)
	}
	pi.Settle(rpctest.Done("better"))

	second, _, b := w.delegate(pi)
	r := pi.Tool("delegation_close", map[string]any{"id": b.ID})
	if r.IsError || !strings.Contains(string(r.Structured), `"outcome":"killed"`) {
		t.Fatalf("close: %s", r.Text)
	}
	if r := pi.Tool("delegation_close", map[string]any{"id": b.ID}); !strings.Contains(string(r.Structured), `"outcome":"already-closed"`) {
		t.Errorf("second close: %s", r.Text)
	}
	second.Settle(rpctest.Done("late"))
	pi.Await(rpctest.Sent("late"))
	if r := pi.Tool("delegation_status", map[string]any{"id": b.ID}); !strings.Contains(r.Text, "state: closed") {
		t.Errorf("status after a late answer: %s", r.Text)
	}
	if w.parent.Count(goneText) != 1 {
		t.Error("a close was reported as a loss")
	}
}
