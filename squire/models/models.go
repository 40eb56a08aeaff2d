// Package models chooses the model and the thinking level of a delegation from pi's registry. It is pure.
package models

import (
	"slices"
	"strings"

	"pi-cradle/internal/closest"
	"pi-cradle/internal/usererr"
	"pi-cradle/rpc/wire"
)

// Wish is what was asked for. Empty strings ask for nothing.
type Wish struct {
	CallModel, CallThinking   string // from the command or the tool
	AgentModel, AgentThinking string // from the agent file
	Fallback                  []string
	LockModel, LockThinking   bool // the call can't override the agent

	// Marked says why a model that could be used should not be now, such as "is usage-limited until …", or "". nil: none is marked.
	Marked func(wire.Model) string
}

// Choice is what the delegate is started with.
type Choice struct {
	Model    string   // for pi's --model; "" lets pi choose
	Thinking string   // for pi's --thinking; "" lets pi choose
	Rest     []string // candidates after Model, for a delegate that has to move on
	Skipped  []Skipped
	Notes    []string
}

// Skipped is a candidate before the chosen one.
type Skipped struct {
	Model  string `json:"model"`
	Reason string `json:"reason"` // continues a sentence that begins with the model
}

const noCredentials = "has no configured credentials"

// levels are pi's thinking levels in their order, for models that say nothing of their own.
var levels = []string{"off", "minimal", "low", "medium", "high", "xhigh", "max"}

// locked drops what a call asked for and may not have.
func (w Wish) locked() (Wish, []string) {
	var notes []string
	refuse := func(field string, call *string, agent string) {
		if *call != "" && *call != agent {
			notes = append(notes, field+" "+*call+" was not used: the agent locks its "+field)
		}
		*call = ""
	}
	if w.LockModel {
		refuse("model", &w.CallModel, w.AgentModel)
	}
	if w.LockThinking {
		refuse("thinking", &w.CallThinking, w.AgentThinking)
	}
	return w, notes
}

// candidates are the models to try, in order. "" is pi's own choice.
func (w Wish) candidates(reg wire.ModelsResult) []string {
	if w.CallModel != "" {
		return []string{w.CallModel}
	}
	model := w.AgentModel
	if model == "" && reg.Current != nil {
		model = reg.Current.Provider + "/" + reg.Current.ID
	}
	return append([]string{model}, w.Fallback...)
}

// Settled says that the models with credentials are all that Choose needs to know: its first candidate is one of them.
func (w Wish) Settled(reg wire.ModelsResult) bool {
	w, _ = w.locked()
	first := w.candidates(reg)[0]
	m, found := lookup(first, reg)
	return first == "" || found && w.usable(m) == ""
}

// usable gives the reason why a model of the registry can't be used, or "".
func (w Wish) usable(m wire.Model) string {
	switch {
	case !m.Available:
		return noCredentials
	case w.Marked != nil:
		return w.Marked(m)
	}
	return ""
}

// Choose resolves a wish against the whole registry. The model of a call is taken or refused: it must be known and have
// credentials. Of an agent's own models the first is taken that has credentials and no mark, and those before it are named. What
// is no provider/id of the registry goes to pi as it is, which resolves it. A level that the model does not support moves to the
// nearest one it does, with a note.
func Choose(w Wish, reg wire.ModelsResult) (Choice, error) {
	var c Choice
	w, c.Notes = w.locked()
	if w.CallModel != "" {
		if err := w.checkCall(reg); err != nil {
			return c, err
		}
	}
	candidates := w.candidates(reg)
	var model wire.Model
	var exact, chosen bool
	for i, name := range candidates {
		if model, exact = lookup(name, reg); exact {
			if why := w.usable(model); why != "" {
				c.Skipped = append(c.Skipped, Skipped{name, why})
				continue
			}
		}
		c.Model, chosen = name, true
		if w.CallModel == "" {
			c.Rest = candidates[i+1:]
		}
		break
	}
	if !chosen {
		return c, noneLeft(c.Skipped)
	}
	if len(c.Skipped) > 0 {
		c.Notes = append(c.Notes, "Used fallback "+c.Model+" because "+sentence(c.Skipped, " and "))
	}
	var err error
	if c.Thinking, err = level(w, reg); err != nil {
		return c, err
	}
	if exact && c.Thinking != "" && len(model.Thinking) > 0 {
		if near := Nearest(c.Thinking, model.Thinking); near != c.Thinking {
			c.Notes = append(c.Notes, c.Model+" does not support thinking "+c.Thinking+"; using "+near)
			c.Thinking = near
		}
	}
	return c, nil
}

func sentence(skipped []Skipped, between string) string {
	parts := make([]string, len(skipped))
	for i, s := range skipped {
		parts[i] = s.Model + " " + s.Reason
	}
	return strings.Join(parts, between)
}

func noneLeft(skipped []Skipped) error {
	return usererr.New("none of the agent's models can be used:\n- %s", sentence(skipped, "\n- ")).
		Hint("log in with /login, or name another model in the call or in the agent's file")
}

func lookup(name string, reg wire.ModelsResult) (wire.Model, bool) {
	i := slices.IndexFunc(reg.Models, func(m wire.Model) bool { return m.Provider+"/"+m.ID == name })
	if i < 0 {
		return wire.Model{}, false
	}
	return reg.Models[i], true
}

// checkCall refuses a model named in a call that is unknown, has no credentials, or is marked.
func (w Wish) checkCall(reg wire.ModelsResult) error {
	name := w.CallModel
	if strings.ContainsAny(name, "*?") {
		return usererr.New("model %q is a pattern, and a delegate runs on one model", name).Hint("name it as provider/model-id")
	}
	matches := resembling(name, reg)
	provider, _, qualified := strings.Cut(name, "/")
	if len(matches) == 0 {
		refusal := usererr.New("unknown model %q", name)
		if hint := closest.Hint(name, names(reg, provider, qualified)); hint != "" {
			return refusal.Hint("%s", hint)
		}
		return refusal.Hint("/model lists the models this pi can use")
	}
	var why string
	for _, m := range matches {
		if why = w.usable(m); why == "" {
			return nil
		}
	}
	if why == noCredentials {
		return usererr.New("no credentials are configured for model %q", name).
			Hint("log in with /login %s, or choose a model that /model lists", matches[0].Provider)
	}
	refusal := usererr.New("model %q %s", name, why)
	if others := w.unmarked(reg); len(others) > 0 {
		refusal.Hint("leave the model out to use the agent's own: %s", strings.Join(others, ", "))
	}
	return refusal
}

// unmarked lists the agent's own models that could be used.
func (w Wish) unmarked(reg wire.ModelsResult) []string {
	w.CallModel = ""
	return slices.DeleteFunc(w.candidates(reg), func(name string) bool {
		m, exact := lookup(name, reg)
		return name == "" || exact && w.usable(m) != ""
	})
}

// resembling lists what a name given in a call can mean. A qualified name is exact, save that an id may hold slashes and be given
// without its provider, or carry pi's ":level" suffix; a bare one is matched as loosely as pi does it.
func resembling(name string, reg wire.ModelsResult) []wire.Model {
	if m, exact := lookup(name, reg); exact {
		return []wire.Model{m}
	}
	means := func(m wire.Model) bool {
		return strings.Contains(strings.ToLower(m.ID), strings.ToLower(name)) || strings.Contains(strings.ToLower(m.Name), strings.ToLower(name))
	}
	if strings.Contains(name, "/") {
		base, _, _ := strings.Cut(name, ":")
		means = func(m wire.Model) bool { return m.ID == name || m.Provider+"/"+m.ID == base }
	}
	return slices.DeleteFunc(slices.Clone(reg.Models), func(m wire.Model) bool { return !means(m) })
}

// names lists the registry for a suggestion, those with credentials first so that they win ties.
func names(reg wire.ModelsResult, provider string, qualified bool) []string {
	var usable, rest []string
	for _, m := range reg.Models {
		n := m.Provider + "/" + m.ID
		if !qualified {
			n = m.ID
		}
		if m.Available || (qualified && m.Provider == provider) {
			usable = append(usable, n)
		} else {
			rest = append(rest, n)
		}
	}
	return append(usable, rest...)
}

func level(w Wish, reg wire.ModelsResult) (string, error) {
	for _, l := range []string{w.CallThinking, w.AgentThinking} {
		if l == "" {
			continue
		}
		if !slices.Contains(levels, l) {
			refusal := usererr.New("unknown thinking level %q", l)
			if hint := closest.Hint(l, levels); hint != "" {
				refusal.Hint("%s", hint)
			}
			return "", refusal.Hint("the levels are %s", strings.Join(levels, ", "))
		}
		return l, nil
	}
	return reg.Thinking, nil
}

// Nearest gives the supported level next to the wanted one; of two equally near the lower.
func Nearest(want string, supported []string) string {
	at := slices.Index(levels, want)
	best, distance := want, len(levels)
	for _, l := range levels {
		if !slices.Contains(supported, l) {
			continue
		}
		d := slices.Index(levels, l) - at
		if d < 0 {
			d = -d
		}
		if d < distance {
			best, distance = l, d
		}
	}
	return best
}
