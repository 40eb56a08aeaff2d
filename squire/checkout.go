package squire

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"pi-cradle/squire/gitws"
	"pi-cradle/squire/gitws/git"
	"pi-cradle/squire/session"
)

// How long a launch and a result wait for git. Both go on without it: a slow disk must not hold back a delegate or its answer.
const (
	inspectLimit  = 2 * time.Second
	snapshotLimit = time.Second
)

// inspect begins to look at the checkout of dir, beside whatever else a launch does. The function it gives waits for the record.
func (l *live) inspect(ctx context.Context, mode gitws.Mode, dir string) func() gitws.Workspace {
	ctx, cancel := context.WithTimeout(ctx, inspectLimit)
	found := make(chan gitws.Workspace, 1)
	l.spawn(func() {
		defer cancel()
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		found <- gitws.Workspace{Mode: mode, Cwd: dir, Git: git.Git{}.Inspect(ctx, dir)}
	})
	return sync.OnceValue(func() gitws.Workspace { return <-found })
}

// snapshot looks at the checkout that was recorded at launch.
func snapshot(ctx context.Context, workspace json.RawMessage) gitws.Snapshot {
	var recorded *gitws.Workspace
	if len(workspace) > 0 && json.Unmarshal(workspace, &recorded) != nil {
		return gitws.UnsureNow("the record of its launch checkout can't be read")
	}
	return git.Git{}.Snapshot(ctx, recorded)
}

// atOnce bounds how many checkouts are looked at at the same time.
const atOnce = 4

// snapshots begins to look at the checkouts of all delegations, each distinct one once. The function it gives waits for them, in
// the order of list.
func snapshots(ctx context.Context, list []session.Delegation) func() []gitws.Snapshot {
	distinct := map[string]*gitws.Snapshot{}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, d := range list {
		key := string(d.Workspace)
		if distinct[key] != nil {
			continue
		}
		s := new(gitws.Snapshot)
		distinct[key] = s
		group.Go(func() error {
			*s = snapshot(ctx, d.Workspace)
			return nil
		})
	}
	return sync.OnceValue(func() []gitws.Snapshot {
		_ = group.Wait()
		out := make([]gitws.Snapshot, len(list))
		for i, d := range list {
			out[i] = *distinct[string(d.Workspace)]
		}
		return out
	})
}

// inspectResults takes the snapshot of every result in a message that has none yet. It is history from then on: sent again after a
// crash, the message tells of the moment in which the answer came.
func (l *live) inspectResults(items []session.Item) {
	l.mu.Lock()
	type question struct{ workspace, worktree json.RawMessage }
	wanted := map[string]question{}
	for _, it := range items {
		if it.Outcome == it.Delegation.Result && len(it.Outcome.Snapshot) == 0 {
			wanted[it.Delegation.ID] = question{it.Delegation.Workspace, it.Delegation.Worktree}
		}
	}
	l.mu.Unlock()
	if len(wanted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, snapshotLimit)
	defer cancel()
	type taken struct {
		id      string
		raw     json.RawMessage
		warning string
	}
	all := make(chan taken, len(wanted))
	for id, ask := range wanted {
		l.spawn(func() {
			raw, _ := json.Marshal(snapshot(ctx, ask.workspace))
			all <- taken{id, raw, strayed(ctx, ask.worktree)}
		})
	}
	found := session.Inspected{Snapshots: map[string]json.RawMessage{}, Warnings: map[string]string{}}
	for range wanted {
		t := <-all
		found.Snapshots[t.id], found.Warnings[t.id] = t.raw, t.warning
	}
	_ = l.apply(found)
}
