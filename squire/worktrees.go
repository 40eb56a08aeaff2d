package squire

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	"pi-cradle/internal/usererr"
	"pi-cradle/squire/gitws"
	"pi-cradle/squire/gitws/git"
	"pi-cradle/squire/gitws/worktree"
	"pi-cradle/squire/session"
	"pi-cradle/squire/tmux"
)

// planWorktree decides all of a worktree that is to be made, and makes nothing. here is this session's own place.
func (l *live) planWorktree(ctx context.Context, p plan, here place) (place, error) {
	if err := p.settings.Worktree(); err != nil {
		return here, err
	}
	source, err := l.directory(p.order.Source)
	if err != nil {
		return here, err
	}
	made, err := worktree.Prepare(ctx, git.Git{}, worktree.Request{
		ID: p.id, Source: source, Branch: p.order.Worktree, Base: p.order.Base,
		Placement: gitws.Placement{
			Root: p.settings.WorktreeRoot, ByRepo: p.settings.WorktreeRootByRepo, Home: l.svc.cfg.Home, Dir: filepath.Join(l.start.AgentDir, "squire"),
		},
	})
	if err != nil {
		return here, err
	}
	// pi can't be asked about files that are yet to be there. Agents need no trust of pi's.
	config, err := made.Holds(ctx, git.Git{}, ".pi", "agents")
	skills, err2 := made.Holds(ctx, git.Git{}, ".agents/skills")
	workspace := made.Workspace()
	return place{
		cwd: made.Path, own: here.own, workspace: func() gitws.Workspace { return workspace }, worktree: &made,
		protected: config || skills, note: made.Context(),
	}, errors.Join(err, err2)
}

// build makes the planned worktree, if there is one, and makes it ready. The plan is on record by now. The notes are for whoever
// started the delegate.
func (l *live) build(ctx context.Context, p plan) (notes []string, err error) {
	if p.place.worktree == nil {
		return nil, nil
	}
	copied, err := worktree.Create(ctx, git.Git{}, *p.place.worktree)
	if err != nil {
		return nil, err
	}
	notes = p.place.worktree.Notes(copied)
	if argv := p.settings.WorktreeSetup; argv != nil {
		l.host.notify("info", "delegate: making the worktree ready with "+strings.Join(argv, " "))
		err = worktree.Setup{Argv: argv, Log: l.dir.SetupLog(p.id)}.Run(ctx, git.Git{}, *p.place.worktree)
	}
	return notes, err
}

// giveUp takes back a launch that failed before its window was known to be open, and words the failure. What is kept of a worktree is
// told with it, and to the user as well when whoever started the delegate does not listen any more.
func (l *live) giveUp(ctx context.Context, p plan, sessionFile string, cause error) error {
	kept := ""
	if made := p.place.worktree; made != nil {
		kept = l.unmake(context.WithoutCancel(ctx), *made, cause)
	}
	l.takeBack(p.id, sessionFile)
	if kept == "" {
		return cause
	}
	if ctx.Err() != nil {
		l.host.notify("warning", "delegate: "+kept)
	}
	refusal := usererr.New("%w", cause)
	var inner *usererr.Error
	if errors.As(cause, &inner) {
		refusal.Hints = append(refusal.Hints, inner.Hints...)
	}
	var setup *worktree.SetupError
	if errors.As(cause, &setup) {
		refusal.Hints = append(refusal.Hints, setup.Hints()...)
	}
	return refusal.Hint("%s", kept).Hint("/delegate-worktrees shows and removes what is left")
}

// unmake removes what a failed launch made of a worktree, unless that is to be looked at or may be in use. It gives what is left.
func (l *live) unmake(ctx context.Context, made worktree.Plan, cause error) string {
	left := worktree.Leftover{Path: made.Path, Branch: made.Branch, Base: made.Base}
	var failed *worktree.FailedError
	var setup *worktree.SetupError
	var uncertain *tmux.UncertainError
	switch {
	case errors.As(cause, &failed): // taken back as far as possible
		left = failed.Left
	case errors.As(cause, &setup):
		left.Reason = "what went wrong in it can be seen there"
	case errors.As(cause, &uncertain):
		left.Reason = "it is not known whether a window opened in it"
	default:
		left = worktree.RollBack(ctx, git.Git{}, made)
	}
	return left.Text()
}

// unmakeAbandoned is unmake for a launch during which this process's predecessor died, and which is known to have started nothing.
func (l *live) unmakeAbandoned(d session.Delegation) {
	made, ok := planOf(&d)
	if !ok {
		return
	}
	if left := worktree.RollBack(l.ctx, git.Git{}, made); left.Any() {
		_ = l.apply(session.Kept{ID: d.ID, Text: left.Text()})
	}
}

// planOf reads the worktree that was planned for a delegation.
func planOf(d *session.Delegation) (made worktree.Plan, ok bool) {
	return made, len(d.Worktree) > 0 && json.Unmarshal(d.Worktree, &made) == nil
}

// strayed says what looks as if a delegate had worked outside of the worktree that was made for it.
func strayed(ctx context.Context, planned json.RawMessage) string {
	made, ok := planOf(&session.Delegation{Worktree: planned})
	if !ok {
		return ""
	}
	return worktree.SourceChanged(ctx, git.Git{}, made)
}
