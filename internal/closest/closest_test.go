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
	if got := Hint("a", []string{"b", "c", "d", "e"}); got != `did you mean "b", "c" or "d"?` {
		t.Errorf("got %q", got)
	}
}
