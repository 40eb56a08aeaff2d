package printable

import (
	"strings"
	"testing"
	"unicode"
)

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"plain — text 👩\u200d💻":   "plain — text 👩\u200d💻",
		"\x1b[31mred\x07":         `\x1b[31mred\x07`,
		"two\nlines\tthen":        `two\nlines then`,
		"\u009b31m\x7f":           `\x9b31m\x7f`,
		"safe\u202etxt.exe\u2028": `safe\u202etxt.exe\u2028`,
	} {
		if got := Line(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a\nb\x1b[31m\u009b\xff\u202e")
	f.Fuzz(func(t *testing.T, text string) {
		got := Line(text)
		if strings.ContainsFunc(got, unicode.IsControl) || Line(got) != got {
			t.Fatalf("%q", got)
		}
	})
}
