package squire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"pi-cradle/squire/gitws"
	"pi-cradle/squire/records"
	"pi-cradle/squire/session"
)

// identityNotice is the payload of squire:identity.
type identityNotice struct {
	SessionID string            `json:"sessionId"`
	Status    string            `json:"status"` // root, delegate, invalid
	Identity  *session.Identity `json:"identity,omitempty"`
}

// identity says who this session is, for other extensions. The caller holds mu and has loaded the records.
func (l *live) identity() json.RawMessage {
	notice := identityNotice{SessionID: l.id(), Status: "root"}
	if _, err := os.Lstat(l.dir.Identity(l.id())); !errors.Is(err, fs.ErrNotExist) {
		notice.Status = "invalid"
	}
	if own := l.state.Own; own != nil && l.broken == nil {
		notice.Status, notice.Identity = "delegate", &own.Identity
	}
	raw, err := json.Marshal(notice)
	if err != nil {
		l.svc.cfg.Logf("identity: %v", err) // plain texts always marshal
	}
	return raw
}

// confirmIdentity refuses a delegate's identity that can't be true, and saves it again: who says that a session is a delegate must be
// able to keep it.
func (l *live) confirmIdentity(own *session.Own) error {
	id := own.Identity
	if id.Parent == "" || id.Root == "" || id.Agent == "" || id.Depth < 1 || len(id.Chain) != id.Depth || id.Chain[id.Depth-1] != id.Agent || slices.Contains(id.Chain, "") {
		return fmt.Errorf("record %q does not say whose delegate this session is", l.dir.Identity(l.id()))
	}
	if own.Placement == "" || gitws.ProjectName(own.Placement) != own.Placement {
		return fmt.Errorf("record %q does not say in which tmux session delegates of this project work", l.dir.Identity(l.id()))
	}
	return l.dir.SaveBirth(l.id(), records.Birth{Identity: id, AutoExit: own.AutoExit, Placement: own.Placement})
}
