package squire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pi-cradle/internal/usererr"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/results"
	"pi-cradle/squire/session"
	"pi-cradle/squire/tmux"
)

// toolCall answers the model. A refusal is a result that it reads, hints included, never a broken call.
func (l *live) toolCall(ctx context.Context, p wire.ToolCallParams) (wire.ToolCallResult, error) {
	var res wire.ToolCallResult
	var err error
	switch p.Tool {
	case "delegate":
		res, err = l.toolDelegate(ctx, p)
	case "delegation_status":
		res, err = l.toolStatus(ctx, p.Params)
	case "delegation_close":
		res, err = l.toolClose(ctx, p.Params)
	default:
		err = usererr.New("unknown tool %q", p.Tool)
	}
	if err != nil && ctx.Err() != nil {
		return res, ctx.Err()
	}
	if err != nil {
		text := usererr.Text(err, "hint: ")
		return wire.ToolCallResult{Text: text, Details: json.RawMessage(`{}`), IsError: true, View: results.Refusal(text)}, nil
	}
	return res, nil
}

func decode(raw json.RawMessage, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return usererr.New("the parameters can't be read: %w", err)
	}
	return nil
}

// delegateInput is an order with what models often fill in although they mean nothing by it.
type delegateInput struct {
	order
	Cwd      wish `json:"cwd"`
	Worktree wish `json:"worktree"`
	Source   wish `json:"worktree_source"`
	Base     wish `json:"worktree_base"`
}

// wish is a text, or "" for everything that means none.
type wish string

func (w *wish) UnmarshalJSON(raw []byte) error {
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf("%s is no text", raw)
	}
	*w = ""
	if text != nil && !slices.Contains(unset, *text) {
		*w = wish(*text)
	}
	return nil
}

func (l *live) toolDelegate(ctx context.Context, p wire.ToolCallParams) (wire.ToolCallResult, error) {
	in := delegateInput{order: order{CallID: p.CallID}}
	if err := decode(p.Params, &in); err != nil {
		return wire.ToolCallResult{}, err
	}
	o := in.order
	o.Cwd, o.Worktree, o.Source, o.Base = string(in.Cwd), string(in.Worktree), string(in.Source), string(in.Base)
	s, err := l.delegate(ctx, o)
	if err != nil {
		return wire.ToolCallResult{}, err
	}
	return results.Started(&s.delegation, o.Task, s.notes), nil
}

type idParams struct {
	ID string `json:"id"`
}

func (l *live) toolStatus(ctx context.Context, raw json.RawMessage) (wire.ToolCallResult, error) {
	var p idParams
	if err := decode(raw, &p); err != nil {
		return wire.ToolCallResult{}, err
	}
	list, err := l.delegations(p.ID)
	if err != nil {
		return wire.ToolCallResult{}, err
	}
	where := map[string]session.Window{}
	for _, d := range list {
		if d.Closed == nil {
			where[d.ID] = d.Window
		}
	}
	checkouts := snapshots(ctx, list)
	seen := sightings(ctx, where)
	states := make([]results.State, len(list))
	for i := range list {
		if now := seen[list[i].ID].session; now != "" {
			list[i].Window.SessionName = now
		}
		states[i] = results.StateOf(&list[i], seen[list[i].ID].presence, checkouts()[i], l.svc.cfg.Now())
	}
	return results.Status(states, l.svc.cfg.Home), nil
}

// delegations copies the records of all, or of the one with an id.
func (l *live) delegations(id string) ([]session.Delegation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return nil, l.broken
	}
	var out []session.Delegation
	var known []string
	for _, d := range l.state.Children.Delegations {
		if id == "" || d.ID == id {
			out = append(out, d.Clone())
		}
		known = append(known, d.ID)
	}
	if id != "" && len(out) == 0 {
		refusal := usererr.New("unknown delegation %q", id)
		if len(known) > 0 {
			return nil, refusal.Hint("the delegations of this session are %s", strings.Join(known, ", "))
		}
		return nil, refusal.Hint("this session has started none")
	}
	return out, nil
}

func (l *live) toolClose(ctx context.Context, raw json.RawMessage) (wire.ToolCallResult, error) {
	var p idParams
	if err := decode(raw, &p); err != nil {
		return wire.ToolCallResult{}, err
	}
	if p.ID == "" {
		return wire.ToolCallResult{}, usererr.New("there is no delegation id")
	}
	list, err := l.delegations(p.ID)
	if err != nil {
		return wire.ToolCallResult{}, err
	}
	closed, err := l.closeWindow(ctx, list[0])
	if err != nil {
		return wire.ToolCallResult{}, err
	}
	return results.Closed(closed), nil
}

// closeWindow ends a delegation: first the window, then the record, so that a record never says more than is true.
func (l *live) closeWindow(ctx context.Context, d session.Delegation) (results.Close, error) {
	out := results.Close{Delegation: d}
	if d.Closed != nil {
		out.Already = true
		return out, nil
	}
	if d.Phase == session.Launching {
		return out, usererr.New("delegation %q is just being started", d.ID).Hint("try again in a moment")
	}
	if d.Window.Pane == "" {
		return out, usererr.New("it is not known in which window delegation %q runs", d.ID).Hint("close the window named %s by hand", d.Window.Name)
	}
	_ = l.apply(session.Closing{ID: d.ID}) // saves nothing
	var none *tmux.NoServerError
	killed, err := tmux.Server{Socket: d.Window.Socket}.Kill(ctx, window(d.Window))
	if err != nil && !errors.As(err, &none) {
		_ = l.apply(session.Closing{ID: d.ID, Off: true})
		return out, fmt.Errorf("the window of delegation %q could not be closed: %w", d.ID, err)
	}
	out.Killed = killed
	if err := l.apply(session.Closed{ID: d.ID, Killed: killed, At: l.now()}); err != nil {
		return out, fmt.Errorf("the window of delegation %q was closed, and that could not be recorded: %w", d.ID, err)
	}
	return out, nil
}
