// Package launch starts a delegate's pi inside its tmux pane and records how it ended. The pane's own process is this launcher:
// tmux is handed two short words and nothing else, and everything that tmux could expand, cut or show to others (directory,
// arguments, environment) travels in a private file.
package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pi-cradle/internal/durable"
)

// version is of both records.
const version = 1

// maxSpec bounds what the launcher reads.
const maxSpec = 16 << 20

// Spec is what to start. It may hold secrets: the launcher deletes the file before pi runs.
type Spec struct {
	Version int               `json:"version"` // set by WriteSpec
	ID      string            `json:"id"`      // repeated in the exit record
	Argv    []string          `json:"argv"`
	Env     map[string]string `json:"env"`   // on top of the pane's own environment
	Unset   []string          `json:"unset"` // names left out of it
	Cwd     string            `json:"cwd"`   // absolute
	Tmux    string            `json:"tmux"`
	Remove  []string          `json:"remove"` // private files to delete once pi has ended
}

// Exit is how it went. Exactly one of these holds: Error is set and pi did not start, or Signal is set and Code is -1, or Code is
// pi's exit code.
type Exit struct {
	Version int       `json:"version"`
	ID      string    `json:"id"` // "" when the spec could not be read
	Code    int       `json:"code"`
	Signal  string    `json:"signal"` // such as SIGKILL
	Error   string    `json:"error"`
	Hangup  bool      `json:"hangup"` // the pane was closed around it
	Screen  []string  `json:"screen"` // the last lines of the pane when pi failed; no control characters
	At      time.Time `json:"at"`
}

// ExitPath is where the launcher of the spec at path records the end, also when it can't read the spec.
func ExitPath(path string) string { return strings.TrimSuffix(path, ".json") + ".exit.json" }

// WriteSpec writes the spec for the launcher. The folder must exist, be owned by this user and closed to others.
func WriteSpec(path string, s Spec) error {
	s.Version = version
	return durable.PlaceJSON(path, s)
}

// ReadExit reads an exit record. As long as pi runs there is none, and the error is fs.ErrNotExist.
func ReadExit(path string) (Exit, error) {
	var e Exit
	if err := durable.ReadJSON(path, &e); err != nil {
		return Exit{}, err
	}
	if e.Version != version {
		return Exit{}, &durable.CorruptError{Path: path, Err: fmt.Errorf("unknown version %d", e.Version)}
	}
	return e, nil
}

// terminal is what the pane knows better than anybody who writes a spec.
var terminal = map[string]bool{
	"TMUX": true, "TMUX_PANE": true, "TERM": true, "TERM_PROGRAM": true, "TERM_PROGRAM_VERSION": true, "COLUMNS": true, "LINES": true, "PWD": true,
}

// environment is what pi gets: the pane's own, which is the tmux server's, changed as the spec says.
func environment(s Spec, pane []string) []string {
	env := make([]string, 0, len(s.Env)+len(pane)+1)
	for _, kv := range pane {
		name, _, _ := strings.Cut(kv, "=")
		if _, replaced := s.Env[name]; name != "PWD" && (terminal[name] || !replaced && !slices.Contains(s.Unset, name)) {
			env = append(env, kv)
		}
	}
	for name, value := range s.Env {
		if !terminal[name] {
			env = append(env, name+"="+value)
		}
	}
	return append(env, "PWD="+s.Cwd)
}

// take reads and deletes the spec. It refuses one that others could have written or read.
func take(path string) (Spec, error) {
	data, err := readPrivate(path)
	if err != nil {
		return Spec{}, err
	}
	// Gone before pi runs, readable or not. Whoever removes the file has the say over the start: a parent that is not sure
	// whether its window opened removes it too, and then knows that nothing can start any more.
	if err := os.Remove(path); err != nil {
		return Spec{}, fmt.Errorf("launch file can't be deleted: %w", err)
	}
	return parseSpec(data)
}

func parseSpec(data []byte) (Spec, error) {
	var s Spec
	if json.Unmarshal(data, &s) != nil {
		return Spec{}, errors.New("launch file is not valid JSON") // the decoder's own words could quote a secret
	}
	switch {
	case s.Version != version:
		return Spec{}, fmt.Errorf("launch file is of version %d, not %d", s.Version, version)
	case len(s.Argv) == 0 || s.Argv[0] == "":
		return s, errors.New("launch file names no program")
	case !strings.HasPrefix(s.Cwd, "/"):
		return s, fmt.Errorf("working directory %q is not absolute", s.Cwd)
	}
	return s, nil
}

func readPrivate(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("launch file %q is missing: %w", path, fs.ErrNotExist)
		}
		return nil, fmt.Errorf("launch file can't be opened: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("launch file %q is not a regular file", path)
	case !ok || int(stat.Uid) != os.Geteuid():
		return nil, fmt.Errorf("launch file %q belongs to another user", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("launch file %q is open to others (mode %o)", path, info.Mode().Perm())
	case info.Size() > maxSpec:
		return nil, fmt.Errorf("launch file %q is larger than %d bytes", path, maxSpec)
	}
	return io.ReadAll(io.LimitReader(f, maxSpec))
}
