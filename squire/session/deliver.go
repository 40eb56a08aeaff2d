package session

import "strconv"

// Outcomes are told to the model in one message at a time. While one is on its way into the conversation, later outcomes wait
// and go together in the next: twelve delegates that finish during a long run cost two messages, not twelve runs.

// maxTogether bounds how many outcomes share a message, so that no message grows without limit.
const maxTogether = 12

type flight struct {
	id       string
	outcomes []*Outcome
	lost     bool // NotShown came
}

// Item is one outcome of a message.
type Item struct {
	Delegation *Delegation
	Outcome    *Outcome
}

// Show asks for a message to be put into the conversation, with a run if pi is idle and Trigger is set. The answer is Shown or
// NotShown.
type Show struct {
	ID      string
	Items   []Item
	Trigger bool
}

// Wake asks for a run on what the conversation holds already.
type Wake struct{}

// Shown says that the conversation holds the message.
type Shown struct{ ID string }

// NotShown says that it does not, and that nothing will put it there any more.
type NotShown struct{ ID string }

// RetryLater asks for a Retry after a pause that grows with Attempt: at once would spin while pi refuses.
type RetryLater struct{ Attempt int }

// Retry lets a message that was not shown be sent again.
type Retry struct{}

func (Show) action()       {}
func (Wake) action()       {}
func (RetryLater) action() {}
func (Shown) event()       {}
func (NotShown) event()    {}
func (Retry) event()       {}

// deliver sends what waits, when nothing is on its way.
func (s *State) deliver() []Action {
	if !s.ready || s.flight != nil {
		return nil
	}
	var items []Item
	for _, d := range s.Children.Delegations {
		for _, o := range []*Outcome{d.Gone, d.Result} {
			if o != nil && o.Delivery == Waiting && len(items) < maxTogether {
				items = append(items, Item{d, o})
			}
		}
	}
	if len(items) == 0 {
		return nil
	}
	first := items[0]
	first.Outcome.Attempt++
	kind := "result"
	if first.Outcome == first.Delegation.Gone {
		kind = "gone"
	}
	f := &flight{id: first.Delegation.ID + "/" + kind + "/" + strconv.Itoa(first.Outcome.Attempt)}
	for _, it := range items {
		it.Outcome.Delivery, it.Outcome.Message = Sent, f.id
		f.outcomes = append(f.outcomes, it.Outcome)
	}
	s.flight = f
	s.dirty = true
	return []Action{Show{ID: f.id, Items: items, Trigger: !s.Children.Quiet}}
}

func (s *State) shown(e Shown) {
	if s.flight == nil || s.flight.id != e.ID {
		return
	}
	for _, o := range s.flight.outcomes {
		o.Delivery = InSession
	}
	s.flight = nil
	s.dirty = true
}

// notShown leaves the flight in the way of deliver until Retry or Settled.
func (s *State) notShown(e NotShown) []Action {
	if s.flight == nil || s.flight.id != e.ID {
		return nil
	}
	s.flight.lost = true
	return []Action{RetryLater{Attempt: s.flight.outcomes[0].Attempt}}
}

func (s *State) retry() {
	if s.flight != nil && s.flight.lost {
		s.unsendFlight()
		s.dirty = true
	}
}

func (s *State) unsendFlight() {
	if s.flight != nil {
		for _, o := range s.flight.outcomes {
			o.Delivery = Waiting
		}
		s.flight = nil
	}
}

// settled takes shown outcomes off the list: a run that had them in its context has come to a normal end.
func (s *State) settled(e Settled) {
	s.retry()
	if e.Aborted {
		if !s.Children.Quiet && s.unprocessed() {
			s.Children.Quiet = true
			s.dirty = true
		}
		return
	}
	if e.Error != "" {
		return
	}
	if s.Children.Quiet {
		s.Children.Quiet = false
		s.dirty = true
	}
	for _, d := range s.Children.Delegations {
		for _, o := range []*Outcome{d.Gone, d.Result} {
			if o != nil && o.Delivery == InSession {
				o.Delivery, o.Body, o.Task = Processed, "", ""
				s.dirty = true
			}
		}
	}
}

// unprocessed says that there are outcomes which no run has worked through.
func (s *State) unprocessed() bool {
	for _, d := range s.Children.Delegations {
		for _, o := range []*Outcome{d.Gone, d.Result} {
			if o != nil && o.Delivery != Processed {
				return true
			}
		}
	}
	return false
}
