package closest

import "testing"

func TestHint(t *testing.T) {
	known := []string{"scout", "reviewer", "worker", "anthropic/claude-sonnet-4-5"}
	for typed, want := range map[string]string{
		"scuot":      `did you mean "scout"?`,
		"Scout":      `did you mean "scout"?`,
		"sonnet":     `did you mean "anthropic/claude-sonnet-4-5"?`,
		"review":     `did you mean "reviewer"?`,
		"banana":     "",
		"":           "",
		"anthropic/": `did you mean "anthropic/claude-sonnet-4-5"?`,
	} {
		if got := Hint(typed, known); got != want {
			t.Errorf("Hint(%q) = %q, want %q", typed, got, want)
		}
	}
	flags := []string{"--sandbox", "--no-sandbox", "--offline", "--dry-run", "--verbose", "--version"}
	for typed, want := range map[string]string{
		"dry": `did you mean "--dry-run"?`, "--ofline": `did you mean "--offline"?`, "dryRun": `did you mean "--dry-run"?`,
		"sandbx": `did you mean "--sandbox"?`, "ver": `did you mean "--verbose" or "--version"?`,
		"v": "", "--": "", "resume": "", "model": "",
	} {
		if got := Hint(typed, flags); got != want {
			t.Errorf("Hint(%q) = %q, want %q", typed, got, want)
		}
	}
	if got := Hint("a", []string{"b", "c", "d", "e"}); got != `did you mean "b", "c" or "d"?` {
		t.Errorf("got %q", got)
	}
}
