package mailtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"pi-cradle/rpc/wire"
	"pi-cradle/squire/mail"
)

// Provider is what stands behind the message:* channels in one pi process, made from the contract alone: it shares no code with
// package mail, so that each checks the other's files. Together with it comes the extension's part, which stages what a session
// claims.
type Provider struct {
	Root    string
	Address string
	Staging string             // the inbound folder of the session
	Claims  func() wire.Claims // what the extension holds
	Refuse  string             // an error for every send and reply
	Absent  bool               // nobody listens

	mu    sync.Mutex
	last  int64
	shown []string // ids of envelopes that the session left to the provider
}

type envelope struct {
	ID        string   `json:"id"`
	From      string   `json:"from"`
	To        string   `json:"to"`
	Kind      string   `json:"kind"`
	Hops      int      `json:"hops"`
	InReplyTo []string `json:"in_reply_to"`
	Status    string   `json:"status"`
	TS        string   `json:"ts"`
	Body      string   `json:"body"`
}

// Emit is the host's event bus with this provider on it.
func (p *Provider) Emit(ctx context.Context, channel string, payload any) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.Absent {
		p.listen(channel, fields)
	}
	return json.Marshal(fields)
}

func (p *Provider) listen(channel string, f map[string]any) {
	text := func(key string) string { s, _ := f[key].(string); return s }
	e := envelope{From: p.Address, To: text("to"), Body: text("body"), Kind: "request", InReplyTo: []string{}}
	var err error
	switch channel {
	case "message:scan":
		p.claim()
		f["scanned"] = true
		return
	case "message:send":
		err = p.post(&e, true)
	case "message:reply":
		e.Kind, e.Status = "reply", text("status")
		for _, id := range f["inReplyTo"].([]any) {
			e.InReplyTo = append(e.InReplyTo, id.(string))
		}
		if len(e.InReplyTo) > 50 {
			err = errors.New("too many ids")
		} else {
			err = p.post(&e, false)
		}
	default:
		return
	}
	if err != nil {
		f["error"] = err.Error()
	} else {
		f["envelope"] = e
	}
}

func (p *Provider) dir(address, folder string) string {
	dir := filepath.Join(p.Root, address, folder)
	_ = os.MkdirAll(dir, 0o700)
	return dir
}

func (p *Provider) post(e *envelope, sent bool) error {
	if p.Refuse != "" {
		return errors.New(p.Refuse)
	}
	if !mail.ValidAddress(e.To) {
		return fmt.Errorf("bad address %q", e.To)
	}
	var b [16]byte
	_, _ = rand.Read(b[:])
	e.ID = fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	p.last = max(time.Now().UnixMilli(), p.last+1)
	e.TS = time.UnixMilli(p.last).UTC().Format("2006-01-02T15:04:05.000Z")
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%015d-%s.json", p.last, e.ID)
	write := func(address, folder string) error {
		tmp := filepath.Join(p.dir(address, "tmp"), name)
		if err := os.WriteFile(tmp, append(data, '\n'), 0o600); err != nil {
			return err
		}
		return os.Rename(tmp, filepath.Join(p.dir(address, folder), name))
	}
	if sent {
		if err := write(p.Address, "sent"); err != nil {
			return err
		}
	}
	return write(e.To, "new")
}

// claim moves everything that waits and offers it on message:inbound.
func (p *Provider) claim() {
	entries, _ := os.ReadDir(filepath.Join(p.Root, p.Address, "new"))
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !strings.HasSuffix(entry.Name(), ".json") || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		path := filepath.Join(p.dir(p.Address, "cur"), entry.Name())
		if os.Rename(filepath.Join(p.Root, p.Address, "new", entry.Name()), path) != nil {
			continue
		}
		data, _ := os.ReadFile(path)
		var e envelope
		if json.Unmarshal(data, &e) != nil || e.ID == "" {
			continue
		}
		if !p.inbound(e, data, path) {
			p.shown = append(p.shown, e.ID)
		}
	}
}

// inbound is the extension: it keeps what the session claims, in one file each.
func (p *Provider) inbound(e envelope, data []byte, path string) (handled bool) {
	c := p.Claims()
	ours := e.Kind == "request" && e.From == c.Parent && c.Parent != "" ||
		e.Kind == "reply" && slices.ContainsFunc(e.InReplyTo, func(id string) bool { return c.Requests[id] == e.From && e.From != "" })
	if !ours {
		return false
	}
	in := wire.Inbound{Envelope: data, Path: path}
	sent, _ := os.ReadDir(filepath.Join(p.Root, p.Address, "sent"))
	for _, id := range e.InReplyTo {
		for _, entry := range sent {
			if strings.HasSuffix(entry.Name(), id+".json") {
				copied := filepath.Join(p.Root, p.Address, "sent", entry.Name())
				if text, err := os.ReadFile(copied); err == nil {
					in.Requests = append(in.Requests, wire.InboundRequest{Envelope: text, Path: copied})
				}
			}
		}
	}
	staged, err := json.Marshal(in)
	if err != nil || os.MkdirAll(p.Staging, 0o700) != nil {
		return false
	}
	tmp := filepath.Join(p.Staging, "."+e.ID+".tmp")
	return os.WriteFile(tmp, staged, 0o600) == nil && os.Rename(tmp, filepath.Join(p.Staging, e.ID+".json")) == nil
}

// Shown lists what the session left to the provider.
func (p *Provider) Shown() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(slices.Values(p.shown), cmp.Compare[string])
}
