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
func (l *live) inspect(ctx context.Context, mode gitws.Mode, dir string) func() json.RawMessage {
	ctx, cancel := context.WithTimeout(ctx, inspectLimit)
	found := make(chan json.RawMessage, 1)
	l.spawn(func() {
		defer cancel()
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		raw, _ := json.Marshal(gitws.Workspace{Mode: mode, Cwd: dir, Git: git.Git{}.Inspect(ctx, dir)})
		found <- raw
	})
	return sync.OnceValue(func() json.RawMessage { return <-found })
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
	wanted := map[string]json.RawMessage{}
	for _, it := range items {
		if it.Outcome == it.Delegation.Result && len(it.Outcome.Snapshot) == 0 {
			wanted[it.Delegation.ID] = it.Delegation.Workspace
		}
	}
	l.mu.Unlock()
	if len(wanted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, snapshotLimit)
	defer cancel()
	type taken struct {
		id  string
		raw json.RawMessage
	}
	all := make(chan taken, len(wanted))
	for id, workspace := range wanted {
		l.spawn(func() {
			raw, _ := json.Marshal(snapshot(ctx, workspace))
			all <- taken{id, raw}
		})
	}
	found := map[string]json.RawMessage{}
	for range wanted {
		t := <-all
		found[t.id] = t.raw
	}
	_ = l.apply(session.Inspected{Snapshots: found})
}
