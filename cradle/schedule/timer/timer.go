// Package timer is what the two kinds of native timers have in common: what a timer starts, and the files and commands that
// make one. It is pure.
package timer

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"pi-cradle/cradle/schedule/cron"
	"pi-cradle/internal/usererr"
)

// Job is one task to be started by a timer.
type Job struct {
	AgentID, Slug string // together the timer's identity
	Name          string // for people
	Folder        string // the agent folder, absolute
	Cwd           string // absolute
	Log           string // where output is appended, absolute
	Cradle        string // the program to start
	Cron          cron.Expr
	Timezone      string // an IANA name, "" for the machine's zone
}

// File is a file of a timer and all it holds.
type File struct{ Path, Content string }

// Step is a command that tells the system about a timer's files.
type Step struct {
	Argv    []string
	MayFail bool // failing means that there was nothing to do
}

// Backend composes the timers of one platform. Nothing but Files needs the task itself, so a timer whose task is gone can be
// named and removed.
type Backend interface {
	// Files renders the timer. An error says what of the job the platform can't express.
	Files(Job) ([]File, error)
	// Paths are the files of a timer, existing or not, in the order of Files.
	Paths(agentID, slug string) []string
	// Install are the steps after the files are written, Remove those before they are deleted.
	Install(agentID, slug string) []Step
	Remove(agentID, slug string) []Step
	// Inspect is the command with which a person sees what the system knows of the timer.
	Inspect(agentID, slug string) []string
	// SearchPath is the PATH of the timer's process.
	SearchPath() string
	// LingerProbe is the command whose output holds "Linger=yes" if the user's timers fire without a login; nil if they never
	// depend on it.
	LingerProbe(user string) []string
	// Dir is where the files are; SlugOf says which task of the agent a file name there may belong to, and Starts whether a
	// file's content really starts that task of the folder. Names alone can be ambiguous: an agent's id may begin like another's.
	Dir() string
	SlugOf(agentID, fileName string) (slug string, ok bool)
	Starts(content, folder, slug string) bool
}

// JoinPath makes a SearchPath, with the platform's own folders after the user's.
func JoinPath(home string, system ...string) string {
	own := []string{filepath.Join(home, ".local/bin"), filepath.Join(home, ".local/share/mise/shims")}
	return strings.Join(append(own, system...), ":")
}

// Represent makes sure that a value survives in a line of a text file. kind names the file in the refusal.
func Represent(kind string, values ...string) error {
	for _, v := range values {
		switch {
		case strings.ContainsAny(v, "\n\r"):
			return usererr.New("%s values cannot contain a newline, got %s", kind, Quote(v)).Hint("rename the folder, or change the task's name")
		case strings.ContainsFunc(v, func(r rune) bool { return r < 0x20 && r != '\t' || r == 0x7f || r == 0xfffe || r == 0xffff }):
			return usererr.New("%s values cannot contain a control character, got %s", kind, Quote(v)).Hint("rename the folder, or change the task's name")
		case !utf8.ValidString(v):
			return usererr.New("%s values must be valid UTF-8, got %q", kind, v).Hint("rename the folder, or change the task's name")
		}
	}
	return nil
}

// Quote is value as a JSON string.
func Quote(value string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return `"` + value + `"` // no string fails to encode
	}
	return strings.TrimSuffix(b.String(), "\n")
}
