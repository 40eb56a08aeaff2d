package squire

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pi-cradle/internal/usererr"
)

// launchOffer is the payload of session:launch. Listeners may append to Args and add keys to Env.
type launchOffer struct {
	Args       []string          `json:"args"`
	Env        map[string]string `json:"env"`
	Agent      string            `json:"agent"`
	Cwd        string            `json:"cwd"`
	ToolCallID string            `json:"toolCallId,omitempty"`
	Parent     string            `json:"parent"`
	Root       string            `json:"root"`
	Depth      int               `json:"depth"`
	Chain      []string          `json:"chain"`
}

// customized is what listeners made of it: all arguments, and the variables that they added.
type customized struct {
	args []string
	env  map[string]string
}

// emitLaunch lets other extensions shape a launch.
func (l *live) emitLaunch(ctx context.Context, offer launchOffer) (customized, error) {
	after, err := l.host.emitFrozen(ctx, "session:launch", offer, "chain")
	if err != nil {
		return customized{}, fmt.Errorf("other extensions could not be told of the launch: %w", err)
	}
	return accept(offer, after)
}

// chosen are flags of pi whose values are decided by the parent: what is trusted, and where the session is kept. A listener that
// adds one would start a delegate that its parent does not find, or that may do what it must not.
var chosen = map[string]string{
	"--approve": "the trust", "-a": "the trust", "--no-approve": "the trust", "-na": "the trust",
	"--session": "the session", "--session-id": "the session", "--continue": "the session", "-c": "the session", "--resume": "the session",
	"-r": "the session", "--fork": "the session", "--no-session": "the session",
	"--session-dir": "the session directory", "--cwd": "the working directory",
}

// accept takes what listeners may do and refuses the rest, naming it: the bus does not tell which extension it was.
func accept(offer launchOffer, payload json.RawMessage) (customized, error) {
	refuse := func(format string, args ...any) (customized, error) {
		return customized{}, usererr.New("another extension changed the launch of %q on session:launch: %s", offer.Agent, fmt.Sprintf(format, args...)).
			Hint("listeners may append unrelated arguments and add variables; look for the one that does more among the extensions of this pi")
	}
	var after struct {
		Args []any          `json:"args"`
		Env  map[string]any `json:"env"`
	}
	if err := json.Unmarshal(payload, &after); err != nil {
		return refuse("what it left can't be read: %v", err)
	}
	got := customized{env: map[string]string{}}
	for _, a := range after.Args {
		text, ok := a.(string)
		if !ok {
			return refuse("argument %v is not a text", a)
		}
		got.args = append(got.args, text)
	}
	if len(got.args) < len(offer.Args) || !slices.Equal(got.args[:len(offer.Args)], offer.Args) {
		return refuse("arguments were changed or removed")
	}
	for _, a := range got.args[len(offer.Args):] {
		flag, _, _ := strings.Cut(a, "=")
		if what, ok := chosen[flag]; ok {
			return refuse("it added %q, but %s is chosen by the parent", a, what)
		}
	}
	for name, value := range offer.Env {
		if after.Env[name] != value {
			return refuse("variable %s was changed or removed", name)
		}
	}
	for name, value := range after.Env {
		if _, ours := offer.Env[name]; ours {
			continue
		}
		text, ok := value.(string)
		if !ok || name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(text, "\x00") {
			return refuse("variable %q can't be set to %v", name, value)
		}
		got.env[name] = text
	}
	return got, nil
}
