package session

import (
	"fmt"
	"slices"
	"strings"
)

// Own is the durable record of a delegate: who it is, what it owes, and the answer once it is frozen.
type Own struct {
	// These two are kept in a file of their own, which the parent writes. Placement is the preferred name of the tmux session in
	// which the delegates of the root's project work, wherever they do.
	Identity  Identity `json:"-"`
	Placement string   `json:"-"`

	Tasks    []Task   `json:"tasks"`
	Outbox   *Outbox  `json:"outbox,omitempty"`
	Answered []string `json:"answered"` // the latest request ids whose answer is on its way, so that a late copy is known
	Held     bool     `json:"held"`     // the user stopped the run partway; only a completed run answers now
	AutoExit bool     `json:"autoExit"` // as it stands: launched with it, and no user took over since
}

// Identity is written by the parent before the launch and never changes.
type Identity struct {
	Parent string   `json:"parent"`
	Root   string   `json:"root"`
	Depth  int      `json:"depth"`
	Agent  string   `json:"agent"`
	Chain  []string `json:"chain"`
}

// Task is one request of the parent that is owed an answer.
type Task struct {
	Request string `json:"request"`
	Text    string `json:"text"`
	Path    string `json:"path"`
	At      int64  `json:"at"`

	prompted bool // its prompt is in the conversation
	sending  bool // its prompt is on its way there
}

// Outbox is an answer that no longer changes, whatever later runs say. It stays until the transport has taken it.
type Outbox struct {
	Requests []string `json:"requests"`
	Body     string   `json:"body"`
	Status   string   `json:"status"` // done or failed
	At       int64    `json:"at"`

	sending bool
}

const maxAnswered = 200

// TaskArrived is a claimed request from the parent.
type TaskArrived struct {
	Request, Text, Path string
	At                  int64
}

// Prompted and PromptFailed answer Prompt.
type (
	Prompted     struct{ Request string }
	PromptFailed struct{ Request, Err string }
)

// ReplySent and ReplyFailed answer Reply.
type (
	ReplySent   struct{}
	ReplyFailed struct{ Err string }
)

// UserTookOver says that a person typed into the delegate, or an RPC client sent it a prompt.
type UserTookOver struct{}

// AutoExitOn is the /auto-exit command.
type AutoExitOn struct{}

// Actions of a delegate.
type (
	// Prompt submits a task as the user's prompt.
	Prompt struct{ Task Task }
	// Reply sends the outbox to the parent.
	Reply struct {
		To     string
		Outbox Outbox
	}
	// Exit ends pi; the window closes with it.
	ExitPi struct{}
)

func (TaskArrived) event()  {}
func (Prompted) event()     {}
func (PromptFailed) event() {}
func (ReplySent) event()    {}
func (ReplyFailed) event()  {}
func (UserTookOver) event() {}
func (AutoExitOn) event()   {}
func (Prompt) action()      {}
func (Reply) action()       {}
func (ExitPi) action()      {}

// TookOverNote opens an answer that came after the user stopped the run partway.
const TookOverNote = "[The user took over in the delegate's window partway through this task; what follows is from the run that completed it.]\n\n"

func (s *State) applyOwn(e Event) []Action {
	if s.Own == nil {
		return nil
	}
	switch e := e.(type) {
	case TaskArrived:
		return s.taskArrived(e)
	case Prompted:
		if t := s.task(e.Request); t != nil {
			t.prompted, t.sending = true, false
		}
	case PromptFailed:
		if t := s.task(e.Request); t != nil {
			t.sending = false
		}
		return []Action{Notify{Level: "error", Text: "delegate: could not start the task: " + e.Err}}
	case ReplySent:
		return s.replySent()
	case ReplyFailed:
		if s.Own.Outbox != nil {
			s.Own.Outbox.sending = false
		}
		return []Action{Notify{Level: "error", Text: "delegate: could not handle the task reply: " + e.Err + "; it is kept and sent again after the next run or when this session is reopened"}}
	case UserTookOver:
		return s.autoExitOff("you took over")
	case AutoExitOn:
		s.Own.AutoExit = true
		s.owed = true
		return []Action{Notify{Level: "info", Text: "delegate: auto-exit is on: this window closes after the next normal completion"}}
	}
	return nil
}

func (s *State) task(request string) *Task {
	for i := range s.Own.Tasks {
		if s.Own.Tasks[i].Request == request {
			return &s.Own.Tasks[i]
		}
	}
	return nil
}

// taskArrived takes a request on. The record is written before the prompt is submitted; a second copy of the same envelope,
// left by a crash between the two or by a transport that retries, is known by its id.
func (s *State) taskArrived(e TaskArrived) []Action {
	if s.task(e.Request) != nil {
		return nil
	}
	if slices.Contains(s.Own.Answered, e.Request) {
		return nil
	}
	s.Own.Tasks = append(s.Own.Tasks, Task{Request: e.Request, Text: e.Text, Path: e.Path, At: e.At})
	s.owed = true
	if !s.ready {
		return nil // Restored prompts it
	}
	return s.promptOwed()
}

func (s *State) promptOwed() []Action {
	var out []Action
	for i := range s.Own.Tasks {
		if t := &s.Own.Tasks[i]; !t.prompted && !t.sending {
			t.sending = true
			out = append(out, Prompt{Task: *t})
		}
	}
	return out
}

// ownSettled decides what a finished run means for the tasks. A run the user stopped answers nothing; a failed run answers
// unless the user had stopped an earlier one; a completed run answers everything whose prompt it had.
func (s *State) ownSettled(e Settled) []Action {
	if s.Own == nil || !s.ready {
		return nil
	}
	var out []Action
	if e.Aborted {
		if len(s.Own.Tasks) > 0 && !s.Own.Held {
			s.Own.Held = true
			s.owed = true
		}
		return append(out, s.autoExitOff("you stopped the run")...)
	}
	if e.CompletionIsHeld {
		return nil
	}
	if s.Own.Outbox == nil {
		s.freeze(e)
	}
	if s.Own.Outbox != nil {
		return append(out, s.sendOutbox()...)
	}
	out = append(out, s.promptOwed()...)
	if len(s.Own.Tasks) == 0 {
		out = append(out, s.exitIfOn()...)
	}
	return out
}

func (s *State) freeze(e Settled) {
	status, body := Answer(e)
	if status == "failed" && s.Own.Held {
		return
	}
	var requests []string
	kept := []Task{}
	for _, t := range s.Own.Tasks {
		if t.prompted {
			requests = append(requests, t.Request)
		} else {
			kept = append(kept, t)
		}
	}
	if len(requests) == 0 {
		return
	}
	if s.Own.Held {
		body = TookOverNote + body
	}
	s.Own.Outbox = &Outbox{Requests: requests, Body: body, Status: status, At: e.At}
	s.Own.Tasks = kept
	s.Own.Answered = append(s.Own.Answered, requests...)
	if extra := len(s.Own.Answered) - maxAnswered; extra > 0 {
		s.Own.Answered = slices.Delete(s.Own.Answered, 0, extra)
	}
	s.Own.Held = false
	s.owed = true
}

// Answer reads a settled run as an envelope's status and body. "done" takes a normal stop and a text; whatever else it was is
// said, so that the parent's model never has to guess.
func Answer(e Settled) (status, body string) {
	text := strings.TrimSpace(e.Text)
	switch {
	case e.Error != "":
		return "failed", join(text, "The run ended with an error: "+e.Error)
	case e.StopReason == "length":
		return "failed", join(text, "The answer was cut off by the model's output limit.")
	case e.StopReason != "stop":
		return "failed", join(text, fmt.Sprintf("The run ended without a final answer (stop reason %q).", e.StopReason))
	case text == "":
		return "failed", "The run ended without any text."
	}
	return "done", e.Text
}

func join(text, note string) string {
	if text == "" {
		return note
	}
	return text + "\n\n" + note
}

func (s *State) sendOutbox() []Action {
	if s.Own.Outbox == nil || s.Own.Outbox.sending {
		return nil
	}
	s.Own.Outbox.sending = true
	return []Action{Reply{To: s.Own.Identity.Parent, Outbox: *s.Own.Outbox}}
}

func (s *State) replySent() []Action {
	if s.Own.Outbox == nil {
		return nil
	}
	s.Own.Outbox = nil
	s.owed = true
	out := s.promptOwed()
	if len(s.Own.Tasks) == 0 {
		out = append(out, s.exitIfOn()...)
	}
	return out
}

func (s *State) exitIfOn() []Action {
	if !s.Own.AutoExit {
		return nil
	}
	return []Action{ExitPi{}}
}

func (s *State) autoExitOff(why string) []Action {
	if !s.Own.AutoExit {
		return nil
	}
	s.Own.AutoExit = false
	s.owed = true
	return []Action{Notify{Level: "info", Text: "delegate: auto-exit is off because " + why + "; /auto-exit turns it on again"}}
}

// restoreOwn takes up what a crash left open: an answer that was frozen and not known to be sent, and tasks whose prompt never
// reached the conversation. A prompt that is there already is never submitted twice; the next completed run answers it.
func (s *State) restoreOwn(inSession map[string]bool) []Action {
	if s.Own == nil {
		return nil
	}
	for i := range s.Own.Tasks {
		s.Own.Tasks[i].prompted = inSession[s.Own.Tasks[i].Request]
	}
	return append(s.sendOutbox(), s.promptOwed()...)
}

// unsendOwn takes back what was to follow a save that failed.
func (s *State) unsendOwn() {
	if s.Own == nil {
		return
	}
	if s.Own.Outbox != nil {
		s.Own.Outbox.sending = false
	}
	for i := range s.Own.Tasks {
		s.Own.Tasks[i].sending = false
	}
}
