package desk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pi-cradle/squire/trust"
)

const patience = 30 * time.Second

// patient are limits that no test reaches which does not mean to.
var patient = limits{connect: patience, greet: patience, step: patience, wait: patience, strangers: 64, callers: 256}

// user stands before the root session.
type user struct {
	shown chan *dialog
}

// dialog is a question on the screen.
type dialog struct {
	trust.Question
	answer chan trust.Answer // "" is Escape
	gone   chan struct{}     // closed when it has been taken away unanswered
}

func newUser() *user { return &user{make(chan *dialog, 16)} }

func (u *user) ask(ctx context.Context, q trust.Question) (trust.Answer, error) {
	d := &dialog{q, make(chan trust.Answer, 1), make(chan struct{})}
	u.shown <- d
	select {
	case a := <-d.answer:
		if a == "" {
			return "", ErrCancelled
		}
		return a, nil
	case <-ctx.Done():
		close(d.gone)
		return "", ctx.Err()
	}
}

func within[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// none fails when something is in ch by now.
func none[T any](t *testing.T, what string, ch <-chan T) {
	t.Helper()
	select {
	case <-ch:
		t.Errorf("%s", what)
	default:
	}
}

// office is a root session with a desk, a server and a user.
type office struct {
	*user
	desk   *Desk
	server *Server
	dir    string
	limits limits // of those who ask
}

func open(t *testing.T, lim limits) *office {
	t.Helper()
	o := &office{user: newUser(), dir: Dir(t.TempDir()), limits: patient}
	o.desk = New(o.user.ask)
	o.server = start(t, o, lim)
	return o
}

func start(t *testing.T, o *office, lim limits) *Server {
	t.Helper()
	s, err := serve(o.dir, "root", o.desk, t.Logf, lim)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, s) })
	return s
}

// closed closes a server, which may be closed already, and insists that all of it ends.
func closed(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _ = s.Close(ctx); ctx.Err() != nil {
		t.Error("the server did not end")
	}
}

func (o *office) remote() Remote { return Remote{Dir: o.dir, Root: "root", limits: &o.limits} }

var question = trust.Question{Session: "worker", Chain: []string{"lead", "worker"}, Agent: "scout", Dir: "/wt/one", Key: "/repo"}

func turn(t *testing.T, w Waiter) Turn {
	t.Helper()
	turn, err := w.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(turn.Done)
	return turn
}

type reply struct {
	answer trust.Answer
	err    error
}

func asking(turn Turn) <-chan reply {
	ch := make(chan reply, 1)
	go func() {
		a, err := turn.Ask(question)
		ch <- reply{a, err}
	}()
	return ch
}

// bothWays runs a test with a desk's own turns and with those through its server.
func bothWays(t *testing.T, test func(t *testing.T, o *office, w Waiter)) {
	for name, pick := range map[string]func(*office) Waiter{
		"local":  func(o *office) Waiter { return o.desk },
		"remote": func(o *office) Waiter { return o.remote() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := open(t, patient)
			test(t, o, pick(o))
		})
	}
}

func TestAnswers(t *testing.T) {
	bothWays(t, func(t *testing.T, o *office, w Waiter) {
		for _, want := range []trust.Answer{trust.Approve, trust.ApproveParent, trust.ApproveOnce, trust.Deny, trust.DenyOnce} {
			turn := turn(t, w)
			got := asking(turn)
			shown := within(t, "the question", o.shown)
			if shown.Text() != question.Text() {
				t.Errorf("asked was %s", shown.Text())
			}
			shown.answer <- want
			if r := within(t, "the answer", got); r.answer != want || r.err != nil {
				t.Errorf("%s arrived as %+v", want, r)
			}
			if err := turn.Context().Err(); err != nil {
				t.Errorf("the turn ended with the answer: %v", err)
			}
			turn.Done()
		}
	})
}

func TestEscape(t *testing.T) {
	bothWays(t, func(t *testing.T, o *office, w Waiter) {
		got := asking(turn(t, w))
		within(t, "the question", o.shown).answer <- ""
		if r := within(t, "the answer", got); !errors.Is(r.err, ErrCancelled) || r.answer != "" {
			t.Errorf("%+v", r)
		}
	})
}

// A turn is the next one's only when its holder has given it up, not when the answer is there.
func TestTurnIsHeldUntilDone(t *testing.T) {
	bothWays(t, func(t *testing.T, o *office, w Waiter) {
		first := turn(t, w)
		var applied atomic.Bool
		results := make(chan bool, 4)
		for i := range 4 {
			other := []Waiter{o.desk, o.remote()}[i%2]
			go func() {
				turn, err := other.Wait(t.Context())
				if err != nil {
					t.Error(err)
					results <- false
					return
				}
				results <- applied.Load()
				turn.Done()
			}()
		}
		got := asking(first)
		within(t, "the question", o.shown).answer <- trust.Approve
		within(t, "the answer", got)
		applied.Store(true)
		first.Done()
		for range 4 {
			if !within(t, "the next turn", results) {
				t.Error("a turn was given away before the answer was applied")
			}
		}
	})
}

func TestCancelWhileWaiting(t *testing.T) {
	bothWays(t, func(t *testing.T, o *office, w Waiter) {
		holder := turn(t, o.desk)
		why := errors.New("aborted")
		ctx, cancel := context.WithCancelCause(t.Context())
		got := make(chan error, 1)
		go func() {
			_, err := w.Wait(ctx)
			got <- err
		}()
		cancel(why)
		if err := within(t, "the end of the wait", got); !errors.Is(err, why) {
			t.Error(err)
		}
		holder.Done()
		turn(t, w) // the cancelled one is skipped
		none(t, "a cancelled launch was asked about", o.shown)
	})
}

func TestCancelWhileAsked(t *testing.T) {
	bothWays(t, func(t *testing.T, o *office, w Waiter) {
		why := errors.New("aborted")
		ctx, cancel := context.WithCancelCause(t.Context())
		first, err := w.Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got := asking(first)
		shown := within(t, "the question", o.shown)
		cancel(why)
		within(t, "the dialog to go", shown.gone)
		if r := within(t, "the end of the question", got); !errors.Is(r.err, why) || r.answer != "" {
			t.Errorf("%+v", r)
		}
		if !errors.Is(context.Cause(first.Context()), why) {
			t.Errorf("the turn ended for %v", context.Cause(first.Context()))
		}
		first.Done()
		turn(t, w)
	})
}

func TestRequesterHangsUp(t *testing.T) {
	o := open(t, patient)
	first := turn(t, o.remote())
	got := asking(first)
	shown := within(t, "the question", o.shown)
	first.(*remoteTurn).link.conn.Close()
	within(t, "the dialog to go", shown.gone)
	if r := within(t, "the end", got); r.err == nil || r.answer != "" {
		t.Errorf("%+v", r)
	}
	turn(t, o.desk) // its turn is over without its saying so
}

func TestRootEnds(t *testing.T) {
	o := open(t, patient)
	asked := turn(t, o.remote())
	got := asking(asked)
	shown := within(t, "the question", o.shown)
	waited := make(chan error, 1)
	go func() {
		turn, err := o.remote().Wait(t.Context())
		if err == nil { // it was the next for a moment
			<-turn.Context().Done()
			err = context.Cause(turn.Context())
			turn.Done()
		}
		waited <- err
	}()
	awaitCallers(t, o.server, 2)
	closed(t, o.server)
	within(t, "the dialog to go", shown.gone)
	if r := within(t, "the end of the question", got); !errors.Is(r.err, ErrDisconnected) || r.answer != "" {
		t.Errorf("%+v", r)
	}
	if err := within(t, "the end of the wait", waited); !errors.Is(err, ErrDisconnected) {
		t.Error(err)
	}
	var unavailable *UnavailableError
	if _, err := o.remote().Wait(t.Context()); !errors.As(err, &unavailable) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the end: %v", err)
	}
}

// awaitCallers waits until the server knows n requesters.
func awaitCallers(t *testing.T, s *Server, n int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		s.mu.Lock()
		have := s.callers
		s.mu.Unlock()
		if have >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d callers, not %d", have, n)
		}
		time.Sleep(time.Millisecond)
	}
}

// An answer that was given and not yet applied counts for nothing once the root has gone.
func TestRootEndsAfterTheAnswer(t *testing.T) {
	o := open(t, patient)
	first := turn(t, o.remote())
	got := asking(first)
	within(t, "the question", o.shown).answer <- trust.Approve
	within(t, "the answer", got)
	closed(t, o.server)
	within(t, "the end of the turn", first.Context().Done())
	if err := context.Cause(first.Context()); !errors.Is(err, ErrDisconnected) {
		t.Error(err)
	}
}

func TestExpiry(t *testing.T) {
	for name, holdTurn := range map[string]bool{"in the queue": true, "on the screen": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lim := patient
			lim.wait = 50 * time.Millisecond
			o := open(t, lim)
			var refused *RefusedError
			if holdTurn {
				turn(t, o.desk)
				if _, err := o.remote().Wait(t.Context()); !errors.As(err, &refused) || refused.Reason != ErrExpired.Error() {
					t.Error(err)
				}
				none(t, "an expired question was asked", o.shown)
				return
			}
			got := asking(turn(t, o.remote()))
			within(t, "the dialog to go", within(t, "the question", o.shown).gone)
			if r := within(t, "the end", got); !errors.As(r.err, &refused) || refused.Reason != ErrExpired.Error() || r.answer != "" {
				t.Errorf("%+v", r)
			}
		})
	}
}

// Who has the turn and does nothing with it loses it.
func TestIdleHolder(t *testing.T) {
	for name, ask := range map[string]bool{"does not ask": false, "does not apply": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lim := patient
			lim.step = 50 * time.Millisecond
			o := open(t, lim)
			idle := turn(t, o.remote())
			if ask {
				got := asking(idle)
				within(t, "the question", o.shown).answer <- trust.Approve
				within(t, "the answer", got)
			}
			within(t, "the end of the turn", idle.Context().Done())
			turn(t, o.desk)
		})
	}
}

func TestTooManyCallers(t *testing.T) {
	lim := patient
	lim.callers = 1
	o := open(t, lim)
	turn(t, o.remote())
	var refused *RefusedError
	if _, err := o.remote().Wait(t.Context()); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "too many") {
		t.Error(err)
	}
}

func TestDescriptorComesAndGoes(t *testing.T) {
	o := open(t, patient)
	path := descriptorPath(o.dir, "root")
	if want := filepath.Join(o.dir, "4813494d137e1631bba301d5acab6e7bb7aa74ce1185d456565ef51d737677b2.json"); path != want {
		t.Errorf("it is at %s", path)
	}
	for file, want := range map[string]os.FileMode{path: 0o600, o.dir: 0o700} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	next := start(t, o, patient) // the session was taken over
	closed(t, o.server)
	if d, _, err := readDescriptor(path); err != nil || d.Port == 0 {
		t.Errorf("the successor's descriptor is gone: %v", err)
	}
	turn(t, o.remote()).Done()
	closed(t, next)
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the end: %v", err)
	}
}
