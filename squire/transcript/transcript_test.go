package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func answer(model string, size int) string {
	return fmt.Sprintf(`{"type":"message","message":{"role":"assistant","provider":"p","model":%q,"content":[{"type":"text","text":%q}]}}`, model, strings.Repeat("x", size)) + "\n"
}

const user = `{"type":"message","message":{"role":"user","content":"say \"assistant\""}}` + "\n"

func TestLastModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	for name, c := range map[string]struct{ text, want string }{
		"empty":               {"", ""},
		"header only":         {`{"type":"session"}` + "\n", ""},
		"one":                 {answer("a", 10), "p/a"},
		"the last":            {answer("a", 10) + user + answer("b", 10) + user, "p/b"},
		"first line":          {answer("a", 3*chunk) + strings.Repeat(user, 5000), "p/a"},
		"a long last line":    {answer("a", 10) + answer("b", 5*chunk), "p/b"},
		"still being written": {answer("a", 10) + strings.TrimSuffix(answer("b", 10), "}}\n"), "p/a"},
		"torn, then NULs":     {answer("a", 10) + "{\"type\":\"mess\x00\x00\x00\n", "p/a"},
		"farther than bound":  {answer("a", 10) + strings.Repeat(user, bound/len(user)+chunk), ""},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := LastModel(path); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	if _, err := LastModel(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// counting counts what is read, for a file that only seems to be large.
type counting struct {
	read int
	end  []byte
	size int64
}

func (c *counting) ReadAt(p []byte, off int64) (int, error) {
	c.read += len(p)
	clear(p)
	if from := off + int64(len(p)) - (c.size - int64(len(c.end))); from > 0 {
		copy(p[max(0, len(p)-int(from)):], c.end)
	}
	return len(p), nil
}

func TestAHugeFileIsNotReadWhole(t *testing.T) {
	c := &counting{size: 500 << 20, end: []byte("\n" + answer("a", 100))}
	var got string
	err := backwards(c, c.size, func(line []byte) bool {
		got = answeredBy(line)
		return got == ""
	})
	if err != nil || got != "p/a" || c.read > 2*chunk {
		t.Errorf("%q, %v, %d bytes read", got, err, c.read)
	}
	c = &counting{size: 500 << 20}
	if err := backwards(c, c.size, func([]byte) bool { return true }); err != nil || c.read > bound+maxChunk {
		t.Errorf("%v, %d bytes read", err, c.read)
	}
}

func FuzzBackwards(f *testing.F) {
	f.Add([]byte("a\n\nbc\nd"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got [][]byte
		_ = backwards(bytes.NewReader(data), int64(len(data)), func(line []byte) bool {
			got = append([][]byte{bytes.Clone(line)}, got...)
			return true
		})
		var want [][]byte
		if i := bytes.LastIndexByte(data, '\n'); i >= 0 {
			for line := range bytes.SplitSeq(data[:i], []byte("\n")) {
				if len(line) > 0 {
					want = append(want, line)
				}
			}
		}
		if !bytes.Equal(bytes.Join(got, []byte("\n")), bytes.Join(want, []byte("\n"))) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}
