package mail_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pi-cradle/squire/mail"
	"pi-cradle/squire/mail/mailtest"
)

func TestASessionThatNeverDelegatesLeavesNoTrace(t *testing.T) {
	t.Parallel()
	w := mailtest.NewWorld(t)
	s := w.Session("quiet", mailtest.Embedded)
	s.MustScan()
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(w.Root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the mail root is there: %v", err)
	}
}

func TestMailArrivesByItself(t *testing.T) {
	t.Parallel()
	w := mailtest.NewWorld(t)
	p, c := w.Session("p", mailtest.Embedded), w.Session("c", mailtest.Embedded)
	c.Serve(p)
	first := p.MustSend(c, "before the child looks")
	c.MustScan()
	second := p.MustSend(c, "while it listens")
	got := c.AwaitReceived(2)
	if got[0].Envelope.ID != first.ID || got[1].Envelope.ID != second.ID {
		t.Errorf("got %v", got)
	}
	c.MustReply(p, "answer", first.ID, second.ID)
	if got := p.AwaitReceived(1); got[0].Envelope.Body != "answer" || len(got[0].Requests) != 2 {
		t.Errorf("got %v", got)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	p.MustSend(c, "after the child has closed")
	if got := c.Received(); len(got) != 2 {
		t.Errorf("a closed transport received %v", got)
	}
}

func TestFilesArePrivateAndNamedByTime(t *testing.T) {
	t.Parallel()
	w := mailtest.NewWorld(t)
	p, c := w.Session("p", mailtest.Embedded), w.Session("c", mailtest.Embedded)
	for range 20 {
		p.MustSend(c, "x")
	}
	err := filepath.WalkDir(w.Root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`^([0-9]{15})-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\.json$`)
	var stamps []string
	for _, file := range c.Folder("new") {
		m := name.FindStringSubmatch(filepath.Base(file))
		if m == nil {
			t.Fatalf("name %q", file)
		}
		stamps = append(stamps, m[1])
	}
	if len(slices.Compact(slices.Clone(stamps))) != 20 || !slices.IsSorted(stamps) {
		t.Errorf("stamps %q", stamps)
	}
	for _, folder := range []string{"tmp", "new", "cur", "sent"} {
		for _, s := range []*mailtest.Session{p, c} {
			if _, err := os.Stat(filepath.Join(w.Root, s.Address, folder)); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestOnlyWholeRegularEnvelopesAreRead(t *testing.T) {
	t.Parallel()
	w := mailtest.NewWorld(t)
	p, c := w.Session("p", mailtest.Embedded), w.Session("c", mailtest.Embedded)
	c.Serve(p)
	sent := p.MustSend(c, "task")
	dir := filepath.Join(w.Root, "c", "new")
	good := `{"id": "g", "from": "p", "to": "c", "body": "never"}`
	outside := filepath.Join(w.Dir, "outside.json")
	for path, text := range map[string]string{
		outside:                               good,
		filepath.Join(dir, ".hidden.json"):    good,
		filepath.Join(dir, "x.json.tmp"):      good,
		filepath.Join(dir, "000-readme.txt"):  good,
		filepath.Join(w.Root, "c/tmp/x.json"): good,
		filepath.Join(dir, "000-junk.json"):   `{"id"`,
		filepath.Join(dir, "000-nobody.json"): `{"id": "n", "from": "p", "to": "c"}`,
		filepath.Join(dir, "999-junk2.json"):  "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.Symlink(outside, filepath.Join(dir, "000-link.json")), os.Symlink("/no/such", filepath.Join(dir, "000-dangling.json")),
		os.Mkdir(filepath.Join(dir, "000-folder.json"), 0o700), syscall.Mkfifo(filepath.Join(dir, "000-pipe.json"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		c.MustScan()
	}
	if got := c.Received(); len(got) != 1 || got[0].Envelope.ID != sent.ID {
		t.Errorf("received %v", got)
	}
	warnings := c.Warnings()
	if len(warnings) != 3 {
		t.Errorf("warnings %q", warnings)
	}
	aside, _ := filepath.Glob(filepath.Join(dir, "*.unreadable-*"))
	if len(aside) != 3 {
		t.Errorf("set aside: %q", aside)
	}
	for i, file := range aside {
		if !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, file) }) {
			t.Errorf("no warning names %q (%d)", file, i)
		}
	}
	if len(c.Folder("new")) != 5 { // the hidden one, the links, the folder and the pipe
		t.Errorf("new/ holds %q", c.Folder("new"))
	}
}

func TestClaimsMayChange(t *testing.T) {
	t.Parallel()
	w := mailtest.NewWorld(t)
	p, c := w.Session("p", mailtest.Embedded), w.Session("c", mailtest.Embedded)
	sent := p.MustSend(c, "task")
	for range 2 {
		c.MustScan()
	}
	if got := c.Received(); len(got) != 0 {
		t.Fatalf("received %v", got)
	}
	c.Serve(p)
	c.MustScan()
	if got := c.Received(); len(got) != 1 || got[0].Envelope.ID != sent.ID || got[0].Envelope.Body != "task" {
		t.Errorf("received %v", got)
	}
}

// A session can have a provider and our own transport at work on one mailbox, while a provider comes or goes.
func TestTwoClaimersOfOneMailbox(t *testing.T) {
	t.Parallel()
	w := mailtest.NewWorld(t)
	p, c := w.Session("p", mailtest.Embedded), w.Session("c", mailtest.Embedded)
	c.Serve(p)
	other := mailtest.Transports["hooks"](c)
	const n = 40
	for i := range n {
		p.MustSend(c, fmt.Sprint(i))
	}
	var wg sync.WaitGroup
	for _, t1 := range []mail.Transport{c.Transport, other} {
		wg.Go(func() {
			if answered, err := t1.Scan(context.Background()); err != nil || !answered {
				t.Errorf("scan: %v, %v", answered, err)
			}
		})
	}
	wg.Wait()
	if len(c.Once()) != n || len(c.Folder("new")) != 0 || len(c.Folder("cur")) != n {
		t.Errorf("%d received, %d in new/, %d in cur/", len(c.Once()), len(c.Folder("new")), len(c.Folder("cur")))
	}
}

func TestAnAddressThatIsNone(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", ".", "..", "a/b", "a b", "x.json"} {
		if _, err := mail.NewEmbedded(mail.EmbeddedConfig{Root: t.TempDir(), Address: address}); err == nil {
			t.Errorf("%q is taken", address)
		}
	}
}

// All that Send does, in order.
var sendSteps = []string{"create sent", "write sent", "create new", "write new", "posted"}

func TestAFailedSendLeavesNothing(t *testing.T) {
	for _, step := range sendSteps {
		w := mailtest.NewWorld(t)
		p, c := w.Session("p", mailtest.Embedded), w.Session("c", mailtest.Embedded)
		restore := mail.SetStep(func(name string) error {
			if name == step {
				return syscall.ENOSPC
			}
			return nil
		})
		_, err := p.Send(context.Background(), mail.Outgoing{To: "c", Body: "x"})
		restore()
		left := slices.Concat(p.Folder("sent"), p.Folder("tmp"), c.Folder("tmp"), c.Folder("new"))
		if !errors.Is(err, syscall.ENOSPC) || len(left) > 0 {
			t.Errorf("%s: %v, left %q", step, err, left)
		}
	}
}

type crash struct{}

// crashAt runs f and cuts it off before the step of this name, as the end of the process would.
func crashAt(t *testing.T, step string, f func()) {
	t.Helper()
	var crashed bool
	restore := mail.SetStep(func(name string) error {
		if name == step && !crashed {
			crashed = true
			panic(crash{})
		}
		return nil
	})
	defer restore()
	func() {
		defer func() {
			if r := recover(); r != nil && r != (crash{}) {
				panic(r)
			}
		}()
		f()
	}()
	if !crashed {
		t.Errorf("step %q never came", step)
	}
}

// Whatever the moment, the sender knows less than the receiver: it tries again, and nothing is lost.
func TestCrashWhileSending(t *testing.T) {
	for _, step := range sendSteps {
		w := mailtest.NewWorld(t)
		p, c := w.Session("p", mailtest.Embedded), w.Session("c", mailtest.Embedded)
		c.Serve(p)
		crashAt(t, step, func() { _, _ = p.Send(context.Background(), mail.Outgoing{To: "c", Body: "task"}) })
		before := len(c.Folder("new"))
		if want := map[bool]int{true: 1}[step == "posted"]; before != want {
			t.Errorf("crash at %q: %d in new/", step, before)
		}
		p = w.Session("p", mailtest.Embedded) // the next process
		sent := p.MustSend(c, "task")
		c.MustScan()
		got := c.Received()
		if len(got) != before+1 || got[len(got)-1].Envelope.ID != sent.ID || len(c.Warnings()) > 0 {
			t.Errorf("crash at %q: received %v, warnings %q", step, got, c.Warnings())
		}
	}
}

func TestCrashWhileAnswering(t *testing.T) {
	for _, step := range []string{"create new", "write new", "posted"} {
		w := mailtest.NewWorld(t)
		p, c := w.Session("p", mailtest.Embedded), w.Session("c", mailtest.Embedded)
		sent := p.MustSend(c, "task")
		reply := mail.Reply{To: "p", InReplyTo: []string{sent.ID}, Body: "answer", Status: mail.StatusDone}
		crashAt(t, step, func() { _ = c.Reply(context.Background(), reply) })
		if err := c.Reply(context.Background(), reply); err != nil {
			t.Fatal(err)
		}
		p.MustScan()
		got := p.Received()
		if want := 1 + map[bool]int{true: 1}[step == "posted"]; len(got) != want {
			t.Errorf("crash at %q: the answer came %d times", step, len(got))
		}
		for _, r := range got {
			if r.Envelope.Body != "answer" || len(r.Requests) != 1 {
				t.Errorf("crash at %q: %+v", step, r)
			}
		}
	}
}

func TestCrashWhileReceiving(t *testing.T) {
	for step, times := range map[string]int{"sink": 1, "claim": 2} {
		w := mailtest.NewWorld(t)
		p, c := w.Session("p", mailtest.Embedded), w.Session("c", mailtest.Embedded)
		sent := p.MustSend(c, "task")
		c.Serve(p)
		crashAt(t, step, func() { _, _ = c.Scan(context.Background()) })
		if len(c.Folder("new")) != 1 {
			t.Errorf("crash at %q: the envelope is gone", step)
		}
		next := mailtest.Embedded(c) // of the next process
		if answered, err := next.Scan(context.Background()); err != nil || !answered {
			t.Errorf("crash at %q: %v, %v", step, answered, err)
		}
		if err := next.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if got := c.Received(); len(got) != times || len(c.Once()) != 1 || got[0].Envelope.ID != sent.ID || len(c.Folder("cur")) != 1 {
			t.Errorf("crash at %q: received %v", step, got)
		}
	}
}

func BenchmarkMail(b *testing.B) {
	root := b.TempDir()
	arrived := make(chan string, 1)
	session := func(address string, takes bool) *mail.Embedded {
		m, err := mail.NewEmbedded(mail.EmbeddedConfig{
			Root: root, Address: address, Claims: func(mail.Envelope) bool { return takes }, Warn: func(text string) { b.Error(text) },
			Sink: func(r mail.Received) error { arrived <- r.Envelope.ID; return nil },
		})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = m.Close(context.Background()) })
		return m
	}
	ctx := context.Background()
	p := session("p", true)
	task := mail.Outgoing{To: "c", Body: strings.Repeat("task ", 100)}
	b.Run("send", func(b *testing.B) {
		for b.Loop() {
			if _, err := p.Send(ctx, task); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("send to a new session", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := p.Send(ctx, mail.Outgoing{To: fmt.Sprintf("new-%d", i), Body: task.Body}); err != nil {
				b.Fatal(err)
			}
		}
	})
	c := session("d", false)
	b.Run("reply to sink", func(b *testing.B) {
		for b.Loop() {
			if err := c.Reply(ctx, mail.Reply{To: "p", InReplyTo: []string{"r"}, Body: task.Body, Status: mail.StatusDone}); err != nil {
				b.Fatal(err)
			}
			<-arrived
		}
	})
	b.Run("scan of nothing beside 2000 mailboxes", func(b *testing.B) {
		for i := range 2000 {
			if err := os.MkdirAll(filepath.Join(root, fmt.Sprintf("old-%d", i), "new"), 0o700); err != nil {
				b.Fatal(err)
			}
		}
		for b.Loop() {
			if _, err := p.Scan(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
}
