package models

import (
	"slices"
	"strings"
	"testing"

	"pi-cradle/internal/usererr"
	"pi-cradle/rpc/wire"
)

var registry = wire.ModelsResult{
	Models: []wire.Model{
		{Provider: "fake", ID: "echo-1", Name: "Echo One", Available: true, Thinking: []string{"off"}},
		{Provider: "fake", ID: "deep", Name: "Deep", Available: true, Thinking: []string{"off", "low", "high"}},
		{Provider: "router", ID: "org/deep-2", Name: "Deep Two", Available: true},
		{Provider: "locked", ID: "m", Name: "Locked"},
	},
	Current:  &wire.ModelRef{Provider: "fake", ID: "echo-1"},
	Thinking: "off",
}

func marked(names ...string) func(wire.Model) string {
	return func(m wire.Model) string {
		if slices.Contains(names, m.Provider+"/"+m.ID) {
			return "is usage-limited until noon"
		}
		return ""
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name            string
		wish            Wish
		model, thinking string
		err, note       string
	}{
		{"nothing asked: the session's own", Wish{}, "fake/echo-1", "off", "", ""},
		{"the agent's", Wish{AgentModel: "fake/deep", AgentThinking: "low"}, "fake/deep", "low", "", ""},
		{"the call wins", Wish{CallModel: "fake/deep", CallThinking: "high", AgentModel: "locked/m", AgentThinking: "low"}, "fake/deep", "high", "", ""},
		{"nearest level", Wish{CallModel: "fake/deep", CallThinking: "medium"}, "fake/deep", "low", "", "does not support thinking medium; using low"},
		{"nearest above", Wish{CallModel: "fake/deep", CallThinking: "max"}, "fake/deep", "high", "", "using high"},
		{"alias", Wish{CallModel: "deep"}, "deep", "off", "", ""},
		{"alias by name", Wish{CallModel: "Echo One"}, "Echo One", "off", "", ""},
		{"id with a slash", Wish{CallModel: "router/org/deep-2"}, "router/org/deep-2", "off", "", ""},
		{"id with a slash, bare", Wish{CallModel: "org/deep-2"}, "org/deep-2", "off", "", ""},
		{"pi's level suffix", Wish{CallModel: "fake/deep:high"}, "fake/deep:high", "off", "", ""},
		{"typo", Wish{CallModel: "fake/echo-2"}, "", "", `unknown model "fake/echo-2"; did you mean "fake/echo-1"?`, ""},
		{"typo in the provider", Wish{CallModel: "fkae/echo-1"}, "", "", `did you mean "fake/echo-1"?`, ""},
		{"alias typo", Wish{CallModel: "deeep"}, "", "", `did you mean "deep"?`, ""},
		{"nothing like it", Wish{CallModel: "zzz"}, "", "", "/model lists", ""},
		{"no credentials", Wish{CallModel: "locked/m"}, "", "", `no credentials are configured for model "locked/m"; log in with /login locked`, ""},
		{"alias without credentials", Wish{CallModel: "Locked"}, "", "", `no credentials are configured for model "Locked"`, ""},
		{"an explicit model is never replaced", Wish{CallModel: "locked/m", Fallback: []string{"fake/deep"}}, "", "", "no credentials", ""},
		{"an agent's alias is pi's to resolve", Wish{AgentModel: "sonnet"}, "sonnet", "off", "", ""},
		{"fallback", Wish{AgentModel: "locked/m", Fallback: []string{"fake/deep", "x"}}, "fake/deep", "off", "", "Used fallback fake/deep because locked/m has no configured credentials"},
		{"fallback after an alias", Wish{AgentModel: "sonnet", Fallback: []string{"fake/deep"}}, "sonnet", "off", "", ""},
		{"fallback of the session's own", Wish{Fallback: []string{"locked/m", "fake/deep"}, Marked: marked("fake/echo-1")}, "fake/deep", "off", "", "because fake/echo-1 is usage-limited until noon and locked/m has no configured credentials"},
		{"none left", Wish{AgentModel: "locked/m", Fallback: []string{"fake/deep"}, Marked: marked("fake/deep")}, "", "", "can be used:; - locked/m has no configured credentials; - fake/deep is usage-limited until noon; log in", ""},
		{"a marked model in a call", Wish{CallModel: "fake/deep", AgentModel: "fake/echo-1", Fallback: []string{"locked/m", "alias"}, Marked: marked("fake/deep")}, "", "", `model "fake/deep" is usage-limited until noon; leave the model out to use the agent's own: fake/echo-1, alias`, ""},
		{"locked model", Wish{CallModel: "fake/echo-1", AgentModel: "fake/deep", LockModel: true}, "fake/deep", "off", "", "model fake/echo-1 was not used: the agent locks its model"},
		{"locked model, the same", Wish{CallModel: "fake/deep", AgentModel: "fake/deep", LockModel: true}, "fake/deep", "off", "", ""},
		{"locked level", Wish{CallThinking: "high", AgentThinking: "low", AgentModel: "fake/deep", LockThinking: true}, "fake/deep", "low", "", "thinking high was not used"},
		{"pattern", Wish{CallModel: "fake/*"}, "", "", "is a pattern", ""},
		{"level typo", Wish{CallThinking: "hihg"}, "", "", `unknown thinking level "hihg"; did you mean "high"?`, ""},
		{"level out of nowhere", Wish{CallThinking: "loud"}, "", "", "the levels are off, minimal", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Choose(c.wish, registry)
			if c.err != "" {
				if err == nil || !strings.Contains(strings.ReplaceAll(usererr.Text(err, ""), "\n", "; "), c.err) {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || got.Model != c.model || got.Thinking != c.thinking || !strings.Contains(strings.Join(got.Notes, "|"), c.note) || (c.note == "" && len(got.Notes) > 0) {
				t.Fatalf("%+v, %v", got, err)
			}
		})
	}
}

func TestRestAndSkipped(t *testing.T) {
	c, err := Choose(Wish{AgentModel: "locked/m", Fallback: []string{"fake/deep", "sonnet", "fake/echo-1"}}, registry)
	if err != nil || !slices.Equal(c.Rest, []string{"sonnet", "fake/echo-1"}) || !slices.Equal(c.Skipped, []Skipped{{"locked/m", noCredentials}}) {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := Choose(Wish{CallModel: "fake/echo-1", Fallback: []string{"fake/deep"}}, registry); err != nil || c.Rest != nil {
		t.Errorf("a model of the call has fallbacks: %+v, %v", c, err)
	}
}

// The models with credentials are enough exactly when the whole registry would not change the choice.
func TestSettled(t *testing.T) {
	usable := registry
	usable.Models = slices.DeleteFunc(slices.Clone(registry.Models), func(m wire.Model) bool { return !m.Available })
	for _, w := range []Wish{
		{}, {AgentModel: "fake/deep"}, {AgentModel: "locked/m", Fallback: []string{"fake/deep"}}, {AgentModel: "sonnet"}, {CallModel: "fake/deep"},
		{CallModel: "deep"}, {CallModel: "nope"}, {CallModel: "locked/m", AgentModel: "fake/deep", LockModel: true}, {AgentModel: "fake/deep", Fallback: []string{"sonnet"}, Marked: marked("fake/deep")},
	} {
		if !w.Settled(usable) {
			continue
		}
		some, err1 := Choose(w, usable)
		all, err2 := Choose(w, registry)
		if err1 != nil || err2 != nil || some.Model != all.Model {
			t.Errorf("%+v: %+v (%v), %+v (%v)", w, some, err1, all, err2)
		}
	}
	if (Wish{AgentModel: "locked/m"}).Settled(usable) || !(Wish{AgentModel: "fake/deep"}).Settled(usable) {
		t.Error("settled too early, or never")
	}
}
