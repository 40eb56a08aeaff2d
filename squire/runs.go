package squire

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
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
	err := l.apply(session.Settled{
		Aborted: p.Aborted, StopReason: p.StopReason, Text: text, Error: p.Error,
		CompletionIsHeld: p.Holds == "waiting" || p.Holds == "malformed", At: l.now(),
	})
	if err != nil {
		return wire.Empty{}, err
	}
	l.waitForReplies(ctx)
	return wire.Empty{}, nil
}

const replyLimit = 8 * time.Second

func (l *live) waitForReplies(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, replyLimit)
	defer cancel()
	done := make(chan struct{})
	go func() {
		l.replies.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	case <-l.ctx.Done():
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
