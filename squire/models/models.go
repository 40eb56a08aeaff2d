// Package models chooses the model and the thinking level of a delegation from pi's registry. It is pure.
package models

import (
	"slices"
	"strings"

	"pi-cradle/internal/closest"
	"pi-cradle/internal/usererr"
	"pi-cradle/rpc/wire"
)

// Wish is what was asked for, the stronger first. Empty strings ask for nothing.
type Wish struct {
	CallModel, CallThinking   string // from the command or the tool
	AgentModel, AgentThinking string // from the agent file
}

// Choice is what the delegate is started with.
type Choice struct {
	Model    string // for pi's --model; "" lets pi choose
	Thinking string // for pi's --thinking; "" lets pi choose
	Notes    []string
}

// levels are pi's thinking levels in their order, for models that say nothing of their own.
var levels = []string{"off", "minimal", "low", "medium", "high", "xhigh", "max"}

// Choose resolves a wish against the registry. A model that is written as provider/id must be known and have credentials. A
// bare id or alias goes to pi as it is, which resolves it, but one that no model of the registry resembles is refused. A level
// that the model does not support moves to the nearest one it does, with a note.
func Choose(w Wish, reg wire.ModelsResult) (Choice, error) {
	var c Choice
	name := first(w.CallModel, w.AgentModel)
	model, exact, err := find(name, reg)
	if err != nil {
		return c, err
	}
	c.Model = name
	if name == "" && reg.Current != nil {
		c.Model = reg.Current.Provider + "/" + reg.Current.ID
		model, exact = lookup(c.Model, reg)
	}
	if c.Thinking, err = level(w, reg); err != nil {
		return c, err
	}
	if exact && c.Thinking != "" && len(model.Thinking) > 0 {
		if near := nearest(c.Thinking, model.Thinking); near != c.Thinking {
			c.Notes = append(c.Notes, c.Model+" does not support thinking "+c.Thinking+"; using "+near)
			c.Thinking = near
		}
	}
	return c, nil
}

func first(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

func lookup(name string, reg wire.ModelsResult) (wire.Model, bool) {
	i := slices.IndexFunc(reg.Models, func(m wire.Model) bool { return m.Provider+"/"+m.ID == name })
	if i < 0 {
		return wire.Model{}, false
	}
	return reg.Models[i], true
}

func find(name string, reg wire.ModelsResult) (m wire.Model, exact bool, err error) {
	if name == "" {
		return m, false, nil
	}
	if strings.ContainsAny(name, "*?") {
		return m, false, usererr.New("model %q is a pattern, and a delegate runs on one model", name).Hint("name it as provider/model-id")
	}
	if m, exact = lookup(name, reg); exact {
		if !m.Available {
			return m, true, usererr.New("no credentials are configured for model %q", name).
				Hint("log in with /login %s, or choose a model that /model lists", m.Provider)
		}
		return m, true, nil
	}
	provider, _, qualified := strings.Cut(name, "/")
	known := func(m wire.Model) bool {
		if qualified {
			return false // provider/id is exact; ids that hold a slash themselves were tried as a whole above
		}
		return strings.Contains(strings.ToLower(m.ID), strings.ToLower(name)) || strings.Contains(strings.ToLower(m.Name), strings.ToLower(name))
	}
	if qualified {
		// An id may hold slashes and be given without its provider, or carry pi's :level suffix.
		known = func(m wire.Model) bool {
			base, _, _ := strings.Cut(name, ":")
			return m.ID == name || m.Provider+"/"+m.ID == base
		}
	}
	if slices.ContainsFunc(reg.Models, known) {
		return m, false, nil
	}
	refusal := usererr.New("unknown model %q", name)
	if hint := closest.Hint(name, names(reg, provider, qualified)); hint != "" {
		return m, false, refusal.Hint("%s", hint)
	}
	return m, false, refusal.Hint("/model lists the models this pi can use")
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

// nearest gives the supported level next to the wanted one; of two equally near the lower.
func nearest(want string, supported []string) string {
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
