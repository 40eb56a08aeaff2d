package squire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pi-cradle/internal/usererr"
	"pi-cradle/rpc/rpctest"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/records"
	"pi-cradle/squire/session"
	"pi-cradle/squire/trust"
	"pi-cradle/squire/trust/desk"
)

// testSite is a site as it is asked for over the wire.
type testSite struct {
	Own, Target trust.Place
	Protected   bool
}

func (s testSite) site() site {
	return site{agent: "scout", own: s.Own, target: s.Target, protected: s.Protected}
}

// family is a root session and a delegate's, each with a helper process of its own, over one agent directory.
type family struct {
	t        *testing.T
	agentDir string
	home     trust.Place // where both work
	foreign  string      // a folder with things that need trust
	root     *rpctest.Pi
	worker   *rpctest.Pi // nil until employ
	rootOf   *rpctest.Session
	shown    chan *dialog
}

// dialog is a question before the root's user.
type dialog struct {
	wire.DialogParams
	answer chan string   // a label, "" for Escape
	gone   chan struct{} // closed when it has been taken away
}

func newFamily(t *testing.T, prepare ...func(*rpctest.Session)) *family {
	t.Helper()
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &family{t: t, agentDir: filepath.Join(base, "agent"), foreign: filepath.Join(base, "src", "foreign"), shown: make(chan *dialog, 16)}
	f.home = trust.Place{Dir: filepath.Join(base, "home")}
	for _, dir := range []string{f.agentDir, f.home.Dir, filepath.Join(f.foreign, ".pi", "extensions")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	f.rootOf = rpctest.NewSession(f.agentDir, f.home.Dir)
	for _, change := range prepare {
		change(f.rootOf)
	}
	f.root = f.start(f.rootOf)
	f.root.On(wire.HostDialog, func(ctx context.Context, raw json.RawMessage, _ func() (any, error)) (any, error) {
		d := &dialog{answer: make(chan string, 1), gone: make(chan struct{})}
		if err := json.Unmarshal(raw, &d.DialogParams); err != nil {
			return nil, err
		}
		f.shown <- d
		select {
		case label := <-d.answer:
			return wire.DialogResult{OK: label != "", Value: label}, nil
		case <-ctx.Done():
			close(d.gone)
			return wire.DialogResult{}, nil
		}
	})
	return f
}

func (f *family) start(s *rpctest.Session, env ...string) *rpctest.Pi {
	f.t.Helper()
	home := f.t.TempDir()
	pi := rpctest.Start(f.t, rpctest.Options{MayDie: true, Env: append(env, "HOME="+home, "XDG_STATE_HOME="+home, "PATH="+os.Getenv("PATH"))})
	pi.StartSession(s)
	return pi
}

const workerID = "the-worker"

// employ starts the delegate's pi.
func (f *family) employ() *family {
	f.t.Helper()
	f.worker = f.delegate(workerID)
	f.offer()
	return f
}

func (f *family) delegate(id string) *rpctest.Pi {
	f.t.Helper()
	err := records.In(f.agentDir).SaveBirth(id, records.Birth{Placement: "home-delegates", Identity: session.Identity{
		Parent: f.rootOf.ID(), Root: f.rootOf.ID(), Depth: 2, Agent: "coder", Chain: []string{"lead", "coder"},
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	return f.start(rpctest.OpenSession(f.agentDir, f.home.Dir, id), "PI_UNATTENDED=1")
}

func (f *family) offer() {
	f.t.Helper()
	if err := f.root.Ask(testOffer, wire.Empty{}, nil); err != nil {
		f.t.Fatal(err)
	}
}

type verdict struct {
	approve bool
	leftOut bool
	err     error
}

// launch asks what a launch would ask, until ctx ends.
func (f *family) launch(ctx context.Context, pi *rpctest.Pi, target trust.Place) <-chan verdict {
	return f.launchAt(ctx, pi, testSite{Own: f.home, Target: target})
}

func (f *family) launchAt(ctx context.Context, pi *rpctest.Pi, s testSite) <-chan verdict {
	out := make(chan verdict, 1)
	go func() {
		var res testTrustResult
		err := pi.AskUntil(ctx, testTrust, s, &res)
		out <- verdict{res.Approve, res.LeftOut, err}
	}()
	return out
}

func within[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(rpctest.Deadline):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// unasked fails when a question was shown that nobody has looked at.
func (f *family) unasked() {
	f.t.Helper()
	select {
	case d := <-f.shown:
		f.t.Errorf("asked was: %s", d.Title)
	default:
	}
}

func (f *family) saved() map[string]bool {
	f.t.Helper()
	saved, err := rpctest.SavedTrust(f.agentDir)
	if err != nil {
		f.t.Fatal(err)
	}
	return saved
}

func (f *family) save(decisions map[string]bool) {
	f.t.Helper()
	data, err := json.Marshal(decisions)
	if err != nil {
		f.t.Fatal(err)
	}
	f.writeStore(string(data))
}

func (f *family) writeStore(text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.agentDir, "trust.json"), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// refused expects a launch that was not allowed to go on, with all of these words in the reason, and an unchanged store.
func (f *family) refused(v verdict, words ...string) {
	f.t.Helper()
	if v.err == nil || v.approve {
		f.t.Fatalf("the launch went on: %+v", v)
	}
	text := usererr.Text(v.err, "hint: ")
	for _, word := range words {
		if !strings.Contains(text, word) {
			f.t.Errorf("%q is not in %q", word, text)
		}
	}
	if saved := f.saved(); len(saved) > 0 {
		f.t.Errorf("saved: %v", saved)
	}
}

// fromBoth runs a test with a launch of the root itself, and with one of its delegate.
func fromBoth(t *testing.T, test func(f *family, pi *rpctest.Pi)) {
	t.Run("root", func(t *testing.T) {
		f := newFamily(t)
		test(f, f.root)
	})
	t.Run("delegate", func(t *testing.T) {
		f := newFamily(t).employ()
		test(f, f.worker)
	})
}

func TestFiveAnswers(t *testing.T) {
	const again = true
	for _, c := range []struct {
		label   string
		approve bool
		saves   func(f *family) map[string]bool
		again   bool // the next launch asks again
	}{
		{"Trust", true, func(f *family) map[string]bool { return map[string]bool{f.foreign: true} }, !again},
		{"Trust parent folder (%s)", true, func(f *family) map[string]bool { return map[string]bool{filepath.Dir(f.foreign): true} }, !again},
		{"Trust (this session only)", true, func(*family) map[string]bool { return map[string]bool{} }, again},
		{"Do not trust", false, func(f *family) map[string]bool { return map[string]bool{f.foreign: false} }, !again},
		{"Do not trust (this session only)", false, func(*family) map[string]bool { return map[string]bool{} }, again},
	} {
		t.Run(c.label, func(t *testing.T) {
			fromBoth(t, func(f *family, pi *rpctest.Pi) {
				label := c.label
				if strings.Contains(label, "%s") {
					label = fmt.Sprintf(label, filepath.Dir(f.foreign))
				}
				first := f.launch(f.t.Context(), pi, trust.Place{Dir: f.foreign})
				within(f.t, "the question", f.shown).answer <- label
				if v := within(f.t, "the verdict", first); v.err != nil || v.approve != c.approve || v.leftOut == c.approve {
					f.t.Errorf("%+v", v)
				}
				if saved := f.saved(); !maps.Equal(saved, c.saves(f)) {
					f.t.Errorf("saved: %v", saved)
				}
				second := f.launch(f.t.Context(), pi, trust.Place{Dir: f.foreign})
				if c.again {
					within(f.t, "the second question", f.shown).answer <- label
				}
				if v := within(f.t, "the second verdict", second); v.err != nil || v.approve != c.approve {
					f.t.Errorf("the second time: %+v", v)
				}
				f.unasked()
			})
		})
	}
}

func TestQuestionSaysWhoAndWhere(t *testing.T) {
	fromBoth(t, func(f *family, pi *rpctest.Pi) {
		place := trust.Place{Dir: f.foreign, MainRoot: "/main", CommonDir: "/main/.git", CheckoutRoot: f.foreign}
		v := f.launch(f.t.Context(), pi, place)
		d := within(f.t, "the question", f.shown)
		words := []string{f.foreign, "Main repository: /main", "Agent scout", "saved for /main"}
		if pi == f.worker {
			words = append(words, "lead → coder", workerID)
		} else {
			words = append(words, "this session", f.rootOf.ID())
		}
		for _, word := range words {
			if !strings.Contains(d.Title, word) {
				f.t.Errorf("%q is not in\n%s", word, d.Title)
			}
		}
		want := []string{"Trust", "Trust parent folder (/)", "Trust (this session only)", "Do not trust", "Do not trust (this session only)"}
		if d.Kind != "select" || !slices.Equal(d.Options, want) {
			f.t.Errorf("%s of %q", d.Kind, d.Options)
		}
		d.answer <- ""
		f.refused(within(f.t, "the refusal", v), "cancelled", "nothing was started")
	})
}

// What needs no question needs no root either.
func TestDecidedWithoutAQuestion(t *testing.T) {
	f := newFamily(t)
	worker := f.delegate(workerID) // and no desk to ask at
	plain := filepath.Join(filepath.Dir(f.foreign), "plain")
	linked := trust.Place{Dir: f.foreign, MainRoot: "/main", CommonDir: "/main/.git", CheckoutRoot: f.foreign}
	below := trust.Place{Dir: filepath.Join(f.foreign, "sub"), MainRoot: f.foreign, CommonDir: f.foreign + "/.git", CheckoutRoot: f.foreign}
	for name, c := range map[string]struct {
		saved  map[string]bool
		target trust.Place

		want, leftOut bool
	}{
		"inherited":                       {nil, f.home, true, false},
		"nothing that needs trust":        {nil, trust.Place{Dir: plain}, false, false},
		"saved yes":                       {map[string]bool{f.foreign: true}, trust.Place{Dir: f.foreign}, true, false},
		"saved no":                        {map[string]bool{f.foreign: false}, trust.Place{Dir: f.foreign}, false, true},
		"on an ancestor":                  {map[string]bool{filepath.Dir(f.foreign): true}, trust.Place{Dir: f.foreign}, true, false},
		"nearer no":                       {map[string]bool{"/": true, f.foreign: false}, trust.Place{Dir: f.foreign}, false, true},
		"linked worktree":                 {map[string]bool{"/main": true, f.foreign: false}, linked, true, false},
		"linked worktree, denied":         {map[string]bool{"/main": false, f.foreign: true}, linked, false, true},
		"subdirectory with a no":          {map[string]bool{f.foreign: true, below.Dir: false}, below, false, false},
		"subdirectory of what is trusted": {map[string]bool{f.foreign: true}, below, true, false},
	} {
		f.save(c.saved)
		for who, pi := range map[string]*rpctest.Pi{"root": f.root, "delegate": worker} {
			if v := within(t, "the verdict", f.launch(t.Context(), pi, c.target)); v.err != nil || v.approve != c.want || v.leftOut != c.leftOut {
				t.Errorf("%s, %s: %+v", name, who, v)
			}
		}
	}
	f.unasked()
}

// The trust of the parent's repository goes to its other checkouts and to nothing else; nobody is asked about it.
func TestInheritedWithinTheRepository(t *testing.T) {
	f := newFamily(t, func(s *rpctest.Session) { s.Start.Trusted = false })
	f.save(map[string]bool{f.foreign: true})
	own := trust.Place{Dir: f.home.Dir, MainRoot: f.home.Dir, CommonDir: f.home.Dir + "/.git", CheckoutRoot: f.home.Dir}
	worktree := trust.Place{Dir: f.foreign, MainRoot: f.home.Dir, CommonDir: own.CommonDir, CheckoutRoot: f.foreign}
	if v := within(t, "the verdict", f.launchAt(t.Context(), f.root, testSite{Own: own, Target: worktree})); v.err != nil || v.approve || !v.leftOut {
		t.Errorf("%+v", v)
	}
	f.writeStore("broken") // and of no concern
	if v := within(t, "the verdict", f.launchAt(t.Context(), f.root, testSite{Own: own, Target: worktree})); v.err != nil || v.approve {
		t.Errorf("%+v", v)
	}
	f.unasked()
}

// A checkout yet to be made is asked about by what it is going to hold.
func TestProtectedToBe(t *testing.T) {
	f := newFamily(t)
	v := f.launchAt(t.Context(), f.root, testSite{Own: f.home, Target: trust.Place{Dir: filepath.Join(f.agentDir, "none")}, Protected: true})
	within(t, "the question", f.shown).answer <- "Trust (this session only)"
	if v := within(t, "the verdict", v); v.err != nil || !v.approve {
		t.Errorf("%+v", v)
	}
}

func TestNobodyToAsk(t *testing.T) {
	t.Run("no UI", func(t *testing.T) {
		f := newFamily(t, func(s *rpctest.Session) { s.Start.HasUI, s.Start.Mode = false, "print" })
		f.refused(within(t, "the refusal", f.launch(t.Context(), f.root, trust.Place{Dir: f.foreign})), "nobody here to ask", fmt.Sprintf("hint: open pi in %q", f.foreign))
		f.offer() // does nothing
		f.refused(within(t, "the refusal", f.launch(t.Context(), f.delegate(workerID), trust.Place{Dir: f.foreign})), "root session is not there")
	})
	t.Run("unattended", func(t *testing.T) {
		f := newFamily(t)
		other := f.start(rpctest.NewSession(f.agentDir, f.home.Dir), "PI_UNATTENDED=1")
		f.refused(within(t, "the refusal", f.launch(t.Context(), other, trust.Place{Dir: f.foreign})), "nobody here to ask")
	})
	t.Run("no root", func(t *testing.T) {
		f := newFamily(t)
		f.refused(within(t, "the refusal", f.launch(t.Context(), f.delegate(workerID), trust.Place{Dir: f.foreign})), "root session is not there", "hint: open the root session")
		f.unasked()
	})
}

// Launches that come together ask one after the other, and what the first saved needs no second question.
func TestQueueReadsAgain(t *testing.T) {
	f := newFamily(t).employ()
	third := f.delegate("the-third")
	verdicts := []<-chan verdict{}
	for _, pi := range []*rpctest.Pi{f.root, f.worker, third, f.root} {
		verdicts = append(verdicts, f.launch(t.Context(), pi, trust.Place{Dir: f.foreign}))
	}
	within(t, "the question", f.shown).answer <- "Trust"
	for _, ch := range verdicts {
		if v := within(t, "a verdict", ch); v.err != nil || !v.approve {
			t.Errorf("%+v", v)
		}
	}
	f.unasked()
	if n := f.root.State().Calls[wire.HostDialog]; n != 1 {
		t.Errorf("%d questions", n)
	}
}

func TestOneQuestionAtATime(t *testing.T) {
	f := newFamily(t).employ()
	first := f.launch(t.Context(), f.worker, trust.Place{Dir: f.foreign})
	second := f.launch(t.Context(), f.root, trust.Place{Dir: f.foreign})
	for range 2 {
		d := within(t, "a question", f.shown)
		f.unasked()
		d.answer <- "Do not trust (this session only)"
	}
	for _, ch := range []<-chan verdict{first, second} {
		if v := within(t, "a verdict", ch); v.err != nil || v.approve {
			t.Errorf("%+v", v)
		}
	}
}

func TestStoreThatFails(t *testing.T) {
	broken := errors.New("disk on fire")
	fromBoth(t, func(f *family, pi *rpctest.Pi) {
		pi.On(wire.HostTrustLook, rpctest.Refuse(broken))
		f.refused(within(f.t, "the refusal", f.launch(f.t.Context(), pi, trust.Place{Dir: f.foreign})), "can't be read", "disk on fire")
		f.unasked()
		pi.On(wire.HostTrustLook, nil)
		pi.On(wire.HostTrustSave, rpctest.Refuse(broken))
		v := f.launch(f.t.Context(), pi, trust.Place{Dir: f.foreign})
		within(f.t, "the question", f.shown).answer <- "Trust"
		f.refused(within(f.t, "the refusal", v), "can't be saved", "disk on fire")
	})
}

// Each way in which a launch ends before its answer: the question goes, nothing is saved, and the next one is asked.
func TestLaunchEndsFirst(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(f *family, cancel func())
		words []string
	}{
		"aborted":                     {func(_ *family, cancel func()) { cancel() }, nil},
		"the delegate's session ends": {func(f *family, _ func()) { f.ended(f.worker) }, []string{"session has ended"}},
		"the delegate's helper dies":  {func(f *family, _ func()) { f.worker.Kill() }, nil},
		"the root's session ends":     {func(f *family, _ func()) { f.ended(f.root) }, []string{"root session has ended"}},
		"the root's helper dies":      {func(f *family, _ func()) { f.root.Kill() }, []string{"root session has ended"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFamily(t).employ()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			v := f.launch(ctx, f.worker, trust.Place{Dir: f.foreign})
			d := within(t, "the question", f.shown)
			c.end(f, cancel)
			within(t, "the dialog to go", d.gone)
			d.answer <- "Trust" // too late
			f.refused(within(t, "the refusal", v), c.words...)

			f.root.StartSession(f.rootOf)
			f.offer()
			next := f.launch(t.Context(), f.delegate("the-next"), trust.Place{Dir: f.foreign})
			within(t, "the next question", f.shown).answer <- "Trust"
			if v := within(t, "the verdict", next); v.err != nil || !v.approve {
				t.Errorf("%+v", v)
			}
		})
	}
}

func (f *family) ended(pi *rpctest.Pi) {
	f.t.Helper()
	if err := pi.EndSession("reload"); err != nil {
		f.t.Error(err)
	}
}

// The root goes while the answer is being saved: the launch is off, whatever pi makes of the save.
func TestRootGoesWhileSaving(t *testing.T) {
	f := newFamily(t).employ()
	f.worker.On(wire.HostTrustSave, rpctest.Ignore)
	v := f.launch(t.Context(), f.worker, trust.Place{Dir: f.foreign})
	within(t, "the question", f.shown).answer <- "Trust"
	f.worker.Await(rpctest.Called(wire.HostTrustSave, 1))
	f.root.Kill()
	f.refused(within(t, "the refusal", v))
}

// A session that serves delegates says where, and takes that back when it ends; another one listens to nobody.
func TestDescriptorLifetime(t *testing.T) {
	f := newFamily(t)
	files := func() int {
		entries, err := os.ReadDir(desk.Dir(f.agentDir))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return len(entries)
	}
	if n := files(); n != 0 {
		t.Errorf("%d descriptors before anybody may ask", n)
	}
	f.offer()
	f.offer()
	if n := files(); n != 1 {
		t.Errorf("%d descriptors", n)
	}
	f.ended(f.root)
	if n := files(); n != 0 {
		t.Errorf("%d descriptors after the session", n)
	}
}
