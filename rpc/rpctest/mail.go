package rpctest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"pi-cradle/rpc/wire"
)

// Deliver is a message:* provider that hands an envelope over: when the session claims it, it is staged in inbox as the extension
// does, and the helper told. It says whether the envelope was taken. Any goroutine may call it.
func (p *Pi) Deliver(inbox string, in wire.Inbound) (bool, error) {
	var envelope struct {
		From      string   `json:"from"`
		Kind      string   `json:"kind"`
		InReplyTo []string `json:"in_reply_to"`
	}
	if err := json.Unmarshal(in.Envelope, &envelope); err != nil {
		return false, err
	}
	p.mu.Lock()
	claims := p.claims
	p.mu.Unlock()
	claimed := envelope.Kind == "request" && claims.Parent != "" && envelope.From == claims.Parent
	if envelope.Kind == "reply" {
		claimed = slices.ContainsFunc(envelope.InReplyTo, func(id string) bool {
			from, ok := claims.Requests[id]
			return ok && from == envelope.From
		})
	}
	if !claimed {
		return false, nil
	}
	name, err := stage(inbox, in)
	if err != nil {
		return false, err
	}
	_ = p.Tell(wire.MailStaged, wire.MailStagedParams{File: name}) // a helper that is not there finds it when it comes
	return true, nil
}

func stage(inbox string, in wire.Inbound) (name string, err error) {
	data, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(inbox, 0o700); err != nil {
		return "", err
	}
	name = fmt.Sprintf("%015d-%s.json", time.Now().UnixMilli(), uuid.NewString())
	temp := filepath.Join(inbox, "."+name+".tmp")
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return "", err
	}
	return name, os.Rename(temp, filepath.Join(inbox, name))
}
