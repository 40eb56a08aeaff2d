package mailtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pi-cradle/squire/mail"
)

// Bodies is what people and models write, and what breaks programs.
var Bodies = map[string]string{
	"plain":      "Which files define the entry point?",
	"empty":      "",
	"newlines":   "\n a\r\nb\r\rc\n\n",
	"separators": "a\u2028b\u2029c\u0085d",
	"controls":   "a\x00b\x1b[31mc\x07\x7f",
	"markup":     `<b>&amp;</b> "quoted" \back\\slash 'single' {"json": "\u0000"}`,
	"beyond BMP": "🙂👨‍👩‍👧𝔘",
	"byte order": "\ufeffbom\ufffe\uffff\ufffd",
	"tmux":       "#{pane_id} #(touch x) $HOME ;",
	"200 KiB":    strings.Repeat("ä\n", 100<<10/3*2),
}

// Suite holds a pair of transports to the contract: one end of each conversation has parent's, the other child's.
func Suite(t *testing.T, parent, child Make) {
	pair := func(t *testing.T) (p, c *Session) {
		w := NewWorld(t)
		p, c = w.Session("parent-1", parent), w.Session("child_2", child)
		c.Serve(p)
		return p, c
	}
	t.Run("a task and its answer", func(t *testing.T) { t.Parallel(); p, c := pair(t); taskAndAnswer(t, p, c) })
	t.Run("bodies", func(t *testing.T) { t.Parallel(); p, c := pair(t); bodies(t, p, c) })
	t.Run("order", func(t *testing.T) { t.Parallel(); p, c := pair(t); order(t, p, c) })
	t.Run("many answers to one", func(t *testing.T) { t.Parallel(); manyToOne(t, NewWorld(t), parent, child) })
	t.Run("one answer to many", func(t *testing.T) { t.Parallel(); p, c := pair(t); oneToMany(t, p, c) })
	t.Run("what is not ours", func(t *testing.T) { t.Parallel(); p, c := pair(t); notOurs(t, p, c) })
	t.Run("a sink that fails", func(t *testing.T) { t.Parallel(); p, c := pair(t); failingSink(t, p, c) })
	t.Run("refusals", func(t *testing.T) { t.Parallel(); p, c := pair(t); refusals(t, p, c) })
}

func one(t *testing.T, s *Session) mail.Received {
	t.Helper()
	got := s.Received()
	if len(got) != 1 {
		t.Fatalf("%v received %d envelopes: %.300v", s, len(got), got)
	}
	return got[0]
}

// onDisk fails unless r lies claimed in the mailbox of s, as it was received.
func onDisk(t *testing.T, s *Session, r mail.Received) {
	t.Helper()
	if filepath.Dir(r.Path) != filepath.Join(s.World.Root, s.Address, "cur") {
		t.Errorf("path %q is not in cur/", r.Path)
	}
	data, err := os.ReadFile(r.Path)
	if err != nil {
		t.Fatal(err)
	}
	e, err := mail.ParseEnvelope(data)
	if err != nil || e.ID != r.Envelope.ID || e.Body != r.Envelope.Body {
		t.Errorf("the file holds %.200v, %v", e, err)
	}
	if left := s.Folder("new"); len(left) > 0 {
		t.Errorf("left in new/: %q", left)
	}
}

func taskAndAnswer(t *testing.T, p, c *Session) {
	sent := p.MustSend(c, "the task")
	c.MustScan()
	task := one(t, c)
	if e := task.Envelope; e.ID != sent.ID || e.From != p.Address || e.To != c.Address || e.Kind != mail.KindRequest || e.Body != "the task" ||
		e.Status != "" || e.Hops != 0 || len(e.InReplyTo) != 0 || e.TS.IsZero() || !e.TS.Equal(sent.TS) || len(task.Requests) != 0 {
		t.Errorf("task %+v, sent %+v", task, sent)
	}
	onDisk(t, c, task)
	if err := c.Reply(context.Background(), mail.Reply{To: p.Address, InReplyTo: []string{sent.ID}, Body: "the answer", Status: mail.StatusFailed}); err != nil {
		t.Fatal(err)
	}
	p.MustScan()
	answer := one(t, p)
	if e := answer.Envelope; e.From != c.Address || e.To != p.Address || e.Kind != mail.KindReply || e.Body != "the answer" ||
		e.Status != mail.StatusFailed || !slices.Equal(e.InReplyTo, []string{sent.ID}) {
		t.Errorf("answer %+v", answer)
	}
	onDisk(t, p, answer)
	if len(answer.Requests) != 1 || answer.Requests[0].Envelope.Body != "the task" || filepath.Dir(answer.Requests[0].Path) != filepath.Join(p.World.Root, p.Address, "sent") {
		t.Errorf("copies of the request: %+v", answer.Requests)
	}
	for range 2 {
		p.MustScan()
		c.MustScan()
	}
	one(t, p)
	one(t, c)
	if w := append(p.Warnings(), c.Warnings()...); len(w) > 0 {
		t.Errorf("warnings %q", w)
	}
}

// Large is Suite for a body of 8 MB, apart because it takes long.
func Large(t *testing.T, parent, child Make) {
	w := NewWorld(t)
	p, c := w.Session("p", parent), w.Session("c", child)
	c.Serve(p)
	thereAndBack(t, p, c, map[string]string{"8 MB": strings.Repeat("0123456789abcde\n", 500_000)})
}

func bodies(t *testing.T, p, c *Session) { thereAndBack(t, p, c, Bodies) }

// thereAndBack sends each body there and back.
func thereAndBack(t *testing.T, p, c *Session, bodies map[string]string) {
	t.Helper()
	for name, body := range bodies {
		sent := p.MustSend(c, body)
		c.MustScan()
		got := c.Received()
		if last := got[len(got)-1].Envelope; last.ID != sent.ID || last.Body != body {
			t.Errorf("task %s came as %.100q (%d bytes)", name, last.Body, len(last.Body))
		}
		c.MustReply(p, body, sent.ID)
		p.MustScan()
		got = p.Received()
		if last := got[len(got)-1].Envelope; last.Body != body {
			t.Errorf("answer %s came as %.100q (%d bytes)", name, last.Body, len(last.Body))
		}
	}
}

func order(t *testing.T, p, c *Session) {
	var want []string
	for i := range 40 {
		want = append(want, p.MustSend(c, fmt.Sprint(i)).ID)
	}
	c.MustScan()
	var got []string
	for _, r := range c.Received() {
		got = append(got, r.Envelope.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("sent %q\ncame %q", want, got)
	}
}

func manyToOne(t *testing.T, w *World, parent, child Make) {
	p := w.Session("parent", parent)
	const children, rounds = 8, 5
	var wg sync.WaitGroup
	for i := range children {
		c := w.Session(fmt.Sprintf("child-%d", i), child)
		c.Serve(p)
		wg.Go(func() {
			for range rounds {
				c.MustReply(p, c.Address, p.MustSend(c, "task").ID)
				if _, err := p.Scan(context.Background()); err != nil {
					t.Errorf("scan: %v", err)
				}
			}
		})
	}
	wg.Wait()
	p.MustScan()
	count := map[string]int{}
	for _, r := range p.Once() {
		if r.Envelope.Body != r.Envelope.From {
			t.Errorf("an answer of %s holds %q", r.Envelope.From, r.Envelope.Body)
		}
		count[r.Envelope.From]++
	}
	if len(count) != children || slices.ContainsFunc(p.Received(), func(r mail.Received) bool { return count[r.Envelope.From] != rounds }) {
		t.Errorf("answers by sender: %v", count)
	}
	if len(p.Once()) != len(p.Received()) {
		t.Errorf("%d answers came %d times", len(p.Once()), len(p.Received()))
	}
}

func oneToMany(t *testing.T, p, c *Session) {
	var ids []string
	for i := range 2*mail.MaxInReplyTo + 7 {
		ids = append(ids, p.MustSend(c, fmt.Sprint(i)).ID)
	}
	c.MustReply(p, "all", ids...)
	p.MustScan()
	var answered []string
	for _, r := range p.Received() {
		if n := len(r.Envelope.InReplyTo); n > mail.MaxInReplyTo || n != len(r.Requests) || r.Envelope.Body != "all" {
			t.Errorf("an envelope answers %d requests, %d copies, body %q", n, len(r.Requests), r.Envelope.Body)
		}
		answered = append(answered, r.Envelope.InReplyTo...)
	}
	if len(p.Received()) != 3 || !slices.Equal(answered, ids) {
		t.Errorf("%d envelopes answer %d requests", len(p.Received()), len(answered))
	}
}

func notOurs(t *testing.T, p, c *Session) {
	w := p.World
	stranger := w.Session("stranger", Embedded)
	toC := stranger.MustSend(c, "not your parent")
	stranger.MustReply(p, "to nothing", "00000000-0000-4000-8000-000000000000")
	sent := p.MustSend(c, "task")
	stranger.MustReply(p, "in the child's name", sent.ID)
	Plant(t, c, `{"id": "ask-1", "from": "parent-1", "to": "child_2", "kind": "ask", "body": "x"}`)
	Plant(t, c, `{"id": "note-1", "from": "parent-1", "to": "child_2", "kind": "new kind", "body": "x"}`)
	p.MustScan()
	c.MustScan()
	if got := p.Received(); len(got) != 0 {
		t.Errorf("the parent took %v", got)
	}
	if got := one(t, c); got.Envelope.ID != sent.ID {
		t.Errorf("the child took %v", got)
	}
	// They wait untouched, or were shown by the provider: never lost.
	waiting := func(s *Session) int { return len(s.Folder("new")) + len(s.Provider.Shown()) }
	if waiting(p) != 2 || waiting(c) != 3 {
		t.Errorf("%d and %d envelopes are left", waiting(p), waiting(c))
	}
	if len(c.Provider.Shown()) == 0 && !slices.ContainsFunc(c.Folder("new"), func(f string) bool { return strings.HasSuffix(f, toC.ID+".json") }) {
		t.Errorf("the stranger's mail is gone: %q", c.Folder("new"))
	}
}

// Plant puts text as an envelope into the session's new/.
func Plant(t *testing.T, s *Session, text string) (path string) {
	t.Helper()
	dir := filepath.Join(s.World.Root, s.Address, "new")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, fmt.Sprintf("%015d-planted.json", 1_700_000_000_000+len(s.Folder("new"))))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func failingSink(t *testing.T, p, c *Session) {
	sent := p.MustSend(c, "task")
	full := errors.New("disk full")
	c.FailWith(full)
	for range 2 {
		if answered, err := c.Scan(context.Background()); answered || !errors.Is(err, full) {
			t.Errorf("a scan whose sink fails: %v, %v", answered, err)
		}
	}
	c.FailWith(nil)
	c.MustScan()
	c.MustScan()
	if got := one(t, c); got.Envelope.ID != sent.ID {
		t.Errorf("got %v", got)
	}
}

func refusals(t *testing.T, p, c *Session) {
	ctx := context.Background()
	for _, to := range []string{"", "..", "a/b", "a b", "ä", "x.y", strings.Repeat("x", 300)} {
		if _, err := p.Send(ctx, mail.Outgoing{To: to, Body: "x"}); err == nil {
			t.Errorf("mail to %q was sent", to)
		}
		if err := p.Reply(ctx, mail.Reply{To: to, InReplyTo: []string{"x"}, Status: mail.StatusDone}); err == nil {
			t.Errorf("an answer to %q was sent", to)
		}
	}
	for _, r := range []mail.Reply{{To: c.Address, Status: mail.StatusDone}, {To: c.Address, InReplyTo: []string{"x"}, Status: "great"}} {
		if err := p.Reply(ctx, r); err == nil {
			t.Errorf("%+v was sent", r)
		}
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := p.Send(done, mail.Outgoing{To: c.Address}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if files := append(p.Folder("sent"), c.Folder("new")...); len(files) > 0 {
		t.Errorf("left behind: %q", files)
	}
}
