package session

import (
	"encoding/json"
	"slices"
)

// Phase is where a delegation stands.
type Phase string

// A delegation is launching until its window is known to be open, running until its first outcome or close, then ended.
const (
	Launching Phase = "launching"
	Running   Phase = "running"
	Ended     Phase = "ended"
)

// Delegation is the record of one direct child. Times are milliseconds since the epoch.
type Delegation struct {
	ID          string          `json:"id"` // also the child's session id and mail address
	Agent       string          `json:"agent"`
	Label       string          `json:"label,omitempty"`
	Name        string          `json:"name"`  // of the window and of the pi session
	Model       string          `json:"model"` // provider/id, "" for pi's own choice
	Thinking    string          `json:"thinking"`
	AutoExit    bool            `json:"autoExit"`
	Cwd         string          `json:"cwd"`
	SessionDir  string          `json:"sessionDir"`
	SessionFile string          `json:"sessionFile"`
	Request     string          `json:"request"` // id of the task's envelope; "" until it is posted
	Skipped     []Skipped       `json:"skipped,omitempty"`
	Window      Window          `json:"window"`
	Workspace   json.RawMessage `json:"workspace,omitempty"` // a gitws.Workspace; absent as long as the launch has not seen it
	Worktree    json.RawMessage `json:"worktree,omitempty"`  // a worktree.Plan, recorded before anything of it exists
	Kept        string          `json:"kept,omitempty"`      // what a launch that came to nothing has left of its worktree
	Phase       Phase           `json:"phase"`
	Started     int64           `json:"started"`
	Exit        *Exit           `json:"exit,omitempty"`
	Result      *Outcome        `json:"result,omitempty"`
	Gone        *Outcome        `json:"gone,omitempty"`
	Closed      *Close          `json:"closed,omitempty"`

	closing bool // a delegation_close is under way: the end of the window is its doing, and no loss
	missed  int  // consecutive looks at tmux that did not find the window
}

// Skipped is a model that was to be tried before the chosen one, and why it was not.
type Skipped struct {
	Model  string `json:"model"`
	Reason string `json:"reason"`
}

// Window says where the delegate runs. The server's pid and start time tell a recycled id from the real one.
type Window struct {
	Socket      string `json:"socket"`
	ServerPID   int    `json:"serverPid"`
	ServerStart int64  `json:"serverStart"`
	Session     string `json:"session"`
	SessionName string `json:"sessionName"`
	ID          string `json:"id"`
	Pane        string `json:"pane"`
	Name        string `json:"name"`
}

// Exit is how the delegate's pi ended, as its launcher saw it.
type Exit struct {
	Code   int      `json:"code"` // -1 when Signal or Error is set
	Signal string   `json:"signal,omitempty"`
	Error  string   `json:"error,omitempty"`  // it could not be started
	Hangup bool     `json:"hangup,omitempty"` // its window was closed around it
	Screen []string `json:"screen,omitempty"`
	At     int64    `json:"at"`
}

// Close is a recorded delegation_close.
type Close struct {
	At     int64 `json:"at"`
	Killed bool  `json:"killed"`
}

// Delivery is how far an outcome has come on its way to the model.
type Delivery string

// An outcome waits, is sent as part of a message, is shown once the conversation holds that message, and is processed once a
// run that had it before its eyes has settled.
const (
	Waiting   Delivery = "waiting"
	Sent      Delivery = "sent"
	InSession Delivery = "shown"
	Processed Delivery = "processed"
)

// Outcome is something the parent's model must be told: the delegate's answer, or that it is gone without one.
type Outcome struct {
	Status   string          `json:"status"` // of the envelope: done, failed, stopped; "gone" for a missing answer
	Envelope string          `json:"envelope,omitempty"`
	Path     string          `json:"path,omitempty"`
	Body     string          `json:"body,omitempty"` // bounded by the service; dropped once processed
	Cut      bool            `json:"cut,omitempty"`  // Body is not the whole answer
	Task     string          `json:"task,omitempty"` // quote, bounded; dropped once processed
	TaskPath string          `json:"taskPath,omitempty"`
	Snapshot json.RawMessage `json:"snapshot,omitempty"` // a gitws.Snapshot, of the moment the answer came
	Warning  string          `json:"warning,omitempty"`  // what looked wrong at that moment
	Model    string          `json:"model,omitempty"`    // provider/id that gave the answer, when it could be read
	At       int64           `json:"at"`
	Delivery Delivery        `json:"delivery"`
	Message  string          `json:"message,omitempty"` // id of the message it was sent in
	Attempt  int             `json:"attempt,omitempty"`
}

// Opening records a delegation before the first side effect of its launch.
type Opening struct{ Delegation *Delegation }

// Opened adds what a launch has reached: the id of the task's envelope, and then the window.
type Opened struct {
	ID        string
	Request   string
	Window    Window
	Workspace json.RawMessage
}

// OpenFailed says that the launch came to nothing and all of it was taken back.
type OpenFailed struct{ ID string }

// Replied is one claimed reply envelope. Task is the quote from the request's copy.
type Replied struct {
	Envelope, From string
	InReplyTo      []string
	Status         string
	Path           string
	Body           string
	Cut            bool
	Task, TaskPath string
	Model          string // see Outcome
	At             int64
}

// Exited is the launcher's word that the delegate's pi has ended.
type Exited struct {
	ID   string
	Exit Exit
}

// Presence is what one look at tmux says of a window.
type Presence int

// Unknown is not Absent: only a look that succeeded says Absent.
const (
	Unknown Presence = iota
	Alive
	Dead   // the window is there and its program has ended
	Absent // the window is not there, or its server is not
)

// Observed is one look at all windows, after one scan of the mail. Nothing is concluded unless the scan was answered, for a
// reply may be waiting unread.
type Observed struct {
	Scanned bool
	Windows map[string]Presence // by delegation id; missing means Unknown
	At      int64
}

// Inspected is what was found in the checkouts of delegates that have answered, by delegation id.
type Inspected struct {
	Snapshots map[string]json.RawMessage
	Warnings  map[string]string
}

// Kept says what a launch that came to nothing has left of its worktree.
type Kept struct{ ID, Text string }

// Closing says that a delegation_close begins to end the window, or, with Off, that it could not.
type Closing struct {
	ID  string
	Off bool
}

// Closed records a delegation_close that has been carried out.
type Closed struct {
	ID     string
	Killed bool
	At     int64
}

// Settled says that pi is idle again.
type Settled struct {
	Aborted          bool
	StopReason       string
	Text, Error      string
	CompletionIsHeld bool // another extension's completion hold is not ready
	At               int64
}

// LookAgain asks for another Observed soon: one look is not enough to call a window gone.
type LookAgain struct{}

func (Opening) event()    {}
func (Opened) event()     {}
func (OpenFailed) event() {}
func (Replied) event()    {}
func (Exited) event()     {}
func (Observed) event()   {}
func (Closing) event()    {}
func (Closed) event()     {}
func (Inspected) event()  {}
func (Kept) event()       {}
func (Settled) event()    {}
func (LookAgain) action() {}

// Find gives the delegation of an id, or nil.
func (s *State) Find(id string) *Delegation {
	for _, d := range s.Children.Delegations {
		if d.ID == id {
			return d
		}
	}
	return nil
}

// Clone gives a copy that shares nothing with the state.
func (d *Delegation) Clone() Delegation {
	c := *d
	c.Skipped = slices.Clone(d.Skipped)
	c.Exit, c.Closed, c.Result, c.Gone = clone(d.Exit), clone(d.Closed), clone(d.Result), clone(d.Gone)
	return c
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// Unfinished says that neither an outcome nor a close is recorded.
func (d *Delegation) Unfinished() bool { return d.Phase != Ended }

// Count is how many delegations are unfinished.
func (s *State) Count() int {
	n := 0
	for _, d := range s.Children.Delegations {
		if d.Unfinished() {
			n++
		}
	}
	return n
}

// Awaited maps the request ids that this session takes replies for to the address that may answer. A closed or gone delegation
// stays in it: a late answer is still an answer. So does an answered one: a delegate that died while it answered sends the answer
// again, and a process of ours that died while it took the answer in has left it unclaimed. Either copy has to end here, or
// somebody else would show it.
func (s *State) Awaited() map[string]string {
	out := map[string]string{}
	for _, d := range s.Children.Delegations {
		if d.Request != "" {
			out[d.Request] = d.ID
		}
	}
	return out
}

func (s *State) applyParent(e Event) []Action {
	switch e := e.(type) {
	case Opening:
		s.Children.Delegations = append(s.Children.Delegations, e.Delegation)
		s.dirty = true
	case Opened:
		s.opened(e)
	case OpenFailed:
		s.forget(e.ID)
	case Replied:
		s.replied(e)
	case Exited:
		if d := s.Find(e.ID); d != nil && d.Exit == nil && d.Unfinished() {
			d.Exit = &e.Exit
			s.dirty = true
		}
	case Observed:
		return s.observed(e)
	case Closing:
		if d := s.Find(e.ID); d != nil {
			d.closing = !e.Off
		}
	case Closed:
		if d := s.Find(e.ID); d != nil && d.Closed == nil {
			d.Closed = &Close{At: e.At, Killed: e.Killed}
			d.Phase = Ended
			s.dirty = true
		}
	case Inspected:
		for id, snapshot := range e.Snapshots {
			if d := s.Find(id); d != nil && d.Result != nil && d.Result.Snapshot == nil {
				// Saved with Shown; until then a restart takes another.
				d.Result.Snapshot, d.Result.Warning = snapshot, e.Warnings[id]
			}
		}
	case Kept:
		if d := s.Find(e.ID); d != nil {
			d.Kept = e.Text
			s.dirty = true
		}
	case Shown:
		s.shown(e)
	case NotShown:
		return s.notShown(e)
	case Retry:
		s.retry()
	case Settled:
		s.settled(e)
	}
	return nil
}

func (s *State) opened(e Opened) {
	d := s.Find(e.ID)
	if d == nil {
		return
	}
	if e.Request != "" {
		d.Request = e.Request
	}
	if e.Workspace != nil {
		d.Workspace = e.Workspace
	}
	if e.Window != (Window{}) {
		d.Window = e.Window
		// A delegate can be faster than tmux's answer: an outcome recorded meanwhile stays.
		if d.Phase == Launching {
			d.Phase = Running
		}
	}
	s.dirty = true
}

func (s *State) forget(id string) {
	kept := s.Children.Delegations[:0]
	for _, d := range s.Children.Delegations {
		if d.ID != id {
			kept = append(kept, d)
		}
	}
	clear(s.Children.Delegations[len(kept):])
	s.Children.Delegations = kept
	s.dirty = true
}

// Answered lists the delegations that a reply answers: those whose recorded request it names, sent by their own address.
func (s *State) Answered(from string, inReplyTo []string) []*Delegation {
	var out []*Delegation
	for _, d := range s.Children.Delegations {
		if d.ID != from || d.Request == "" {
			continue
		}
		for _, id := range inReplyTo {
			if id == d.Request {
				out = append(out, d)
				break
			}
		}
	}
	return out
}

// replied records an answer. A second envelope for an answered request is a retry of the transport and changes nothing; one
// envelope that answers several requests is shown once, for the last of them.
func (s *State) replied(e Replied) {
	var pending []*Delegation
	for _, d := range s.Answered(e.From, e.InReplyTo) {
		if d.Result == nil {
			pending = append(pending, d)
		}
	}
	for i, d := range pending {
		d.Result = &Outcome{Status: e.Status, Envelope: e.Envelope, Path: e.Path, TaskPath: e.TaskPath, Model: e.Model, At: e.At, Delivery: Processed}
		if i == len(pending)-1 {
			d.Result.Body, d.Result.Cut, d.Result.Task, d.Result.Delivery = e.Body, e.Cut, e.Task, Waiting
		}
		d.Phase = Ended
		s.Children.Quiet = false
		if d.Gone != nil && d.Gone.Delivery == Waiting {
			d.Gone.Delivery = Processed // the answer says more than "gone" would have
		}
		s.dirty = true
	}
}

func (s *State) observed(e Observed) []Action {
	if !e.Scanned {
		return nil
	}
	again := false
	for _, d := range s.Children.Delegations {
		// While a window is being opened tmux may not know it yet; only the launcher's own word counts then.
		if !d.Unfinished() || d.closing || (d.Phase == Launching && d.Exit == nil) {
			continue
		}
		switch seen := e.Windows[d.ID]; {
		case d.Exit != nil || seen == Dead:
			s.gone(d, e.At)
		case seen == Alive:
			d.missed = 0
		case seen == Absent:
			if d.missed++; d.missed >= 2 {
				s.gone(d, e.At)
			} else {
				again = true
			}
		}
	}
	if again {
		return []Action{LookAgain{}}
	}
	return nil
}

func (s *State) gone(d *Delegation, at int64) {
	d.Gone = &Outcome{Status: "gone", At: at, Delivery: Waiting}
	d.Phase = Ended
	s.Children.Quiet = false
	s.dirty = true
}

// restoreChildren settles what a crash left open. A launch that never got its window was cut short by the end of this
// process; the service has looked for the window and applied Opened if there is one.
//
// Outcomes that the conversation holds and no run has worked through get a run again, without being shown again: the one they had
// ended with pi.
func (s *State) restoreChildren(e Restored) []Action {
	unworked := false
	for _, d := range s.Children.Delegations {
		if d.Phase == Launching {
			s.gone(d, d.Started)
		}
		for _, o := range []*Outcome{d.Result, d.Gone} {
			if o == nil || (o.Delivery != Sent && o.Delivery != InSession) {
				continue
			}
			// InSession is looked up too: pi writes a new session's file late, so what was shown may never have reached the disk.
			to := Waiting
			if e.Messages[o.Message] {
				to = InSession
				unworked = true
			}
			if o.Delivery != to {
				o.Delivery = to
				s.dirty = true
			}
		}
	}
	if unworked && !e.Midway && !s.Children.Quiet {
		return []Action{Wake{}}
	}
	return nil
}

// Unconfirmed lists the messages of which only the conversation knows whether it holds them.
func (s *State) Unconfirmed() []string {
	ids := []string{}
	for _, d := range s.Children.Delegations {
		for _, o := range []*Outcome{d.Result, d.Gone} {
			if o != nil && (o.Delivery == Sent || o.Delivery == InSession) && !slices.Contains(ids, o.Message) {
				ids = append(ids, o.Message)
			}
		}
	}
	return ids
}
