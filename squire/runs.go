package squire

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"pi-cradle/rpc/wire"
	"pi-cradle/squire/prompt"
	"pi-cradle/squire/session"
	"pi-cradle/squire/views"
)

// Footer entries. The two differ, so that a delegate which has delegates of its own shows both.
const (
	statusChildren = "delegate"
	statusSelf     = "delegate-self"
)

// runPrepare gives the system-prompt sections of the coming run, and the delegate tool's description when the agents have
// changed. Nothing of it changes otherwise, so a provider's cache of the prompt holds.
func (l *live) runPrepare(_ context.Context, p wire.RunPrepareParams) (wire.RunPrepareResult, error) {
	res := wire.RunPrepareResult{Sections: map[string]string{}}
	l.mu.Lock()
	if own := l.state.Own; own != nil && l.broken == nil {
		res.Sections[prompt.DelegateSection] = prompt.Section(own.Identity, false)
	}
	isRoot := l.state.Own == nil
	l.mu.Unlock()
	if !isRoot {
		return res, nil
	}
	for _, update := range l.brief() {
		l.host.tool(update)
	}
	if text, err := l.guidance(); p.Delegating && err == nil && text != "" {
		res.Sections[prompt.ParentSection] = text
	}
	return res, nil
}

// runSettled takes a finished run in. It answers once a delegate's reply is on its way or has failed, so that a pi that ends
// right after the run does not take the answer with it.
func (l *live) runSettled(ctx context.Context, p wire.RunSettledParams) (wire.Empty, error) {
	// A helper that has just taken over hears of the end of a run before it knows what that run was about.
	select {
	case <-l.restored:
	case <-ctx.Done():
		return wire.Empty{}, ctx.Err()
	}
	if l.healthy() != nil {
		return wire.Empty{}, nil // said when it broke
	}
	text := p.Text
	if p.TextPath != "" {
		data, err := os.ReadFile(p.TextPath)
		if err != nil {
			return wire.Empty{}, fmt.Errorf("could not read the answer: %w", err)
		}
		text = string(data)
		defer os.Remove(p.TextPath)
	}
	text, _ = views.Clip(text, answerLimit, "\n\n[… cut here; the whole answer is in the delegate's session …]\n\n")
	err := l.apply(session.Settled{
		Aborted: p.Aborted, StopReason: p.StopReason, Text: text, Error: p.Error,
		CompletionIsHeld: p.Holds == "waiting" || p.Holds == "malformed", At: l.now(),
	})
	if err != nil {
		return wire.Empty{}, err
	}
	l.replies.wait(ctx, replyLimit)
	return wire.Empty{}, nil
}

// answerLimit bounds an answer on its way, in bytes: it has to fit into one frame whatever its characters become in JSON.
const answerLimit = 1 << 20

// replyLimit bounds what a settled run waits for.
const replyLimit = 8 * time.Second

// outstanding counts calls that are under way, and lets others wait until there are none.
type outstanding struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n comes down to 0; nil while nobody waits
}

func (o *outstanding) add() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n++
}

func (o *outstanding) done() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n--; o.n == 0 && o.none != nil {
		close(o.none)
		o.none = nil
	}
}

// wait returns when none is under way, when ctx ends, or after limit.
func (o *outstanding) wait(ctx context.Context, limit time.Duration) {
	o.mu.Lock()
	if o.n == 0 {
		o.mu.Unlock()
		return
	}
	if o.none == nil {
		o.none = make(chan struct{})
	}
	none := o.none
	o.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-none:
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (l *live) userTookOver() { _ = l.apply(session.UserTookOver{}) }

// faces are picked once per process, for no reason but to be pleasant.
var (
	parentFace = []string{"👨", "👩"}[rand.IntN(2)]
	childFace  = []string{"👦", "👧"}[rand.IntN(2)]
)

// statuses is what the footer says, by key. An empty text clears the entry.
func (l *live) statuses() map[string]string {
	out := map[string]string{statusChildren: "", statusSelf: ""}
	switch n := l.state.Count(); n {
	case 0:
	case 1:
		out[statusChildren] = parentFace + " 1 delegate running"
	default:
		out[statusChildren] = fmt.Sprintf("%s %d delegates running", parentFace, n)
	}
	if own := l.state.Own; own != nil {
		onOff := "off"
		if own.AutoExit {
			onOff = "on"
		}
		out[statusSelf] = fmt.Sprintf("%s %s delegate · auto-exit %s", childFace, views.Line(own.Identity.Agent), onOff)
	}
	return out
}

// firstLine is a task in one line, for a notice or a row.
func firstLine(task string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(task), "\n")
	return views.Line(line)
}
