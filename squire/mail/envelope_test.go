package mail_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pi-cradle/rpc/wire"
	"pi-cradle/squire/mail"
)

func TestEnvelopeOnDisk(t *testing.T) {
	t.Parallel()
	e := mail.Envelope{
		ID: "5f0c6f4e-0000-4000-8000-000000000001", From: "a", To: "b", Kind: "reply", InReplyTo: []string{"r1", "r2"}, Status: "done",
		TS: time.Date(2026, 3, 4, 6, 6, 7, 89_000_000, time.FixedZone("x", 3600)), Body: "<&> ü\n\"q\"",
	}
	got, err := e.File()
	const want = `{
  "id": "5f0c6f4e-0000-4000-8000-000000000001",
  "from": "a",
  "to": "b",
  "kind": "reply",
  "hops": 0,
  "in_reply_to": [
    "r1",
    "r2"
  ],
  "status": "done",
  "ts": "2026-03-04T05:06:07.089Z",
  "body": "<&> ü\n\"q\""
}
`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	e = mail.Envelope{InReplyTo: []string{}}
	if got, err := e.File(); err != nil || !strings.Contains(string(got), "  \"in_reply_to\": [],\n  \"status\": \"\",\n") {
		t.Errorf("%s, %v", got, err)
	}
}

func TestParseEnvelope(t *testing.T) {
	t.Parallel()
	base := mail.Envelope{ID: "i", From: "f", To: "t", Kind: "request", InReplyTo: []string{}, Body: "b"}
	with := func(change func(*mail.Envelope)) mail.Envelope { e := base; change(&e); return e }
	for fields, want := range map[string]mail.Envelope{
		``:                                      base,
		`"kind": "ask"`:                         with(func(e *mail.Envelope) { e.Kind = "ask" }),
		`"kind": "telegram"`:                    with(func(e *mail.Envelope) { e.Kind = "message" }),
		`"kind": 7`:                             with(func(e *mail.Envelope) { e.Kind = "message" }),
		`"in_reply_to": []`:                     base,
		`"in_reply_to": null, "hops": 3`:        with(func(e *mail.Envelope) { e.Hops = 3 }),
		`"hops": 2.0`:                           with(func(e *mail.Envelope) { e.Hops = 2 }),
		`"in_reply_to": ["r"]`:                  with(func(e *mail.Envelope) { e.Kind, e.InReplyTo = "reply", []string{"r"} }),
		`"in_reply_to": ["r"], "status":"done"`: with(func(e *mail.Envelope) { e.Kind, e.InReplyTo, e.Status = "reply", []string{"r"}, "done" }),
		`"in_reply_to": ["r"], "status":"stopped"`: with(func(e *mail.Envelope) { e.Kind, e.InReplyTo, e.Status = "reply", []string{"r"}, "stopped" }),
		`"in_reply_to": ["r"], "status":"unheard"`: with(func(e *mail.Envelope) { e.Kind, e.InReplyTo = "reply", []string{"r"} }),
		`"status": "done"`:                         base,
		`"kind": "message", "in_reply_to": ["r"]`:  with(func(e *mail.Envelope) { e.Kind, e.InReplyTo = "message", []string{"r"} }),
		`"ts": "2026-03-04T05:06:07.089Z"`:         with(func(e *mail.Envelope) { e.TS = time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.UTC) }),
		`"ts": "yesterday"`:                        base,
		`"ts": 7, "extra": {"id": "x"}`:            base,
		`"ID": "other", "Body": "other"`:           base, // keys are exact
		`"body": "\ud800\u0000\u2028"`:             with(func(e *mail.Envelope) { e.Body = "\ufffd\x00\u2028" }),
		`"body": ""`:                               with(func(e *mail.Envelope) { e.Body = "" }),
		`"id": "last", "id": "wins"`:               with(func(e *mail.Envelope) { e.ID = "wins" }),
	} {
		text := `{"id": "i", "from": "f", "to": "t", "body": "b"`
		if fields != "" {
			text += ", " + fields
		}
		got, err := mail.ParseEnvelope([]byte(text + "}"))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngives %+v, %v\nwant  %+v", fields, got, err, want)
		}
	}
	var malformed *mail.MalformedError
	many := `["r"` + strings.Repeat(`, "r"`, mail.MaxInReplyTo) + `]`
	for _, text := range []string{
		``, `null`, `[]`, `"x"`, `{`, `{}`, `{"id": "i", "from": "f", "to": "t"}`, `{"id": "i", "from": "f", "to": "t", "body": null}`,
		`{"id": "i", "from": "f", "to": "t", "body": 7}`, `{"id": "../i", "from": "f", "to": "t", "body": ""}`,
		`{"id": "i", "from": "a/b", "to": "t", "body": ""}`, `{"id": "i", "from": "f", "to": "", "body": ""}`,
		`{"id": "i", "from": "f", "to": "t", "body": "", "hops": -1}`, `{"id": "i", "from": "f", "to": "t", "body": "", "hops": 1.5}`,
		`{"id": "i", "from": "f", "to": "t", "body": "", "hops": "1"}`, `{"id": "i", "from": "f", "to": "t", "body": "", "hops": null}`,
		`{"id": "i", "from": "f", "to": "t", "body": "", "in_reply_to": "r"}`, `{"id": "i", "from": "f", "to": "t", "body": "", "in_reply_to": [7]}`,
		`{"id": "i", "from": "f", "to": "t", "body": "", "in_reply_to": [""]}`, `{"id": "i", "from": "f", "to": "t", "body": "", "in_reply_to": ` + many + `}`,
		"\ufeff" + `{"id": "i", "from": "f", "to": "t", "body": ""}`, `{"id": "i", "from": "f", "to": "t", "body": ""} x`,
	} {
		if e, err := mail.ParseEnvelope([]byte(text)); !errors.As(err, &malformed) {
			t.Errorf("%s gives %+v, %v", text, e, err)
		}
	}
}

func FuzzParseEnvelope(f *testing.F) {
	f.Add([]byte(`{"id": "i", "from": "f", "to": "t", "body": "\ud800", "in_reply_to": ["r"], "status": "done", "ts": "2026-03-04T05:06:07.089Z", "hops": 2}`))
	f.Add([]byte(`{"id": "i", "from": "f", "to": "t", "body": "b", "kind": "message"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := mail.ParseEnvelope(data)
		if err != nil {
			return
		}
		if !mail.ValidAddress(e.ID) || !mail.ValidAddress(e.From) || !mail.ValidAddress(e.To) || e.InReplyTo == nil || e.Hops < 0 {
			t.Fatalf("%q gives %+v", data, e)
		}
		e.TS = time.Time{} // written to the millisecond
		text, err := e.File()
		if err != nil {
			t.Fatal(err)
		}
		again, err := mail.ParseEnvelope(text)
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("%+v comes back as %+v, %v", e, again, err)
		}
	})
}

func TestOurs(t *testing.T) {
	t.Parallel()
	claims := wire.Claims{Parent: "p", Requests: map[string]string{"r1": "c1", "r2": "c2"}}
	for _, c := range []struct {
		kind, from, ids string
		want            bool
	}{
		{"request", "p", "", true}, {"request", "c1", "", false}, {"ask", "p", "", false}, {"message", "p", "", false},
		{"reply", "c1", "r1", true}, {"reply", "c2", "x r2", true}, {"reply", "c2", "r1", false}, {"reply", "p", "r1", false}, {"reply", "c1", "x", false},
		{"message", "c1", "r1", false}, {"request", "c1", "r1", false},
	} {
		e := mail.Envelope{Kind: c.kind, From: c.from, InReplyTo: strings.Fields(c.ids)}
		if got := mail.Ours(claims, e); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if mail.Ours(wire.Claims{}, mail.Envelope{Kind: "request"}) || mail.Ours(wire.Claims{}, mail.Envelope{Kind: "reply", InReplyTo: []string{"r"}}) {
		t.Error("a session without claims takes mail")
	}
}

func TestRoot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ state, home, want string }{
		{"/s", "/h", "/s/pi-session-mail"}, {"s", "/h", "/h/.local/state/pi-session-mail"}, {"", "/h", "/h/.local/state/pi-session-mail"},
	} {
		got, err := mail.Root(func(name string) string { return map[string]string{"XDG_STATE_HOME": c.state, "HOME": c.home}[name] })
		if err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	if got, err := mail.Root(func(string) string { return "" }); err != nil || !strings.HasPrefix(got, "/") {
		t.Errorf("without HOME: %q, %v", got, err)
	}
}
