package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pi-cradle/internal/usererr"
)

func TestLoad(t *testing.T) {
	for _, c := range []struct{ text, mail, err string }{
		{`{}`, "auto", ""},
		{"\ufeff" + `{"mail":"hooks","other":1}`, "hooks", ""},
		{`{"mail":"embedded"}`, "embedded", ""},
		{`{"mail":"post"}`, "", `it can be "auto", "hooks" or "embedded"`},
		{`{"mail":null}`, "", "is null"},
		{`{"mail":1}`, "", "is 1"},
		{`[]`, "", "JSON object"},
		{`null`, "", "JSON object"},
		{`{`, "", "JSON object"},
	} {
		path := filepath.Join(t.TempDir(), "settings.json")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Load(path)
		if c.err == "" && (err != nil || s.Mail != c.mail) {
			t.Errorf("%s: %+v, %v", c.text, s, err)
		}
		if c.err != "" && (err == nil || !strings.Contains(usererr.Text(err, ""), c.err) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%s: error %v", c.text, err)
		}
	}
	if s, err := Load(filepath.Join(t.TempDir(), "none")); err != nil || s.Mail != "auto" {
		t.Errorf("missing file: %+v, %v", s, err)
	}
	dir := t.TempDir()
	if _, err := Load(dir); err == nil {
		t.Error("a folder was read as a file")
	}
}
