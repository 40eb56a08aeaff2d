package rpctest

import (
	"context"
	"encoding/json"

	"pi-cradle/rpc"
	"pi-cradle/rpc/wire"
)

// Responder stands in for the fake pi's own answer to a host method. next does what pi would have done and gives its answer; a
// responder may look at the params, call next or not, and answer something else, later, or never. ctx ends with the call.
type Responder func(ctx context.Context, params json.RawMessage, next func() (any, error)) (any, error)

// Withhold does what pi does and never says so.
func Withhold(ctx context.Context, _ json.RawMessage, next func() (any, error)) (any, error) {
	if _, err := next(); err != nil {
		return nil, err
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// Ignore neither does it nor answers.
func Ignore(ctx context.Context, _ json.RawMessage, _ func() (any, error)) (any, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Refuse answers with err and does nothing.
func Refuse(err error) Responder {
	return func(context.Context, json.RawMessage, func() (any, error)) (any, error) { return nil, err }
}

// On sets the responder of a host method, or takes it away with nil. It may be changed at any time.
func (p *Pi) On(method string, r Responder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.responders[method] = r
}

// Listen adds a listener to pi's event bus. It may change the payload, unless that was emitted frozen.
func (p *Pi) Listen(channel string, listener func(payload map[string]any)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listeners[channel] = append(p.listeners[channel], listener)
}

// AnswerDialogs adds answers for the dialogs to come; without one they are cancelled.
func (p *Pi) AnswerDialogs(answers ...wire.DialogResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialogs = append(p.dialogs, answers...)
}

func (p *Pi) hostMux() *rpc.Mux {
	mux := rpc.NewMux()
	told(p, mux, wire.HostNotify, func(n wire.NotifyParams) { p.notices = append(p.notices, n) })
	told(p, mux, wire.HostStatus, func(s wire.StatusParams) { p.status[s.Key] = s.Text })
	told(p, mux, wire.HostClaims, func(c wire.Claims) { p.claims = c })
	told(p, mux, wire.HostTool, func(u wire.ToolUpdate) { p.tools[u.Name] = u.Description })
	asked(p, mux, wire.HostSend, p.hostSend)
	asked(p, mux, wire.HostPrompt, p.hostPrompt)
	asked(p, mux, wire.HostExit, func(context.Context, wire.Empty) (wire.Empty, error) {
		p.change(func() { p.exited = true })
		return wire.Empty{}, nil
	})
	// In order: listeners hand mail over by the claims that came before.
	rpc.Ordered(mux, wire.HostEmit, respond(p, wire.HostEmit, p.hostEmit))
	asked(p, mux, wire.HostEntries, func(_ context.Context, e wire.EntriesParams) (wire.EntriesResult, error) {
		s, err := p.open()
		if err != nil {
			return wire.EntriesResult{}, err
		}
		return s.entries(e), nil
	})
	asked(p, mux, wire.HostModels, func(_ context.Context, m wire.ModelsParams) (wire.ModelsResult, error) {
		out := p.options.Models
		out.Models = nil
		for _, model := range p.options.Models.Models {
			if m.All || model.Available {
				out.Models = append(out.Models, model)
			}
		}
		return out, nil
	})
	asked(p, mux, wire.HostTools, func(context.Context, wire.Empty) (wire.ToolsResult, error) { return p.options.Tools, nil })
	asked(p, mux, wire.HostTrustLook, p.hostTrustLook)
	asked(p, mux, wire.HostTrustSave, p.hostTrustSave)
	asked(p, mux, wire.HostDialog, func(context.Context, wire.DialogParams) (wire.DialogResult, error) {
		var answer wire.DialogResult
		p.change(func() {
			if len(p.dialogs) > 0 {
				answer, p.dialogs = p.dialogs[0], p.dialogs[1:]
			}
		})
		return answer, nil
	})
	return mux
}

// told registers a notification; fn runs under the lock.
func told[P any](p *Pi, mux *rpc.Mux, method string, fn func(P)) {
	rpc.Notification(mux, method, func(_ context.Context, params P) {
		p.change(func() {
			p.calls[method]++
			fn(params)
		})
	})
}

// asked registers a call, with the responder of the moment around it. Calls are handled as they come: one that waits for the end
// of a run must not hold up another. Nothing is promised about the order of those that come together.
func asked[P, R any](p *Pi, mux *rpc.Mux, method string, fn func(context.Context, P) (R, error)) {
	rpc.Concurrent(mux, method, respond(p, method, fn))
}

func respond[P, R any](p *Pi, method string, fn func(context.Context, P) (R, error)) func(context.Context, json.RawMessage) (any, error) {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var params P
		if err := json.Unmarshal(raw, &params); err != nil {
			return nil, err
		}
		var responder Responder
		p.change(func() {
			p.calls[method]++
			responder = p.responders[method]
		})
		if responder == nil {
			return fn(ctx, params)
		}
		return responder(ctx, raw, func() (any, error) {
			result, err := fn(ctx, params)
			if a, ok := any(result).(rpc.Answer); ok && err == nil {
				a.Sent() // the answer may never be
				return a.Result, nil
			}
			return result, err
		})
	}
}

func (p *Pi) open() (*Session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == nil {
		return nil, errStale
	}
	return p.session, nil
}

var errStale = rpc.Errorf(wire.CodeStale, "the session is gone")

// hostSend answers when the message is in the conversation, or can't come into it any more.
func (p *Pi) hostSend(ctx context.Context, m wire.SendParams) (rpc.Answer, error) {
	return p.enter(ctx, func(s *Session) (runs bool, text string) {
		s.addMessage(m)
		return m.Trigger, m.Content
	})
}

func (p *Pi) hostPrompt(ctx context.Context, prompt wire.PromptParams) (rpc.Answer, error) {
	return p.enter(ctx, func(s *Session) (runs bool, text string) {
		s.addPrompt(prompt.Text)
		return true, prompt.Text
	})
}

// enter puts something into the conversation once no run is under way, and begins one with it if it says so. The run goes on only
// when the answer is on its way: pi says that a message is there long before the run ends.
func (p *Pi) enter(ctx context.Context, add func(*Session) (runs bool, text string)) (rpc.Answer, error) {
	session, err := p.open()
	if err != nil {
		return rpc.Answer{}, err
	}
	for {
		p.mu.Lock()
		switch {
		case p.session != session:
			p.mu.Unlock()
			return rpc.Answer{}, errStale
		case ctx.Err() != nil:
			p.mu.Unlock()
			return rpc.Answer{}, ctx.Err()
		case !p.running:
			runs, text := add(session)
			p.entering++
			p.changedLocked()
			play := func() {}
			if runs {
				play = p.startRunLocked(text)
			}
			p.mu.Unlock()
			return rpc.Answer{Result: wire.Empty{}, Sent: func() {
				p.change(func() { p.entering-- })
				play()
			}}, nil
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func (p *Pi) hostEmit(_ context.Context, e wire.EmitParams) (wire.EmitResult, error) {
	p.mu.Lock()
	listeners := p.listeners[e.Channel]
	p.mu.Unlock()
	payload := e.Payload
	for _, listen := range listeners {
		var object map[string]any
		if err := json.Unmarshal(payload, &object); err != nil {
			return wire.EmitResult{}, err
		}
		listen(object)
		if e.Freeze == "*" {
			continue
		}
		var err error
		if payload, err = json.Marshal(object); err != nil {
			return wire.EmitResult{}, err
		}
	}
	return wire.EmitResult{Payload: payload}, nil
}
