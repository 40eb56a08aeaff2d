package faulttest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"pi-cradle/rpc/rpctest"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/records"
)

// provider is another extension that keeps one session's mail: it answers message:send, message:reply and message:scan, and shows
// to the user whatever nobody takes over.
type provider struct {
	pi      *rpctest.Pi
	root    string
	address string
	inbox   string

	claiming sync.Mutex // pi does one thing at a time: a scan sees all or nothing of another claim

	mu    sync.Mutex
	shown []string // bodies of mail that it had to show itself
}

func (w *world) provide(pi *rpctest.Pi, address string) *provider {
	p := &provider{
		pi: pi, root: filepath.Join(w.dir, ".local", "state", "pi-session-mail"), address: address,
		inbox: records.In(w.agentDir).Inbound(address),
	}
	pi.Listen("message:send", func(payload map[string]any) { p.post(payload, "request", []any{}, "") })
	pi.Listen("message:reply", func(payload map[string]any) {
		p.post(payload, "reply", payload["inReplyTo"].([]any), payload["status"].(string))
	})
	pi.Listen("message:scan", func(payload map[string]any) {
		p.claim()
		payload["scanned"] = true
	})
	return p
}

func (p *provider) post(payload map[string]any, kind string, inReplyTo []any, status string) {
	id := uuid.NewString()
	envelope := map[string]any{
		"id": id, "from": p.address, "to": payload["to"], "kind": kind, "hops": 0, "in_reply_to": inReplyTo, "status": status,
		"ts": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), "body": payload["body"],
	}
	data, err := json.MarshalIndent(envelope, "", "  ")
	if err == nil && kind == "request" {
		err = p.write(p.address, "sent", id, data)
	}
	if err == nil {
		err = p.write(payload["to"].(string), "new", id, data)
	}
	if err != nil {
		payload["error"] = err.Error()
		return
	}
	payload["envelope"] = envelope
}

func (p *provider) write(address, folder, id string, data []byte) error {
	box := filepath.Join(p.root, address)
	for _, name := range []string{"tmp", "new", "cur", "sent"} {
		if err := os.MkdirAll(filepath.Join(box, name), 0o700); err != nil {
			return err
		}
	}
	name := fmt.Sprintf("%015d-%s.json", time.Now().UnixMilli(), id)
	if err := os.WriteFile(filepath.Join(box, "tmp", name), append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(filepath.Join(box, "tmp", name), filepath.Join(box, folder, name))
}

// claim takes every waiting envelope out of new/ and hands it over.
func (p *provider) claim() {
	p.claiming.Lock()
	defer p.claiming.Unlock()
	box := filepath.Join(p.root, p.address)
	entries, _ := os.ReadDir(filepath.Join(box, "new"))
	for _, entry := range entries {
		path := filepath.Join(box, "cur", entry.Name())
		if os.Rename(filepath.Join(box, "new", entry.Name()), path) != nil {
			continue // somebody else was faster
		}
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		in := wire.Inbound{Envelope: data, Path: path, Requests: p.requests(data)}
		if taken, err := p.pi.Deliver(p.inbox, in); err != nil || !taken {
			p.mu.Lock()
			p.shown = append(p.shown, string(data))
			p.mu.Unlock()
		}
	}
}

func (p *provider) requests(reply []byte) []wire.InboundRequest {
	var envelope struct {
		InReplyTo []string `json:"in_reply_to"`
	}
	_ = json.Unmarshal(reply, &envelope)
	var out []wire.InboundRequest
	for _, id := range envelope.InReplyTo {
		paths, _ := filepath.Glob(filepath.Join(p.root, p.address, "sent", "*-"+id+".json"))
		for _, path := range paths {
			if data, err := os.ReadFile(path); err == nil {
				out = append(out, wire.InboundRequest{Envelope: data, Path: path})
			}
		}
	}
	return out
}

// strays are the tasks and answers that the provider showed as if they were ordinary mail.
func (p *provider) strays() []string {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, text := range p.shown {
		if strings.Contains(text, task) || strings.Contains(text, answer) {
			out = append(out, text)
		}
	}
	return out
}
