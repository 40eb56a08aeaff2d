package views

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestLineAndText(t *testing.T) {
	if got := Plain("a\tb\x1b[1mc\n"); got != "a\tbc\n" {
		t.Errorf("Plain: %q", got)
	}
	for _, c := range []struct{ in, line, text string }{
		{"plain", "plain", "plain"},
		{"a\r\nb\rc\nd", "a b c d", "a\nb\nc\nd"},
		{"a\tb", "a b", "a    b"},
		{"\x1b[31mred\x1b[0m", "red", "red"},
		{"\x1b]0;title\x07after", "after", "after"},
		{"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link", "link"},
		{"\x1b]never closed\nnext", " next", "\nnext"},
		{"\u009b31mred", "red", "red"},
		{"\x1b", "", ""},
		{"\x1b(Bok", "ok", "ok"},
		{"a\x00b\x7fc\u0085d", "abc d", "abc\nd"},
		{"\u202egnp.exe", "gnp.exe", "gnp.exe"},
		{"bad \xff byte", "bad \ufffd byte", "bad \ufffd byte"},
		{"日本 👩‍👩‍👧 é", "日本 👩‍👩‍👧 é", "日本 👩‍👩‍👧 é"},
	} {
		if got := Line(c.in); got != c.line {
			t.Errorf("Line(%q) = %q, want %q", c.in, got, c.line)
		}
		if got := Text(c.in); got != c.text {
			t.Errorf("Text(%q) = %q, want %q", c.in, got, c.text)
		}
	}
}

func FuzzSafe(f *testing.F) {
	f.Add("\x1b[31m\x1b]0;x\x07\u009d")
	f.Fuzz(func(t *testing.T, s string) {
		for _, out := range []string{Line(s), Text(s)} {
			if !utf8.ValidString(out) {
				t.Fatalf("not UTF-8: %q", out)
			}
			if strings.ContainsFunc(out, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
				t.Fatalf("control character in %q", out)
			}
		}
		if strings.Contains(Line(s), "\n") {
			t.Fatal("line break in a line")
		}
		clipped, cut := Clip(s, 40, " … ")
		if len(clipped) > max(40, len(" … ")) || cut != (len(s) > 40) || (utf8.ValidString(s) && !utf8.ValidString(clipped)) {
			t.Fatalf("Clip(%q) = %q, %v", s, clipped, cut)
		}
	})
}
