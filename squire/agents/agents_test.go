package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const plain = "---\ndescription: Looks things up\nmodel: p/m\nthinking: low\nauto_exit: false\n---\n\nFind it.\nSay where.\n"

func TestParseTakesEveryLineEnding(t *testing.T) {
	crlf := strings.ReplaceAll(plain, "\n", "\r\n")
	mixed := strings.Replace(plain, "\n", "\r\n", 2)
	for name, text := range map[string]string{"lf": plain, "crlf": crlf, "mixed": mixed, "bom": "\ufeff" + plain, "bom+crlf": "\ufeff" + crlf} {
		a, dropped, err := Parse("scout", []byte(text))
		if err != nil || len(dropped) > 0 {
			t.Fatalf("%s: %v %v", name, err, dropped)
		}
		want := Agent{Name: "scout", Description: "Looks things up", Model: "p/m", Thinking: "low", Body: "Find it.\nSay where."}
		if a != want {
			t.Errorf("%s: got %+v", name, a)
		}
	}
}

func TestParseFields(t *testing.T) {
	for _, c := range []struct{ front, err, dropped string }{
		{"", "", ""},
		{"description: 2024-01-01", "", ""},
		{"thinking: off", "", ""},
		{"max_turns: 3\npermission: {}", "", ""},
		{"description: &d text\nmodel: *d", "", ""},
		{"description: [a]", "description is not a text", ""},
		{"model: [a]", "model is not a text", ""},
		{"model: p/*", "names no single model", ""},
		{"thinking: loud", "", `thinking "loud" is not one of`},
		{"thinking: {}", "", "thinking is not a text"},
		{"auto_exit: yes", "auto_exit is not true or false", ""},
		{`auto_exit: "true"`, "auto_exit is not true or false", ""},
		{"- a", "not a set of fields", ""},
		{"a: b: c", "not readable YAML", ""},
		{"model: a\nmodel: b", "twice", ""},
	} {
		_, dropped, err := Parse("a", []byte("---\n"+c.front+"\n---\nbody"))
		if (c.err == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%q: error %v, want %q", c.front, err, c.err)
		}
		if got := strings.Join(dropped, "|"); (c.dropped == "") != (got == "") || !strings.Contains(got, c.dropped) {
			t.Errorf("%q: dropped %q, want %q", c.front, got, c.dropped)
		}
	}
}

func TestLoadNamesEveryProblemAndKeepsTheRest(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("scout.md", plain)
	write("bad.md", "---\nmodel: [\n---\n")
	write("v1.2.md", "")
	write("notes.txt", "")
	write(".hidden.md", "")
	if err := os.Mkdir(filepath.Join(dir, "dir.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, link := range [][2]string{{"scout.md", "link.md"}, {"nowhere", "dangling.md"}, {"cycle.md", "cycle.md"}} {
		if err := os.Symlink(link[0], filepath.Join(dir, link[1])); err != nil {
			t.Fatal(err)
		}
	}
	r := Load(dir)
	if got := strings.Join(r.Names(), " "); got != "link scout" {
		t.Errorf("agents %q", got)
	}
	var files []string
	for _, p := range r.Problems {
		files = append(files, filepath.Base(p.File))
	}
	if got := strings.Join(files, " "); got != "bad.md cycle.md dangling.md dir.md v1.2.md" {
		t.Errorf("problems %q", got)
	}
	if empty := Load(filepath.Join(dir, "none")); len(empty.Agents)+len(empty.Problems) != 0 {
		t.Errorf("missing folder: %+v", empty)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(plain))
	f.Add([]byte("---\na: &a [*a]\n---"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, _, err := Parse("x", data)
		if err == nil && (strings.Contains(a.Model, "*") || strings.Contains(a.Body, "\r\n")) {
			t.Fatalf("%+v", a)
		}
	})
}
