package printable

import (
	"slices"
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

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  []string
	}{
		{"", 5, []string{""}},
		{"any  length", 0, []string{"any  length"}},
		{"0 9 *  (next)", 13, []string{"0 9 *  (next)"}},
		{"one two  three", 8, []string{"one two", "three"}},
		{"a /path/that/is/long b", 6, []string{"a", "/path/that/is/long", "b"}},
		{"日本 語語", 5, []string{"日本", "語語"}},
	} {
		if got := Wrap(c.text, c.limit); !slices.Equal(got, c.want) {
			t.Errorf("%q, %d: got %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("one two  three 日本", 8)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		lines := Wrap(text, limit)
		if strings.ReplaceAll(strings.Join(lines, ""), " ", "") != strings.ReplaceAll(text, " ", "") {
			t.Fatalf("%q became %q", text, lines)
		}
		for _, line := range lines {
			if limit > 0 && Columns(line) > limit && strings.Contains(strings.Trim(line, " "), " ") {
				t.Fatalf("%q is wider than %d", line, limit)
			}
		}
	})
}
