package models

import (
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
		{"no credentials", Wish{AgentModel: "locked/m"}, "", "", `no credentials are configured for model "locked/m"; log in with /login locked`, ""},
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
