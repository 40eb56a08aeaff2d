// Package records keeps what must outlive every process of a delegation, below <agent dir>/squire:
//
//	child-tasks/<session>.json    what a parent knows of its delegates
//	identity/<session>.json       who a delegate is; written by its parent before the launch
//	task-replies/<session>.json   what a delegate owes, and its answer once frozen
//	owners/<session>/owner.lock   held by the one process that acts for the session
//	owners/<session>/claims.json  which mail the session takes; a copy for the extension, rebuilt from the records. A delegate's
//	                              first one is written by its parent before the launch
//	owners/<session>/inbound/     envelopes taken from a mail provider and not yet recorded
//	locks/                        held while a tmux session for delegates is looked for or made
//	worktree-setup/<id>.log       what the command printed that made a delegate's worktree ready
//	owners/<session>/launch/      per delegation what its launcher is to start (removed as it starts), the agent's prompt, and
//	                              what the launcher saw of the end
//
// Order of a launch, and what a restart finds when everything dies right after a step. A worktree has its record before step 1, so
// that it can be taken back.
//
//	1 identity, session, prompt,  nothing; the leftovers hold nothing that anyone waits for
//	  task mail
//	2 child-tasks: launching      the delegate is looked for by its window's name, not found, and reported as not started
//	3 the launch file             it is removed, so that the delegate never starts, and the same is reported
//	4 the window opens            the launcher has taken the launch file, so the delegate runs: it is adopted
//	5 child-tasks: running        running
//
// Order of an answer, in the delegate (6, 7, 8) and in its parent (9 to 12):
//
//	6 task-replies: outbox        the frozen answer is sent again
//	7 the reply in the parent's   it is sent again; the parent knows the request as answered and drops the copy
//	  mailbox
//	8 task-replies: sent          nothing is owed
//	9 child-tasks: outcome sent   looked up in the conversation: absent means it is shown now
//	10 the envelope is claimed    the same; before this step the envelope is found again and known by its request
//	11 the message is shown       found in the conversation, so not shown again
//	12 child-tasks: shown         the same
package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pi-cradle/internal/durable"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/session"
)

const version = 1

// Dir is the root of the records of one agent directory.
type Dir struct{ root string }

// In gives the records of an agent directory. Nothing is created.
func In(agentDir string) Dir { return Dir{filepath.Join(agentDir, "squire")} }

// Encode makes a session id one safe path segment, the same one for the same id. Ordinary ids stay as they are.
func Encode(id string) string {
	var b strings.Builder
	for i := range len(id) {
		c := id[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func (d Dir) file(folder, id string) string { return filepath.Join(d.root, folder, Encode(id)+".json") }

// Owner is the folder of the process that acts for a session.
func (d Dir) Owner(id string) string { return filepath.Join(d.root, "owners", Encode(id)) }

// Lock, Inbound, Claims and Launches are what lies in it.
func (d Dir) Lock(id string) string     { return filepath.Join(d.Owner(id), "owner.lock") }
func (d Dir) Inbound(id string) string  { return filepath.Join(d.Owner(id), "inbound") }
func (d Dir) Claims(id string) string   { return filepath.Join(d.Owner(id), "claims.json") }
func (d Dir) Launches(id string) string { return filepath.Join(d.Owner(id), "launch") }

// Spec and Prompt are the launcher's files for a delegation of parent.
func (d Dir) Spec(parent, delegation string) string {
	return filepath.Join(d.Launches(parent), Encode(delegation)+".json")
}
func (d Dir) Prompt(parent, delegation string) string {
	return filepath.Join(d.Launches(parent), Encode(delegation)+".prompt.md")
}

// Locks is the folder of locks that sessions share, and SetupLog the output of the command that made a delegate's worktree ready.
func (d Dir) Locks() string { return filepath.Join(d.root, "locks") }
func (d Dir) SetupLog(delegation string) string {
	return filepath.Join(d.root, "worktree-setup", Encode(delegation)+".log")
}

// Children, Identity and Replies are the record files of a session.
func (d Dir) Children(id string) string { return d.file("child-tasks", id) }
func (d Dir) Identity(id string) string { return d.file("identity", id) }
func (d Dir) Replies(id string) string  { return d.file("task-replies", id) }

// VersionError says that a record was written by another version of this program, or belongs to another session.
type VersionError struct {
	Path string
	Got  int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("record %q has version %d, and this program reads version %d", e.Path, e.Got, version)
}

// envelope is what every record file has around its content.
type envelope struct {
	Version int             `json:"version"`
	Session string          `json:"session"`
	Data    json.RawMessage `json:"data"`
}

func save(path, id string, content any) error {
	raw, err := json.Marshal(content)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	// Not indented: a session with thousands of past delegations reads and writes all of them.
	data, err := json.Marshal(envelope{version, id, raw})
	if err != nil {
		return err
	}
	return durable.Write(path, append(data, '\n'))
}

// load reads a record. found is false when there is none. A record that can't be understood is an error and stays as it is.
func load(path, id string, data any) (found bool, err error) {
	var e envelope
	if err := durable.ReadJSON(path, &e); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, err
	}
	if e.Version != version {
		return false, &VersionError{path, e.Version}
	}
	if e.Session != id {
		return false, &durable.CorruptError{Path: path, Err: fmt.Errorf("it belongs to session %q", e.Session)}
	}
	if err := json.Unmarshal(e.Data, data); err != nil {
		return false, &durable.CorruptError{Path: path, Err: err}
	}
	return true, nil
}

// Birth is what a delegate's identity file holds.
type Birth struct {
	Identity  session.Identity `json:"identity"`
	AutoExit  bool             `json:"autoExit"`
	Placement string           `json:"rootPlacement"` // preferred name of the tmux session for delegates of its root's project
}

// SaveBirth writes a delegate's identity.
func (d Dir) SaveBirth(id string, b Birth) error { return save(d.Identity(id), id, b) }

// Load reads everything about a session. own is nil for a session that is nobody's delegate.
func (d Dir) Load(id string) (children session.Children, own *session.Own, err error) {
	if _, err := load(d.Children(id), id, &children); err != nil {
		return children, nil, err
	}
	var b Birth
	found, err := load(d.Identity(id), id, &b)
	if err != nil || !found {
		return children, nil, err
	}
	own = &session.Own{AutoExit: b.AutoExit, Placement: b.Placement}
	if _, err := load(d.Replies(id), id, own); err != nil {
		return children, nil, err
	}
	own.Identity, own.Placement = b.Identity, b.Placement
	return children, own, nil
}

// SaveChildren and SaveOwn write what session.State holds.
func (d Dir) SaveChildren(id string, c session.Children) error { return save(d.Children(id), id, c) }

// SaveOwn writes the delegate's part.
func (d Dir) SaveOwn(id string, own session.Own) error { return save(d.Replies(id), id, own) }

// SaveClaims writes the copy that the extension reads before this process has answered it. It is derived, so it needs no
// version: one that is damaged only costs a wait.
func (d Dir) SaveClaims(id string, c wire.Claims) error {
	if err := durable.MkdirAll(d.Owner(id)); err != nil {
		return err
	}
	return durable.PlaceJSON(d.Claims(id), c)
}

// Known says whether there is anything on record about a session, without reading it.
func (d Dir) Known(id string) bool {
	for _, path := range []string{d.Children(id), d.Identity(id), d.Owner(id)} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}
