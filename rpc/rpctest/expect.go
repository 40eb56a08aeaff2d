package rpctest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pi-cradle/rpc/wire"
)

// Deadline is how long something may take before it counts as missing. A test that passes never waits for it.
const Deadline = 30 * time.Second

// State is what an expectation looks at: everything that has happened to the fake pi so far.
type State struct {
	Messages []wire.SendParams   // in the conversation
	Prompts  []string            // in the conversation
	Notices  []wire.NotifyParams // shown to the user, with those of the extension itself
	Status   map[string]string   // footer entries by key
	Tools    map[string]string   // tools whose description was replaced
	Claims   wire.Claims
	Ends     int            // how many helpers have ended
	Calls    map[string]int // how often each host method was called
	Runs     int            // how many runs have started
	Running  bool
	Exited   bool   // the helper asked pi to end
	Down     string // why the helper is not there; "" while it is, or while it is brought back by itself

	recorder *recorder
}

// Verdict is what an expectation says of a state.
type Verdict int

// Unmeetable means that nothing which can still happen will make it met.
const (
	Unmet Verdict = iota
	Met
	Unmeetable
)

// Expectation looks at a state and says why it is not met.
type Expectation func(State) (v Verdict, why string)

// met is Met or Unmet; what only the helper could still bring about is unmeetable without one.
func met(ok bool, s State, format string, args ...any) (Verdict, string) {
	why := fmt.Sprintf(format, args...)
	switch {
	case ok:
		return Met, why
	case s.Down != "":
		return Unmeetable, fmt.Sprintf("%s, and the helper is gone: %s", why, s.Down)
	}
	return Unmet, why
}

// Sent expects one message of the conversation to contain all these texts. Two such messages can't be put right.
func Sent(texts ...string) Expectation {
	return func(s State) (Verdict, string) {
		n := 0
		for _, m := range s.Messages {
			if containsAll(m.Content, texts) {
				n++
			}
		}
		if n > 1 {
			return Unmeetable, fmt.Sprintf("%d messages contain %q", n, texts)
		}
		return met(n == 1, s, "none of %d messages contains %q", len(s.Messages), texts)
	}
}

// Prompted expects exactly one prompt with all these texts.
func Prompted(texts ...string) Expectation {
	return func(s State) (Verdict, string) {
		n := 0
		for _, prompt := range s.Prompts {
			if containsAll(prompt, texts) {
				n++
			}
		}
		if n > 1 {
			return Unmeetable, fmt.Sprintf("%d prompts contain %q", n, texts)
		}
		return met(n == 1, s, "none of %d prompts contains %q", len(s.Prompts), texts)
	}
}

// Notified expects a notice of a level ("" for any) with all these texts.
func Notified(level string, texts ...string) Expectation {
	return func(s State) (Verdict, string) {
		return met(slices.ContainsFunc(s.Notices, func(n wire.NotifyParams) bool {
			return (level == "" || n.Level == level) && containsAll(n.Text, texts)
		}), s, "none of %d notices is of level %q and contains %q", len(s.Notices), level, texts)
	}
}

// StatusIs expects the footer entry of key to contain text, or to be empty when text is.
func StatusIs(key, text string) Expectation {
	return func(s State) (Verdict, string) {
		have := s.Status[key]
		return met(text == "" && have == "" || text != "" && strings.Contains(have, text), s, "footer entry %q is %q, not %q", key, have, text)
	}
}

// Claimed expects the session to wait for an answer from this address.
func Claimed(address string) Expectation {
	return func(s State) (Verdict, string) {
		for _, from := range s.Claims.Requests {
			if from == address {
				return Met, ""
			}
		}
		return met(false, s, "nothing is awaited from %q", address)
	}
}

// Called expects at least n calls of a host method.
func Called(method string, n int) Expectation {
	return func(s State) (Verdict, string) {
		return met(s.Calls[method] >= n, s, "%s was called %d times, not %d", method, s.Calls[method], n)
	}
}

// Exited expects the helper to have asked pi to end.
func Exited() Expectation {
	return func(s State) (Verdict, string) { return met(s.Exited, s, "pi was not asked to end") }
}

// Idle expects that at least n runs have started and none is under way.
func Idle(n int) Expectation {
	return func(s State) (Verdict, string) {
		return met(s.Runs >= n && !s.Running, s, "%d runs have started, not %d, or one is under way", s.Runs, n)
	}
}

// HelperEnded expects at least n helpers to have come to an end.
func HelperEnded(n int) Expectation {
	return func(s State) (Verdict, string) {
		return met(s.Ends >= n, s, "%d helpers have ended, not %d", s.Ends, n)
	}
}

// All expects all of them at one moment.
func All(expectations ...Expectation) Expectation {
	return func(s State) (Verdict, string) {
		verdict, reasons := Met, []string{}
		for _, e := range expectations {
			v, why := e(s)
			if v == Met {
				continue
			}
			reasons = append(reasons, why)
			if verdict != Unmeetable {
				verdict = v
			}
		}
		return verdict, strings.Join(reasons, "; ")
	}
}

// Any expects one of them, whichever comes first.
func Any(expectations ...Expectation) Expectation {
	return func(s State) (Verdict, string) {
		verdict, reasons := Unmeetable, []string{}
		for _, e := range expectations {
			v, why := e(s)
			if v == Met {
				return v, why
			}
			reasons = append(reasons, why)
			if v == Unmet {
				verdict = v
			}
		}
		return verdict, strings.Join(reasons, "; or ")
	}
}

// OnceMet waits for before, and from that moment on then is all that counts: if it is not met right there, it never will be.
func OnceMet(before, then Expectation) Expectation {
	return func(s State) (Verdict, string) {
		v, why := before(s)
		if v != Met {
			return v, why
		}
		if v, why = then(s); v == Met {
			return Met, why
		}
		return Unmeetable, "by then, " + why
	}
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
