package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// The provider's channels.
const (
	channelSend  = "message:send"
	channelReply = "message:reply"
	channelScan  = "message:scan"
)

// Emit emits payload on the event bus of the session's pi, and returns it as the listeners left it.
type Emit func(ctx context.Context, channel string, payload any) (json.RawMessage, error)

// Hooks leaves mail to a provider that listens on the session's event bus. What the provider claims for us arrives in the staging
// folder.
type Hooks struct {
	emit   Emit
	staged *Staged
}

// NewHooks makes a transport without any activity of its own.
func NewHooks(emit Emit, staged *Staged) *Hooks { return &Hooks{emit, staged} }

// Send implements Transport. It gives a *NoProviderError or a *ProviderError.
func (h *Hooks) Send(ctx context.Context, o Outgoing) (Envelope, error) {
	return h.post(ctx, channelSend, map[string]any{"to": o.To, "body": o.Body})
}

// Reply implements Transport, with the errors of Send.
func (h *Hooks) Reply(ctx context.Context, r Reply) error {
	if err := r.check(); err != nil {
		return err
	}
	for ids := range slices.Chunk(r.InReplyTo, MaxInReplyTo) {
		payload := map[string]any{"to": r.To, "inReplyTo": ids, "body": r.Body, "status": r.Status}
		if _, err := h.post(ctx, channelReply, payload); err != nil {
			return err
		}
	}
	return nil
}

func (r Reply) check() error {
	if len(r.InReplyTo) == 0 || r.Status != StatusDone && r.Status != StatusFailed {
		return fmt.Errorf("a reply to %d requests with status %q can't be sent", len(r.InReplyTo), r.Status)
	}
	return nil
}

func (h *Hooks) post(ctx context.Context, channel string, payload map[string]any) (Envelope, error) {
	answer, err := h.ask(ctx, channel, payload)
	if err != nil {
		return Envelope{}, err
	}
	if refusal := answer["error"]; !absent(refusal) {
		words := text(refusal)
		if words == "" {
			words = string(refusal)
		}
		return Envelope{}, &ProviderError{Channel: channel, Text: words}
	}
	if absent(answer["envelope"]) {
		return Envelope{}, &NoProviderError{Channel: channel}
	}
	e, err := ParseEnvelope(answer["envelope"])
	if err != nil {
		return Envelope{}, &ProviderError{Channel: channel, Text: err.Error()}
	}
	return e, nil
}

func (h *Hooks) ask(ctx context.Context, channel string, payload map[string]any) (map[string]json.RawMessage, error) {
	raw, err := h.emit(ctx, channel, payload)
	if err != nil {
		return nil, fmt.Errorf("%s could not be emitted: %w", channel, err)
	}
	var answer map[string]json.RawMessage
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("%s gave no object back: %w", channel, err)
	}
	return answer, nil
}

func absent(raw json.RawMessage) bool { return raw == nil || string(raw) == "null" }

// Scan implements Transport. It gives (false, nil) when there is no provider.
func (h *Hooks) Scan(ctx context.Context) (bool, error) {
	answered, err := h.answers(ctx)
	if err != nil {
		return false, err
	}
	// Staged mail is ours whether or not the provider that claimed it is still there.
	if err := h.staged.Drain(ctx); err != nil {
		return false, err
	}
	return answered, nil
}

// answers asks the provider to claim what waits, and tells whether there is one.
func (h *Hooks) answers(ctx context.Context) (bool, error) {
	answer, err := h.ask(ctx, channelScan, map[string]any{})
	return string(answer["scanned"]) == "true", err
}

// Close implements Transport.
func (h *Hooks) Close(context.Context) error { return nil }

// Auto uses the provider when one answers, and Embedded when none does. It asks anew each time: a provider may come or go with
// any reload of the session, and since both share the mail root nothing is lost by changing over.
type Auto struct {
	hooks    *Hooks
	embedded *Embedded
}

// NewAuto joins the two. Closing it closes both.
func NewAuto(hooks *Hooks, embedded *Embedded) *Auto { return &Auto{hooks, embedded} }

func (a *Auto) pick(ctx context.Context) (Transport, error) {
	// Asked by a scan, not by sending: a large body then travels only to somebody who takes it.
	answered, err := a.hooks.answers(ctx)
	if err != nil {
		return nil, err
	}
	if answered {
		return a.hooks, nil
	}
	return a.embedded, nil
}

// Send implements Transport.
func (a *Auto) Send(ctx context.Context, o Outgoing) (Envelope, error) {
	t, err := a.pick(ctx)
	if err != nil {
		return Envelope{}, err
	}
	return t.Send(ctx, o)
}

// Reply implements Transport.
func (a *Auto) Reply(ctx context.Context, r Reply) error {
	t, err := a.pick(ctx)
	if err != nil {
		return err
	}
	return t.Reply(ctx, r)
}

// Scan implements Transport.
func (a *Auto) Scan(ctx context.Context) (bool, error) {
	answered, err := a.hooks.Scan(ctx)
	if err != nil || answered {
		return answered, err
	}
	return a.embedded.Scan(ctx)
}

// Close implements Transport.
func (a *Auto) Close(ctx context.Context) error { return a.embedded.Close(ctx) }
