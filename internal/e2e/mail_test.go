package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"pi-cradle/internal/testenv"
)

// withProvider is a world in which some sessions have a mail provider. environ goes to every session.
func withProvider(t *testing.T, who string, environ map[string]string) (*testenv.Env, *testenv.Pi) {
	t.Helper()
	t.Parallel()
	all := map[string]string{"PROVIDER_FOR": who}
	maps.Copy(all, environ)
	e := testenv.New(t, testenv.Options{Environ: all}) // from the start: delegates have the tmux server's environment
	e.Scout()
	provider, err := os.ReadFile(filepath.Join(testenv.Repo(), "internal/e2e/testdata/provider.ts"))
	if err != nil {
		t.Fatal(err)
	}
	e.Write(filepath.Join(e.AgentDir, "extensions", "provider.ts"), string(provider))
	return e, e.Start(testenv.PiOptions{})
}

func TestMailByProviderAndOwn(t *testing.T) {
	for _, who := range []string{"both", "parent", "delegate"} {
		t.Run("provider for "+who, func(t *testing.T) {
			e, parent := withProvider(t, who, nil)
			held(t, e, parent)
			arrive(t, e, parent)
			e.Model.AwaitAnswered(t, "the result", told("the answer"))
			e.Tmux.AwaitNoWindow("scout-")
			parent.Submit("by tool\n" + delegate("a second task\nSAY a second answer"))
			e.Model.AwaitAnswered(t, "the second result", told("a second answer"))
			exactlyOnce(t, parent, "the answer")
			exactlyOnce(t, parent, "a second answer")
			for _, r := range e.Model.Requests() {
				if r.Said("user", "[mail]") {
					t.Errorf("the provider showed mail that is squire's: %s", r.Last().Text)
				}
			}
		})
	}
}

func TestProvidersParentIsKilled(t *testing.T) {
	e, parent := withProvider(t, "both", nil)
	parent.Submit("remember me\nSAY remembered")
	parent.AwaitAnswer("remembered")
	held(t, e, parent)
	parent.Kill()
	e.Model.Release("work")
	e.Tmux.AwaitNoWindow("scout-")
	again := parent.Reopen()
	e.Model.AwaitAnswered(t, "the result", told("the answer"))
	exactlyOnce(t, again, "the answer")
	again.Kill()
	exactlyOnce(t, again.Reopen(), "the answer")
}

// The poll asks a provider that would not claim anything by itself.
func TestProviderThatWaitsToBeAsked(t *testing.T) {
	e, parent := withProvider(t, "both", map[string]string{"PROVIDER_PASSIVE": "1"})
	held(t, e, parent)
	e.Model.Release("work")
	e.Tmux.AwaitNoWindow("scout-")
	e.Model.AwaitAnswered(t, "the result", told("the answer"))
	exactlyOnce(t, parent, "the answer")
	if n := e.Model.Count(gone); n != 0 {
		t.Error("a delegate that answered was reported as gone")
	}
}
