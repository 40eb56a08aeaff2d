// Package settings reads <agent dir>/squire/settings.json. It is read at the moment of use, so an edit counts at the next one.
package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"pi-cradle/internal/usererr"
)

// Settings are the keys we know, with their defaults filled in.
type Settings struct {
	Mail string // auto, hooks or embedded
}

// Path is the settings file of an agent directory.
func Path(agentDir string) string { return filepath.Join(agentDir, "squire", "settings.json") }

// Load reads the file. A missing file gives the defaults; anything that can't be read as it was meant is an error that names the
// file and the key, for a launch must not go on with half of somebody's limits.
func Load(path string) (Settings, error) {
	s := Settings{Mail: "auto"}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, usererr.New("settings file %q can't be read: %w", path, err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &keys); err != nil || keys == nil {
		return s, usererr.New("settings file %q does not hold a JSON object", path).Hint("mend it, or remove it to use the defaults")
	}
	if raw, ok := keys["mail"]; ok {
		var mail *string
		if err := json.Unmarshal(raw, &mail); err != nil || mail == nil || !slices.Contains([]string{"auto", "hooks", "embedded"}, *mail) {
			return s, usererr.New("%q in settings file %q is %s", "mail", path, raw).Hint(`it can be "auto", "hooks" or "embedded"`)
		}
		s.Mail = *mail
	}
	return s, nil
}
