package launch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pi-cradle/internal/durable"
)

func TestReadExit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.json")
	if _, err := ReadExit(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	var corrupt *durable.CorruptError
	for _, text := range []string{"{", `{"version": 2}`, ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadExit(path); !errors.As(err, &corrupt) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", screenBytes)
	for text, want := range map[string][]string{
		"":                          {},
		"\n \n\t\n":                 {},
		"a  \n\n\nb\n\n":            {"a", "", "", "b"},
		"\x1b[1mx\u202eevil\u2028y": {"[1mxevily"},
		"bad\xffbyte":               {"bad\uFFFDbyte"},
		"first\n" + long:            {strings.Repeat("ä", screenBytes/2)},
		long + "\nlast":             {"last"},
	} {
		if got := clean(text); strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
			t.Errorf("%.40q gives %.80q", text, got)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\nb\x1b\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := clean(text)
		size := 0
		for _, line := range got {
			size += len(line)
			if strings.ContainsAny(line, "\x1b\n\r\x00") {
				t.Fatalf("%q", line)
			}
		}
		if len(got) > screenLines || size > screenBytes {
			t.Fatalf("%d lines, %d bytes", len(got), size)
		}
	})
}

func FuzzParseSpec(f *testing.F) {
	f.Add([]byte(`{"version": 1, "argv": ["x"], "cwd": "/"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parseSpec(data)
		if err == nil && (len(s.Argv) == 0 || s.Cwd == "") {
			t.Fatalf("%q gives %+v", data, s)
		}
	})
}
