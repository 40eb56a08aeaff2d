// Package session is the state machine of one pi session: the delegations it started (it is their parent), and the tasks it
// owes an answer for (it is a delegate). Apply takes an event and returns the actions that follow, in the order in which they
// must be carried out. It starts nothing, waits for nothing and reads no clock, so every interleaving of mail, crash, reload
// and stop can be played through by the thousand.
//
// Two rules carry everything:
//
//   - Save comes before what it records becomes visible. A crash after the save is repaired by Restored, a crash before it
//     finds the envelope still unclaimed.
//   - What the conversation holds is the truth about what was shown. An outcome that was sent but not confirmed is looked up
//     there after a restart, and sent again only when it is absent.
package session

// State is everything the session knows. The exported part is durable; the rest lives as long as the process.
type State struct {
	Children Children
	Own      *Own // nil in a session that is nobody's delegate

	ready  bool    // Restored has been applied
	dirty  bool    // Children changed since the last save
	owed   bool    // Own changed since the last save
	flight *flight // the one message that is on its way into the conversation
}

// Children is the durable record of a parent, in the order of launch.
type Children struct {
	Delegations []*Delegation `json:"delegations"`
	// Quiet says that the user stopped a run that had outcomes to work on. Nothing starts a run for those again, also after a
	// restart, until something fresh arrives or another run comes to its end.
	Quiet bool `json:"quiet"`
}

// Event is something that happened. Action is something to do.
type (
	Event  interface{ event() }
	Action interface{ action() }
)

// Restored says that the durable records have been read, and what the conversation holds of what they say was sent.
type Restored struct {
	Messages map[string]bool // ids of our messages that are in the conversation
	Prompts  map[string]bool // request ids of tasks whose prompt is in the conversation
	Midway   bool            // only this process is new: pi has been running on with the session
}

// SaveFailed says that the last SaveChildren or SaveOwn could not be written.
type SaveFailed struct {
	Own bool
	Err string
}

// Actions common to both roles.
type (
	// SaveChildren writes State.Children. When it fails, the actions after it are dropped and SaveFailed is applied.
	SaveChildren struct{}
	// SaveOwn writes State.Own, under the same rule.
	SaveOwn struct{}
	// Notify tells the user.
	Notify struct {
		Level string // info, warning, error
		Text  string
	}
)

func (Restored) event()      {}
func (SaveFailed) event()    {}
func (SaveChildren) action() {}
func (SaveOwn) action()      {}
func (Notify) action()       {}

// Apply changes the state by one event.
func (s *State) Apply(e Event) []Action {
	var after []Action
	switch e := e.(type) {
	case Restored:
		after = s.restored(e)
	case SaveFailed:
		return s.saveFailed(e)
	case Opening, Opened, OpenFailed, Replied, Exited, Observed, Closing, Closed, Inspected, Kept, Shown, NotShown, Retry, Settled:
		after = s.applyParent(e)
		if settled, ok := e.(Settled); ok {
			after = append(after, s.ownSettled(settled)...)
		}
	case TaskArrived, Prompted, PromptFailed, ReplySent, ReplyFailed, UserTookOver, AutoExitOn:
		after = s.applyOwn(e)
	}
	after = append(s.deliver(), after...)
	var saves []Action
	if s.dirty {
		s.dirty = false
		saves = append(saves, SaveChildren{})
	}
	if s.owed {
		s.owed = false
		saves = append(saves, SaveOwn{})
	}
	return append(saves, after...)
}

func (s *State) restored(e Restored) []Action {
	s.ready = true
	return append(s.restoreChildren(e), s.restoreOwn(e.Prompts)...)
}

// saveFailed leaves the change in memory and unsaved, so the next event of any kind tries again. What was to follow the save
// has not happened: a message goes back to waiting, a task or reply is taken up again.
func (s *State) saveFailed(e SaveFailed) []Action {
	if e.Own {
		s.owed = true
		s.unsendOwn()
	} else {
		s.dirty = true
		s.unsendFlight()
	}
	return []Action{Notify{Level: "error", Text: "delegate: could not save the delegation record: " + e.Err}}
}
