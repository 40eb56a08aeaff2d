package mail

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Kinds of envelopes.
const (
	KindRequest = "request"
	KindAsk     = "ask"
	KindMessage = "message"
	KindReply   = "reply"
)

// Statuses of a reply. Other kinds have none.
const (
	StatusDone    = "done"
	StatusFailed  = "failed"
	StatusStopped = "stopped"
)

// MaxInReplyTo is how many requests one reply can answer.
const MaxInReplyTo = 50

// maxFile bounds what is read as an envelope. Nothing that a model writes comes near.
const maxFile = 64 << 20

// Envelope is one piece of mail.
type Envelope struct {
	ID        string
	From      string
	To        string
	Kind      string
	Hops      int
	InReplyTo []string // never nil in a parsed or sent envelope
	Status    string
	TS        time.Time // zero when the sender's could not be read
	Body      string
}

// timeFormat is what JavaScript's Date prints.
const timeFormat = "2006-01-02T15:04:05.000Z"

// file is the envelope as it lies on disk.
func (e Envelope) file() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	// Spelled out once more for the time, which other readers know in this form only.
	err := enc.Encode(struct {
		ID        string   `json:"id"`
		From      string   `json:"from"`
		To        string   `json:"to"`
		Kind      string   `json:"kind"`
		Hops      int      `json:"hops"`
		InReplyTo []string `json:"in_reply_to"`
		Status    string   `json:"status"`
		TS        string   `json:"ts"`
		Body      string   `json:"body"`
	}{e.ID, e.From, e.To, e.Kind, e.Hops, e.InReplyTo, e.Status, e.TS.UTC().Format(timeFormat), e.Body})
	return out.Bytes(), err
}

// MalformedError says that something is no envelope.
type MalformedError struct {
	Key    string // "" for the whole
	Reason string
}

func (e *MalformedError) Error() string {
	if e.Key == "" {
		return "not an envelope (" + e.Reason + ")"
	}
	return fmt.Sprintf("not an envelope (%q %s)", e.Key, e.Reason)
}

// ParseEnvelope reads what any system that shares the mail root may have written. What decides whose the envelope is (the ids and
// addresses) and the body must be right; the rest has a default. Its errors are *MalformedError.
func ParseEnvelope(data []byte) (Envelope, error) {
	// By way of a map, because decoding into a struct would also take "ID" or "Body" for a key.
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return Envelope{}, &MalformedError{Reason: "not a JSON object"}
	}
	if raw == nil {
		return Envelope{}, &MalformedError{Reason: "null"}
	}
	e := Envelope{ID: text(raw["id"]), From: text(raw["from"]), To: text(raw["to"]), Kind: text(raw["kind"])}
	for key, value := range map[string]string{"id": e.ID, "from": e.From, "to": e.To} {
		if !ValidAddress(value) { // an id ends up in a file name as an address does
			return Envelope{}, &MalformedError{key, "is not a safe name"}
		}
	}
	var ok bool
	if e.Body, ok = str(raw["body"]); !ok {
		return Envelope{}, &MalformedError{"body", "is not a string"}
	}
	if e.InReplyTo, ok = ids(raw["in_reply_to"]); !ok {
		return Envelope{}, &MalformedError{"in_reply_to", fmt.Sprintf("is not a list of at most %d ids", MaxInReplyTo)}
	}
	if e.Hops, ok = count(raw["hops"]); !ok {
		return Envelope{}, &MalformedError{"hops", "is not a nonnegative integer"}
	}
	switch {
	case raw["kind"] == nil && len(e.InReplyTo) > 0:
		e.Kind = KindReply
	case raw["kind"] == nil:
		e.Kind = KindRequest
	case e.Kind != KindRequest && e.Kind != KindAsk && e.Kind != KindReply:
		e.Kind = KindMessage
	}
	if status := text(raw["status"]); e.Kind == KindReply && (status == StatusDone || status == StatusFailed || status == StatusStopped) {
		e.Status = status
	}
	e.TS, _ = time.Parse(time.RFC3339Nano, text(raw["ts"]))
	return e, nil
}

func str(raw json.RawMessage) (string, bool) {
	var s *string
	if raw == nil || json.Unmarshal(raw, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

func text(raw json.RawMessage) string {
	s, _ := str(raw)
	return s
}

func ids(raw json.RawMessage) ([]string, bool) {
	list := []string{}
	if raw == nil || string(raw) == "null" {
		return list, true
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil || len(items) > MaxInReplyTo {
		return nil, false
	}
	for _, item := range items {
		id, ok := str(item)
		if !ok || id == "" {
			return nil, false
		}
		list = append(list, id)
	}
	return list, true
}

func count(raw json.RawMessage) (int, bool) {
	if raw == nil {
		return 0, true
	}
	var f *float64 // JavaScript's numbers, so that 2.0 is 2
	if json.Unmarshal(raw, &f) != nil || f == nil || *f < 0 || *f > 1<<53 || *f != math.Trunc(*f) {
		return 0, false
	}
	return int(*f), true
}

// ValidAddress says whether s is one safe path segment, as session ids are: 1 to 200 letters, digits, "_" and "-".
func ValidAddress(s string) bool {
	return s != "" && len(s) <= 200 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// isEnvelopeFile tells envelopes from hidden temporary files and from what was set aside.
func isEnvelopeFile(name string) bool {
	return strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".")
}

var errNotRegular = errors.New("not a regular file")

// readFile reads a whole regular file. A link, a pipe or a folder gives errNotRegular, and one that is too large a *MalformedError.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, errNotRegular
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errNotRegular
	case info.Size() > maxFile:
		return nil, &MalformedError{Reason: fmt.Sprintf("larger than %d bytes", maxFile)}
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

func readEnvelope(path string) (Envelope, error) {
	data, err := readFile(path)
	if err != nil {
		return Envelope{}, err
	}
	return ParseEnvelope(data)
}
