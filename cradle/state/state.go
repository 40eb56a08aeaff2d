// Package state owns the directory in which cradle keeps what belongs to one agent and not into its folder: generated
// extensions, session history, the sandbox profile, installed packages.
package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pi-cradle/internal/durable"
	"pi-cradle/internal/lockfile"
	"pi-cradle/internal/usererr"
)

// RootEnv names the variable that moves the root of all state directories. It never moves the alias table.
const RootEnv = "CRADLE_STATE_DIR"

// Dir is the state directory of one agent. Making a Dir touches nothing on disk.
type Dir struct {
	ID   string // stable name of the agent, unique per folder path
	Root string // where the state of all agents is; relative if RootEnv is
}

// ForFolder names the state of the agent folder at dir, an absolute clean path. rootEnv is the value of RootEnv, "" for unset.
func ForFolder(dir, home, rootEnv string) Dir {
	root := filepath.Join(home, ".cradle")
	if rootEnv != "" {
		root = filepath.Clean(rootEnv)
	}
	return Dir{ID: ID(dir), Root: root}
}

// ID is the folder's base name made harmless, and a hash of its whole path. The path is text: links are not followed.
func ID(dir string) string {
	var name strings.Builder
	gap := false
	for _, r := range lower(filepath.Base(dir)) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			if gap && name.Len() > 0 {
				name.WriteByte('-')
			}
			gap = false
			name.WriteRune(r)
		} else {
			gap = true
		}
	}
	if name.Len() == 0 {
		name.WriteString("agent")
	}
	return name.String() + "-" + Hash8(dir)
}

// lower is JavaScript's toLowerCase as far as letters a to z come out of it: U+0130 becomes an i and a combining dot.
func lower(s string) string {
	return strings.ToLower(strings.ReplaceAll(s, "\u0130", "i\u0307"))
}

// Hash8 is the first 8 hex digits of the SHA-256 of s.
func Hash8(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

// Path is the directory itself; the others are what lies in it.
func (d Dir) Path() string       { return filepath.Join(d.Root, "agents", d.ID) }
func (d Dir) Extensions() string { return filepath.Join(d.Path(), "extensions") }
func (d Dir) Sessions() string   { return filepath.Join(d.Path(), "sessions") }
func (d Dir) Profile() string    { return filepath.Join(d.Path(), "nono-profile.json") }
func (d Dir) MiseCache() string  { return filepath.Join(d.Path(), "mise-cache") }
func (d Dir) NPM() string        { return filepath.Join(d.Path(), "npm") }

// Lock keeps other runs of the same agent from writing its state until unlock is called. It waits until ctx ends and then
// gives a *lockfile.HeldError. The lock file lies outside Path, where a sandboxed agent can't touch it.
func (d Dir) Lock(ctx context.Context) (unlock func(), err error) {
	unlock, err = lockfile.Lock(ctx, filepath.Join(d.Root, "locks", d.ID+".lock"), "cradle run")
	var held *lockfile.HeldError
	if err != nil && !errors.As(err, &held) {
		return nil, d.writeFailure(err) // the state can't be written, whatever the first thing was
	}
	return unlock, err
}

// Use says that a run uses the directory, until leave is called. alone is false while another run does too. The caller holds Lock.
func (d Dir) Use() (leave func(), alone bool, err error) {
	leave, alone, err = lockfile.Share(filepath.Join(d.Root, "locks", d.ID+".use"))
	if err != nil {
		return nil, false, d.writeFailure(err)
	}
	return leave, alone, nil
}

// MakeSessions makes the directory of the session history. What is in it stays.
func (d Dir) MakeSessions() error {
	if err := durable.MkdirAll(d.Sessions()); err != nil {
		return d.hint(usererr.New("failed to make the session directory: %w", err))
	}
	return nil
}

// WriteProfile replaces the sandbox profile, whole or not at all. One that is the same already stays: a durable write is most
// of what a run costs.
func (d Dir) WriteProfile(content string) error {
	if info, err := os.Lstat(d.Profile()); err == nil && info.Mode().IsRegular() && holds(d.Profile(), content) {
		return nil
	}
	err := durable.MkdirAll(d.Path())
	if err == nil {
		err = durable.Write(d.Profile(), []byte(content))
	}
	if err != nil {
		return d.hint(usererr.New("failed to write the sandbox profile: %w", err))
	}
	return nil
}

func (d Dir) writeFailure(err error) error {
	return d.hint(usererr.New("Failed to write agent extensions: extensions: %w", err))
}

func (d Dir) hint(err *usererr.Error) error {
	return err.Hint("check that there is room in %s and that you may write there, or name another directory in %s", d.Root, RootEnv)
}

// notExist also takes a parent that is a file for absence: either way nothing is there.
func notExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
