package mail_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pi-cradle/rpc/wire"
	"pi-cradle/squire/mail"
	"pi-cradle/squire/mail/mailtest"
)

// answering is a bus on which every channel gives the same payload back.
func answering(text string) mail.Emit {
	return func(context.Context, string, any) (json.RawMessage, error) { return json.RawMessage(text), nil }
}

func TestProvidersAnswers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	staged := &mail.Staged{Dir: filepath.Join(t.TempDir(), "none")}
	var none *mail.NoProviderError
	var refused *mail.ProviderError
	for text, want := range map[string]any{
		`{"to": "x", "body": ""}`:                   &none,
		`{"envelope": null, "error": null}`:         &none,
		`{"error": "mailbox is full"}`:              &refused,
		`{"error": {"code": "EACCES"}}`:             &refused,
		`{"error": "x", "envelope": {"id": "i"}}`:   &refused,
		`{"envelope": {"id": "i", "from": "../f"}}`: &refused,
		`{"envelope": true}`:                        &refused,
	} {
		h := mail.NewHooks(answering(text), staged)
		if _, err := h.Send(ctx, mail.Outgoing{To: "x"}); !errors.As(err, want) {
			t.Errorf("send, %s: %v", text, err)
		}
		if err := h.Reply(ctx, mail.Reply{To: "x", InReplyTo: []string{"r"}, Status: mail.StatusDone}); !errors.As(err, want) {
			t.Errorf("reply, %s: %v", text, err)
		}
	}
	if _, err := mail.NewHooks(answering(`{"error": "mailbox is full"}`), staged).Send(ctx, mail.Outgoing{}); !strings.Contains(err.Error(), "mailbox is full") {
		t.Errorf("the provider's words are lost: %v", err)
	}
	for text, want := range map[string]bool{
		`{}`: false, `{"scanned": true}`: true, `{"scanned": false}`: false, `{"scanned": "true"}`: false, `{"scanned": 1}`: false, `{"scanned": null}`: false,
	} {
		if got, err := mail.NewHooks(answering(text), staged).Scan(ctx); err != nil || got != want {
			t.Errorf("scan, %s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{``, `null x`, `[]`, `7`} {
		h := mail.NewHooks(answering(text), staged)
		if _, err := h.Scan(ctx); err == nil {
			t.Errorf("scan, %q: no error", text)
		}
	}
	gone := errors.New("the session is gone")
	h := mail.NewHooks(func(context.Context, string, any) (json.RawMessage, error) { return nil, gone }, staged)
	if answered, err := h.Scan(ctx); answered || !errors.Is(err, gone) {
		t.Errorf("scan without a host: %v, %v", answered, err)
	}
	if _, err := h.Send(ctx, mail.Outgoing{}); !errors.Is(err, gone) || errors.As(err, &none) {
		t.Errorf("send without a host: %v", err)
	}
}

func TestAProviderMayComeAndGo(t *testing.T) {
	t.Parallel()
	w := mailtest.NewWorld(t)
	p, c := w.Session("p", mailtest.Transports["auto without"]), w.Session("c", mailtest.Transports["auto without"])
	c.Serve(p)
	var want []string
	for i := range 6 {
		p.Provider.Absent, c.Provider.Absent = i%2 == 0, i%3 == 0
		want = append(want, p.MustSend(c, fmt.Sprint(i)).ID)
		c.MustScan()
		c.MustReply(p, fmt.Sprint(i), want[i])
		p.MustScan()
	}
	var tasks, answers []string
	for _, r := range c.Once() {
		tasks = append(tasks, r.Envelope.ID)
	}
	for _, r := range p.Once() {
		answers = append(answers, r.Envelope.InReplyTo...)
	}
	if !slices.Equal(tasks, want) || !slices.Equal(answers, want) {
		t.Errorf("sent %q\ntasks %q\nanswers %q", want, tasks, answers)
	}
}

func TestAProvidersRefusalIsNotWorkedAround(t *testing.T) {
	t.Parallel()
	w := mailtest.NewWorld(t)
	p := w.Session("p", mailtest.Transports["auto with a provider"])
	p.Provider.Refuse = "quota"
	var refused *mail.ProviderError
	if _, err := p.Send(context.Background(), mail.Outgoing{To: "c", Body: "x"}); !errors.As(err, &refused) || refused.Text != "quota" {
		t.Errorf("got %v", err)
	}
	if files, _ := filepath.Glob(filepath.Join(w.Root, "*", "*", "*")); len(files) > 0 {
		t.Errorf("sent all the same: %q", files)
	}
}

func stage(t *testing.T, dir, name, envelope, path string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(wire.Inbound{
		Envelope: json.RawMessage(envelope), Path: path,
		Requests: []wire.InboundRequest{{Envelope: json.RawMessage(`{"id": "r", "from": "p", "to": "c", "body": "task"}`), Path: "/sent"}, {Envelope: json.RawMessage(`{}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestStagedMail(t *testing.T) {
	t.Parallel()
	var got []string
	var warnings []string
	failing := errors.New("disk full")
	fail := map[string]error{"second": failing}
	dir := filepath.Join(t.TempDir(), "inbound")
	s := &mail.Staged{Dir: dir, Warn: func(text string) { warnings = append(warnings, text) }, Sink: func(r mail.Received) error {
		if err := fail[r.Envelope.ID]; err != nil {
			return err
		}
		if len(r.Requests) != 1 || r.Requests[0].Envelope.Body != "task" || r.Requests[0].Path != "/sent" {
			t.Errorf("copies %+v", r.Requests)
		}
		got = append(got, r.Envelope.ID+" "+r.Path)
		return nil
	}}
	ctx := context.Background()
	if err := s.Drain(ctx); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
	envelope := func(id, ts string) string {
		return fmt.Sprintf(`{"id": %q, "from": "c", "to": "p", "body": "", "in_reply_to": ["r"], "ts": %q}`, id, ts)
	}
	// By time, then by path; the files' own names mean nothing.
	stage(t, dir, "a.json", envelope("fourth", "2026-03-04T05:06:07.002Z"), "/cur/2")
	stage(t, dir, "b.json", envelope("third", "2026-03-04T05:06:07.002Z"), "/cur/1")
	stage(t, dir, "c.json", envelope("second", "2026-03-04T05:06:07.001Z"), "/cur/9")
	stage(t, dir, "d.json", envelope("first", "2026-03-04T05:06:07Z"), "/cur/8")
	for name, text := range map[string]string{".hidden.json": "{", "half.json.tmp": "{", "bad.json": "{", "bad2.json": `{"path": "x"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a.json", filepath.Join(dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	if err := s.Drain(ctx); !errors.Is(err, failing) {
		t.Errorf("drain: %v", err)
	}
	if want := []string{"first /cur/8", "third /cur/1", "fourth /cur/2"}; !slices.Equal(got, want) {
		t.Errorf("came %q, want %q", got, want)
	}
	if len(warnings) != 2 {
		t.Errorf("warnings %q", warnings)
	}
	clear(fail)
	for range 2 {
		if err := s.Drain(ctx); err != nil {
			t.Error(err)
		}
	}
	if len(got) != 4 || got[3] != "second /cur/9" || len(warnings) != 2 {
		t.Errorf("came %q, warnings %q", got, warnings)
	}
	left, _ := os.ReadDir(dir)
	var names []string
	for _, entry := range left {
		name, _, _ := strings.Cut(entry.Name(), ".unreadable-")
		names = append(names, name)
	}
	if want := []string{".hidden.json", "bad.json", "bad2.json", "half.json.tmp", "link.json"}; !slices.Equal(names, want) {
		t.Errorf("left %q", names)
	}
}
