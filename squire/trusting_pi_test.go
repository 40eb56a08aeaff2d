package squire

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
	"pi-cradle/internal/usererr"
	"pi-cradle/rpc"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/records"
	"pi-cradle/squire/session"
	"pi-cradle/squire/trust"
)

// The real pi shows the questions here, and keeps the answers in its own trust store. Its helper is this test binary, which takes
// launches over a socket.
type realPi struct {
	*testenv.Env
	foreign string // a folder with an extension
	sockets int
}

func newRealPi(t *testing.T, pi testenv.PiVersion) *realPi {
	t.Helper()
	t.Parallel()
	helper, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &realPi{Env: testenv.New(t, testenv.Options{Pi: pi, Environ: map[string]string{"CRADLE_HELPER": helper}, Width: 140, Height: 40})}
	r.foreign = filepath.Join(r.Dir("src"), "foreign")
	r.Write(filepath.Join(r.foreign, ".pi", "extensions", "own.ts"), "export default function () {}\n")
	return r
}

// open starts pi, and connects to its helper.
func (r *realPi) open(o testenv.PiOptions) (*testenv.Pi, *rpc.Conn) {
	r.T.Helper()
	socket := r.socket()
	o.Environ = map[string]string{testSocket: socket, "PI_UNATTENDED": o.Environ["PI_UNATTENDED"]}
	return r.Start(o), r.connect(socket)
}

func (r *realPi) socket() string {
	r.sockets++
	return filepath.Join(r.Root, strings.Repeat("s", r.sockets))
}

func (r *realPi) connect(socket string) *rpc.Conn {
	r.T.Helper()
	var stream net.Conn
	testenv.Await(r.T, "the helper's socket", func() bool {
		var err error
		stream, err = net.Dial("unix", socket)
		return err == nil
	})
	conn := rpc.NewConn(stream, rpc.NewMux(), r.T.Logf)
	r.T.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (r *realPi) launch(conn *rpc.Conn) <-chan verdict {
	out := make(chan verdict, 1)
	go func() {
		var res testTrustResult
		site := testSite{Own: trust.Place{Dir: r.Work}, Target: trust.Place{Dir: r.foreign}}
		err := conn.Call(context.Background(), testTrust, site, &res)
		out <- verdict{res.Approve, res.LeftOut, err}
	}()
	return out
}

// saved is pi's trust store as it lies on disk.
func (r *realPi) saved() map[string]bool {
	r.T.Helper()
	saved := map[string]bool{}
	data, err := os.ReadFile(filepath.Join(r.AgentDir, "trust.json"))
	if err == nil {
		err = json.Unmarshal(data, &saved)
	} else if os.IsNotExist(err) {
		err = nil
	}
	if err != nil {
		r.T.Fatalf("%v", err)
	}
	return saved
}

// asked waits for the question on a pi's screen.
func (r *realPi) asked(p *testenv.Pi) string {
	r.T.Helper()
	return p.AwaitScreen("the question", func(screen string) bool {
		return strings.Contains(screen, "Trust the project folder") && strings.Contains(screen, "Do not trust (this session only)")
	})
}

func answerAndSee(t *testing.T, r *realPi, root *testenv.Pi, launcher *rpc.Conn, keys []string, approve bool, saves map[string]bool) {
	t.Helper()
	v := r.launch(launcher)
	screen := r.asked(root)
	t.Logf("on the screen:\n%s", screen)
	for _, line := range []string{"Trust the project folder " + r.foreign + "?", "→ Trust\n", "Trust parent folder (" + filepath.Dir(r.foreign) + ")"} {
		if !strings.Contains(trimmed(screen), line) {
			t.Errorf("%q is not on the screen", line)
		}
	}
	root.Keys(append(keys, "Enter")...)
	if got := within(t, "the verdict", v); got.err != nil || got.approve != approve {
		t.Errorf("%+v", got)
	}
	if saved := r.saved(); !maps.Equal(saved, saves) {
		t.Errorf("saved: %v", saved)
	}
	root.AwaitScreen("the end of the question", func(screen string) bool { return !strings.Contains(screen, "Trust the project folder") })
}

// trimmed is a screen without the blanks at its lines' ends.
func trimmed(screen string) string {
	lines := strings.Split(screen, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func down(n int) []string { return strings.Fields(strings.Repeat("Down ", n)) }

func TestRealStore(t *testing.T) {
	r := newRealPi(t, testenv.PiVersion{})
	root, conn := r.open(testenv.PiOptions{})
	none := map[string]bool{}
	answerAndSee(t, r, root, conn, down(2), true, none)  // this session only
	answerAndSee(t, r, root, conn, down(4), false, none) // not, this session only

	v := r.launch(conn)
	r.asked(root)
	root.Keys("Escape")
	if got := within(t, "the refusal", v); got.err == nil || !strings.Contains(got.err.Error(), "cancelled") || len(r.saved()) > 0 {
		t.Errorf("%+v, saved: %v", got, r.saved())
	}

	answerAndSee(t, r, root, conn, down(3), false, map[string]bool{r.foreign: false})
	if got := within(t, "the verdict", r.launch(conn)); got.err != nil || got.approve { // as pi finds it
		t.Errorf("after a saved no: %+v", got)
	}
	r.Write(filepath.Join(r.AgentDir, "trust.json"), "{}")
	answerAndSee(t, r, root, conn, down(0), true, map[string]bool{r.foreign: true})
	r.Write(filepath.Join(r.AgentDir, "trust.json"), "{}")
	answerAndSee(t, r, root, conn, down(1), true, map[string]bool{filepath.Dir(r.foreign): true})
	if got := within(t, "the verdict", r.launch(conn)); got.err != nil || !got.approve {
		t.Errorf("after a saved yes above: %+v", got)
	}

	r.Write(filepath.Join(r.AgentDir, "trust.json"), "no store")
	if got := within(t, "the refusal", r.launch(conn)); got.err == nil || got.approve || !strings.Contains(usererr.Text(got.err, ""), "trust.json") {
		t.Errorf("with a broken store: %+v", got)
	}
	if data, err := os.ReadFile(filepath.Join(r.AgentDir, "trust.json")); err != nil || string(data) != "no store" {
		t.Errorf("the broken store is now %q, %v", data, err)
	}
}

func TestOldestStore(t *testing.T) {
	r := newRealPi(t, testenv.Oldest(t))
	root, conn := r.open(testenv.PiOptions{})
	answerAndSee(t, r, root, conn, down(1), true, map[string]bool{filepath.Dir(r.foreign): true})
	if got := within(t, "the verdict", r.launch(conn)); got.err != nil || !got.approve {
		t.Errorf("%+v", got)
	}
}

// A delegate's own pi looks and saves; the question is before the user of the root, and goes with either of the two.
func TestRealNested(t *testing.T) {
	r := newRealPi(t, testenv.PiVersion{})
	root, rootConn := r.open(testenv.PiOptions{})
	if err := rootConn.Call(t.Context(), testOffer, wire.Empty{}, nil); err != nil {
		t.Fatal(err)
	}
	id, file := r.NewSession(r.Work)
	err := records.In(r.AgentDir).SaveBirth(id, records.Birth{Placement: "work-delegates", Identity: session.Identity{
		Parent: "the-lead", Root: root.Session, Depth: 2, Agent: "coder", Chain: []string{"lead", "coder"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	worker, conn := r.open(testenv.PiOptions{
		Session: &testenv.Pi{Session: id, File: file}, Background: true, Environ: map[string]string{"PI_UNATTENDED": "1"},
	})
	v := r.launch(conn)
	if screen := r.asked(root); !strings.Contains(screen, "lead → coder (session "+id+")") {
		t.Errorf("the question does not say who asks:\n%s", screen)
	}
	if strings.Contains(worker.Screen(), "Trust the project") {
		t.Error("the delegate asks too")
	}
	root.Keys("Enter")
	if got := within(t, "the verdict", v); got.err != nil || !got.approve {
		t.Errorf("%+v", got)
	}
	if saved := r.saved(); !maps.Equal(saved, map[string]bool{r.foreign: true}) {
		t.Errorf("saved: %v", saved)
	}

	r.Write(filepath.Join(r.AgentDir, "trust.json"), "{}")
	v = r.launch(conn)
	r.asked(root)
	worker.Kill()
	root.AwaitScreen("the question to go", func(screen string) bool { return !strings.Contains(screen, "Trust the project folder") })
	if got := within(t, "the end", v); got.err == nil {
		t.Errorf("%+v", got)
	}
	if saved := r.saved(); len(saved) > 0 {
		t.Errorf("saved: %v", saved)
	}
	root.Quit()
	if left, err := os.ReadDir(filepath.Join(r.AgentDir, "squire", "trust")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestRealRPC(t *testing.T) {
	r := newRealPi(t, testenv.PiVersion{})
	socket := r.socket()
	r.Setenv(testSocket, socket)
	pi := r.StartRPC()
	v := r.launch(r.connect(socket))
	ev := pi.Await("the question", func(ev testenv.Event) bool { return ev.Type == "extension_ui_request" && ev.Method == "select" })
	pi.Send(map[string]any{"type": "extension_ui_response", "id": ev.ID, "value": "Do not trust"})
	if got := within(t, "the verdict", v); got.err != nil || got.approve {
		t.Errorf("%+v", got)
	}
	if saved := r.saved(); !maps.Equal(saved, map[string]bool{r.foreign: false}) {
		t.Errorf("saved: %v", saved)
	}
}
