package desk

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pi-cradle/internal/durable"
	"pi-cradle/squire/trust"
)

func (o *office) descriptor(t *testing.T) descriptor {
	t.Helper()
	d, _, err := readDescriptor(descriptorPath(o.dir, "root"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// publish puts a descriptor in place of the root's own.
func (o *office) publish(t *testing.T, d descriptor) {
	t.Helper()
	if err := d.write(descriptorPath(o.dir, "root")); err != nil {
		t.Fatal(err)
	}
}

func (o *office) connect(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp4", o.server.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// dropped waits until the other side has ended the connection.
func dropped(t *testing.T, what string, conn net.Conn) []byte {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	said, err := io.ReadAll(conn)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("%s was not dropped", what)
	}
	return said
}

// works makes sure that the office still serves who may ask.
func works(t *testing.T, o *office) {
	t.Helper()
	next := turn(t, o.remote())
	got := asking(next)
	shown := within(t, "the question", o.shown)
	if shown.Text() != question.Text() {
		t.Errorf("asked was %s", shown.Text())
	}
	shown.answer <- trust.Deny
	if r := within(t, "the answer", got); r.answer != trust.Deny || r.err != nil {
		t.Errorf("%+v", r)
	}
	next.Done()
	none(t, "somebody else's question was shown", o.shown)
}

func cannotAsk(t *testing.T, o *office) {
	t.Helper()
	_, err := o.remote().Wait(t.Context())
	var unavailable *UnavailableError
	if !errors.As(err, &unavailable) {
		t.Errorf("the root was taken for there: %v", err)
	}
}

func TestWrongToken(t *testing.T) {
	o := open(t, patient)
	good := o.descriptor(t)
	bad := good
	bad.Token = strings.Repeat("00", tokenSize)
	o.publish(t, bad)
	cannotAsk(t, o)

	// And one that does not mind what the root says.
	conn := o.connect(t)
	l := newLink(conn)
	own, err := l.sendNonce()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := l.readNonce()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.arm(requesterSide, "root", make([]byte, tokenSize), own, theirs); err != nil {
		t.Fatal(err)
	}
	for _, m := range []message{{Kind: kindWait}, {Kind: kindAsk, Question: &question}} {
		if err := l.send(m); err != nil {
			break // dropped already
		}
	}
	dropped(t, "a wrong token", conn)
	o.publish(t, good)
	works(t, o)
}

// The token holds for one root: that of another says nothing, even with its descriptor in the place of ours.
func TestOtherRoot(t *testing.T) {
	o := open(t, patient)
	data, err := os.ReadFile(descriptorPath(o.dir, "root"))
	if err != nil {
		t.Fatal(err)
	}
	if err := durable.Write(descriptorPath(o.dir, "other"), data); err != nil {
		t.Fatal(err)
	}
	r := o.remote()
	r.Root = "other"
	if _, err := r.Wait(t.Context()); err == nil {
		t.Error("a root answered for another")
	}
	works(t, o)
}

// tap stands between a requester and the root, keeps what each says, and may change it.
type tap struct {
	mu     sync.Mutex
	said   [2]bytes.Buffer // by the requester, by the root
	change func(fromRoot bool, line []byte) []byte
	listen net.Listener
}

func (o *office) tapped(t *testing.T, change func(bool, []byte) []byte) *tap {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tp := &tap{change: change, listen: listener}
	d := o.descriptor(t)
	root := net.JoinHostPort("127.0.0.1", strconv.Itoa(d.Port))
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp4", root)
			if err != nil {
				_ = near.Close()
				return
			}
			go tp.pass(near, far, false)
			go tp.pass(far, near, true)
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	d.Port = listener.Addr().(*net.TCPAddr).Port
	o.publish(t, d)
	return tp
}

func (tp *tap) pass(from, to net.Conn, fromRoot bool) {
	defer from.Close()
	defer to.Close()
	l := newLink(from)
	for {
		line, err := l.readLine()
		if err != nil {
			return
		}
		who := 0
		if fromRoot {
			who = 1
		}
		tp.mu.Lock()
		tp.said[who].Write(append(line, '\n'))
		tp.mu.Unlock()
		if tp.change != nil {
			line = tp.change(fromRoot, bytes.Clone(line))
		}
		if _, err := to.Write(append(line, '\n')); err != nil {
			return
		}
	}
}

// lines is what one side has said.
func (tp *tap) lines(fromRoot bool) []byte {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	if fromRoot {
		return bytes.Clone(tp.said[1].Bytes())
	}
	return bytes.Clone(tp.said[0].Bytes())
}

// approved has a question approved through a tap, and gives what either side said.
func approved(t *testing.T, o *office) (byRequester, byRoot []byte) {
	t.Helper()
	good := o.descriptor(t)
	tp := o.tapped(t, nil)
	first := turn(t, o.remote())
	got := asking(first)
	within(t, "the question", o.shown).answer <- trust.Approve
	if r := within(t, "the answer", got); r.answer != trust.Approve {
		t.Fatalf("%+v", r)
	}
	first.Done()
	o.publish(t, good)
	return tp.lines(false), tp.lines(true)
}

func TestReplayedRequester(t *testing.T) {
	o := open(t, patient)
	byRequester, _ := approved(t, o)
	conn := o.connect(t)
	if _, err := conn.Write(byRequester); err != nil {
		t.Fatal(err)
	}
	dropped(t, "a replay", conn)
	works(t, o)
}

// impostor listens at the root's port after the root is gone, and says what it is told to, whatever it hears.
func (o *office) impostor(t *testing.T, say func(heard []byte) []byte) (heard <-chan []byte) {
	t.Helper()
	d := o.descriptor(t)
	closed(t, o.server)
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(d.Port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	o.publish(t, d) // as a crash leaves it
	all := make(chan []byte, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		l := newLink(conn)
		first, err := l.readLine()
		if err != nil {
			return
		}
		everything := append(bytes.Clone(first), '\n')
		_, _ = conn.Write(say(everything))
		rest, _ := io.ReadAll(l.in)
		all <- append(everything, rest...)
	}()
	return all
}

func TestStalePort(t *testing.T) {
	for name, say := range map[string]func(o *office, byRoot []byte) func([]byte) []byte{
		"repeats an earlier root": func(_ *office, byRoot []byte) func([]byte) []byte { return func([]byte) []byte { return byRoot } },
		"echoes":                  func(*office, []byte) func([]byte) []byte { return func(heard []byte) []byte { return heard } },
		"speaks HTTP": func(*office, []byte) func([]byte) []byte {
			return func([]byte) []byte { return []byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n") }
		},
		"never ends a line": func(*office, []byte) func([]byte) []byte {
			return func([]byte) []byte { return bytes.Repeat([]byte("x"), 4*maxFrame) }
		},
		"knows no token": func(*office, []byte) func([]byte) []byte {
			return func(heard []byte) []byte {
				theirs, err := parseNonce(bytes.TrimSpace(heard))
				if err != nil {
					return nil
				}
				own := make([]byte, nonceSize)
				l := &link{}
				if err := l.arm(rootSide, "root", make([]byte, tokenSize), theirs, own); err != nil {
					return nil
				}
				line, _ := json.Marshal(nonce{hex.EncodeToString(own)})
				hello, _ := l.out.frame(message{Kind: kindHello})
				return append(append(line, '\n'), hello...)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := open(t, patient)
			_, byRoot := approved(t, o)
			heard := o.impostor(t, say(o, byRoot))
			o.limits.greet = 50 * time.Millisecond // some of them just wait
			cannotAsk(t, o)
			said := within(t, "the end of the connection", heard)
			if bytes.Count(said, []byte("\n")) != 1 {
				t.Errorf("the impostor was told more than a nonce: %q", said)
			}
			if _, err := parseNonce(bytes.TrimSpace(said)); err != nil {
				t.Errorf("%q: %v", said, err)
			}
		})
	}
}

// A port that nobody answers at must not hold a launch up.
func TestSilentPort(t *testing.T) {
	o := open(t, patient)
	heard := o.impostor(t, func([]byte) []byte { return nil })
	o.limits.greet = 50 * time.Millisecond
	cannotAsk(t, o)
	within(t, "the end of the connection", heard)
}

func TestTampering(t *testing.T) {
	o := open(t, patient)
	o.tapped(t, func(fromRoot bool, line []byte) []byte {
		return bytes.ReplaceAll(line, []byte(`"deny"`), []byte(`"approve"`))
	})
	first := turn(t, o.remote())
	got := asking(first)
	within(t, "the question", o.shown).answer <- trust.Deny
	if r := within(t, "the end", got); r.answer != "" || !errors.Is(r.err, ErrDisconnected) {
		t.Errorf("%+v", r)
	}
}

func TestSlowStranger(t *testing.T) {
	for name, said := range map[string]string{
		"silent": "", "half a nonce": `{"nonce":"00`, "only a nonce": `{"nonce":"` + strings.Repeat("00", nonceSize) + `"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lim := patient
			lim.greet = 50 * time.Millisecond
			o := open(t, lim)
			conn := o.connect(t)
			if _, err := conn.Write([]byte(said)); err != nil {
				t.Fatal(err)
			}
			dropped(t, "a slow stranger", conn)
		})
	}
}

func TestGarbage(t *testing.T) {
	o := open(t, patient)
	for name, said := range map[string][]byte{
		"a long line":  bytes.Repeat([]byte("a"), 2*maxFrame),
		"a long nonce": []byte(`{"nonce":"` + strings.Repeat("00", 20000) + `"}` + "\n"),
		"no JSON":      []byte("GET / HTTP/1.1\r\n\r\n"),
		"no seal":      []byte(`{"nonce":"` + strings.Repeat("00", nonceSize) + `"}` + "\n" + `{"kind":"wait"}` + "\n"),
	} {
		conn := o.connect(t)
		go func() { _, _ = conn.Write(said) }() // may fail: we are dropped before the end
		dropped(t, name, conn)
	}
	works(t, o)
}

// Who may ask is held to the order too.
func TestUnruly(t *testing.T) {
	for name, say := range map[string]func(l *link) error{
		"asks twice": func(l *link) error {
			return errors.Join(l.send(message{Kind: kindAsk, Question: &question}), l.send(message{Kind: kindAsk, Question: &question}))
		},
		"asks nothing":  func(l *link) error { return l.send(message{Kind: kindAsk}) },
		"answers":       func(l *link) error { return l.send(message{Kind: kindAnswer, Answer: trust.Approve}) },
		"a long frame":  func(l *link) error { return l.write(bytes.Repeat([]byte("a"), maxFrame+1)) },
		"a seal for it": func(l *link) error { l.out.next++; return l.send(message{Kind: kindAsk, Question: &question}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := open(t, patient)
			unruly := turn(t, o.remote())
			_ = say(unruly.(*remoteTurn).link) // may fail: we are dropped before the end
			within(t, "the end of the turn", unruly.Context().Done())
			for len(o.shown) > 0 { // a question that was taken away again
				within(t, "the dialog to go", (<-o.shown).gone)
			}
			turn(t, o.desk)
		})
	}
}

func TestLargeQuestion(t *testing.T) {
	o := open(t, patient)
	first := turn(t, o.remote())
	q := question
	q.Dir = "/" + strings.Repeat("d", maxFrame)
	if _, err := first.Ask(q); !errors.Is(err, errFrameTooLong) {
		t.Error(err)
	}
}

func TestThousandConnections(t *testing.T) {
	lim := patient
	lim.strangers = 8
	o := open(t, lim)
	for range 1000 {
		o.connect(t)
	}
	works(t, o)
	o.server.mu.Lock()
	defer o.server.mu.Unlock()
	if n := len(o.server.strangers); n > lim.strangers {
		t.Errorf("%d strangers are held", n)
	}
}

// The token of a root before its restart opens nothing.
func TestRestart(t *testing.T) {
	o := open(t, patient)
	old := o.descriptor(t)
	before := turn(t, o.remote())
	closed(t, o.server)
	within(t, "the end of the turn", before.Context().Done())
	o.server = start(t, o, patient)
	renewed := o.descriptor(t)
	if renewed.Token == old.Token {
		t.Error("the token is the old one")
	}
	old.Port = renewed.Port
	o.publish(t, old)
	cannotAsk(t, o)
	o.publish(t, renewed)
	works(t, o)
}
