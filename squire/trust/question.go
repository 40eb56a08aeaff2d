package trust

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"pi-cradle/internal/usererr"
	"pi-cradle/squire/views"
)

// Question is what the user of a root session is asked. It travels from the session that wants to know to that root.
type Question struct {
	Session string   `json:"session"` // the id of the session that launches
	Chain   []string `json:"chain"`   // the agents from the root down to that session, empty for the root itself
	Agent   string   `json:"agent"`   // the agent that is launched
	Dir     string   `json:"dir"`     // where it is to work
	Key     string   `json:"key"`     // what the answer is saved for; another directory than Dir is its main repository
}

// Valid refuses what can't be asked.
func (q Question) Valid() error {
	for _, dir := range []string{q.Dir, q.Key} {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
			return fmt.Errorf("a question about the directory %q, which is not absolute and plain", dir)
		}
	}
	if q.Session == "" || q.Agent == "" {
		return fmt.Errorf("a question about %q that does not say who asks", q.Dir)
	}
	return nil
}

// Option is one answer and the words for it.
type Option struct {
	Answer Answer
	Label  string
}

// Options are the answers in the order in which they are offered. The folder above is left out where there is none.
func (q Question) Options() []Option {
	options := []Option{{Approve, "Trust"}}
	if parent := above(q.Key); parent != "" {
		options = append(options, Option{ApproveParent, "Trust parent folder (" + views.Line(parent) + ")"})
	}
	return append(options,
		Option{ApproveOnce, "Trust (this session only)"},
		Option{Deny, "Do not trust"},
		Option{DenyOnce, "Do not trust (this session only)"},
	)
}

// Answered is the answer with a label, or none.
func (q Question) Answered(label string) Answer {
	for _, o := range q.Options() {
		if o.Label == label {
			return o.Answer
		}
	}
	return ""
}

// Offers says whether the answer is one of the question's options.
func (q Question) Offers(a Answer) bool {
	return slices.ContainsFunc(q.Options(), func(o Option) bool { return o.Answer == a })
}

// Text is the question with everything that it takes to answer it. Nothing in it can pass for a line of its own.
func (q Question) Text() string {
	key := views.Line(q.Key)
	var b strings.Builder
	fmt.Fprintf(&b, "Trust the project folder %s?\n", views.Line(q.Dir))
	if q.Key != q.Dir {
		fmt.Fprintf(&b, "Main repository: %s\n", key)
	}
	requester := "this session"
	if len(q.Chain) > 0 {
		requester = views.Line(strings.Join(q.Chain, " → "))
	}
	fmt.Fprintf(&b, "Agent %s is to work there for %s (session %s).\n", views.Line(q.Agent), requester, views.Line(q.Session))
	b.WriteString("With trust, its pi loads the project's settings and runs its extensions.\n\n")
	fmt.Fprintf(&b, "Trust: saved for %s\n", key)
	if parent := above(q.Key); parent != "" {
		fmt.Fprintf(&b, "Trust parent folder: saved for %s and all in it; a decision saved for %s is cleared\n", views.Line(parent), key)
	}
	fmt.Fprintf(&b, "Do not trust: saved for %s; the agent starts without them\n", key)
	b.WriteString("This session only: for this launch alone, nothing is saved\n")
	b.WriteString("Escape starts nothing")
	return b.String()
}

// Unasked is the refusal of a launch whose question nobody can be asked; why says so. With elsewhere the user can answer pi's own
// question instead.
func (q Question) Unasked(why string) *usererr.Error {
	return usererr.New("whether to trust the project folder %q is not decided, and %s", q.Dir, why)
}

// Elsewhere is the hint for a session without a user: how to decide by hand.
func (q Question) Elsewhere() string {
	return fmt.Sprintf("open pi in %q, answer its trust question (or type /trust), then delegate again", q.Key)
}
