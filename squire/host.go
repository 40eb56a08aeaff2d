package squire

import (
	"context"
	"encoding/json"

	"pi-cradle/rpc/wire"
)

// peer is the connection to pi, as far as the service needs it. *rpc.Conn is one.
type peer interface {
	Call(ctx context.Context, method string, params, result any) error
	CallThen(ctx context.Context, method string, params, result any, then func(error))
	Notify(method string, params any) error
}

// host gives the calls to pi their types. A notification that can't be written is lost with the connection, which ends everything
// else too, so its error says nothing of use.
type host struct{ peer }

func (h host) notify(level, text string) {
	_ = h.Notify(wire.HostNotify, wire.NotifyParams{Level: level, Text: text})
}

func (h host) status(key, text string) {
	_ = h.Notify(wire.HostStatus, wire.StatusParams{Key: key, Text: text})
}

func (h host) claims(c wire.Claims) { _ = h.Notify(wire.HostClaims, c) }

func (h host) tool(t wire.ToolUpdate) { _ = h.Notify(wire.HostTool, t) }

func (h host) tools(ctx context.Context) (wire.ToolsResult, error) {
	var res wire.ToolsResult
	err := h.Call(ctx, wire.HostTools, wire.Empty{}, &res)
	return res, err
}

// send and prompt run then in pi's order: before anything that pi says after its answer, such as the end of the run that the
// message or prompt began.
func (h host) send(ctx context.Context, p wire.SendParams, then func(error)) {
	h.CallThen(ctx, wire.HostSend, p, nil, then)
}

func (h host) prompt(ctx context.Context, text string, then func(error)) {
	h.CallThen(ctx, wire.HostPrompt, wire.PromptParams{Text: text}, nil, then)
}

func (h host) exit(ctx context.Context) error {
	return h.Call(ctx, wire.HostExit, wire.Empty{}, &wire.Empty{})
}

func (h host) emit(ctx context.Context, channel string, payload any) (json.RawMessage, error) {
	return h.emitFrozen(ctx, channel, payload, "")
}

// emitFrozen is emit with a field that listeners can't change.
func (h host) emitFrozen(ctx context.Context, channel string, payload any, field string) (json.RawMessage, error) {
	raw, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	var res wire.EmitResult
	err = h.Call(ctx, wire.HostEmit, wire.EmitParams{Channel: channel, Payload: raw, Freeze: field}, &res)
	return res.Payload, err
}

func (h host) entries(ctx context.Context, p wire.EntriesParams) (wire.EntriesResult, error) {
	var res wire.EntriesResult
	err := h.Call(ctx, wire.HostEntries, p, &res)
	return res, err
}

func (h host) models(ctx context.Context, all bool) (wire.ModelsResult, error) {
	var res wire.ModelsResult
	err := h.Call(ctx, wire.HostModels, wire.ModelsParams{All: all}, &res)
	return res, err
}

func (h host) dialog(ctx context.Context, p wire.DialogParams) (wire.DialogResult, error) {
	var res wire.DialogResult
	if p.Options == nil {
		p.Options = []string{}
	}
	err := h.Call(ctx, wire.HostDialog, p, &res)
	return res, err
}

func (h host) lookTrust(ctx context.Context, p wire.TrustLookParams) (wire.TrustLookResult, error) {
	var res wire.TrustLookResult
	err := h.Call(ctx, wire.HostTrustLook, p, &res)
	return res, err
}

func (h host) saveTrust(ctx context.Context, updates []wire.TrustUpdate) error {
	return h.Call(ctx, wire.HostTrustSave, wire.TrustSaveParams{Updates: updates}, &wire.Empty{})
}
