package rpctest

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"pi-cradle/rpc/wire"
)

// trustFiles guards the trust stores of all fake pis, which may share an agent directory.
var trustFiles sync.Mutex

// SavedTrust reads the trust store of an agent directory, by pi's own format: directories and what was decided for each.
func SavedTrust(agentDir string) (map[string]bool, error) {
	saved := map[string]bool{}
	data, err := os.ReadFile(filepath.Join(agentDir, "trust.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return saved, nil
	}
	if err != nil {
		return nil, err
	}
	return saved, json.Unmarshal(data, &saved)
}

// hostTrustLook finds the nearest saved decision. What pi loads only with trust is here a folder .pi/extensions.
func (p *Pi) hostTrustLook(_ context.Context, look wire.TrustLookParams) (wire.TrustLookResult, error) {
	s, err := p.open()
	if err != nil {
		return wire.TrustLookResult{}, err
	}
	trustFiles.Lock()
	defer trustFiles.Unlock()
	saved, err := SavedTrust(s.Start.AgentDir)
	if err != nil {
		return wire.TrustLookResult{}, err
	}
	var res wire.TrustLookResult
	for dir := look.Key; res.Saved == nil; dir = filepath.Dir(dir) {
		if decision, ok := saved[dir]; ok {
			res.Saved = &decision
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	_, err = os.Stat(filepath.Join(look.Dir, ".pi", "extensions"))
	res.Protected = err == nil
	return res, nil
}

func (p *Pi) hostTrustSave(ctx context.Context, save wire.TrustSaveParams) (wire.Empty, error) {
	s, err := p.open()
	if err != nil {
		return wire.Empty{}, err
	}
	trustFiles.Lock()
	defer trustFiles.Unlock()
	if ctx.Err() != nil {
		return wire.Empty{}, nil
	}
	saved, err := SavedTrust(s.Start.AgentDir)
	if err != nil {
		return wire.Empty{}, err
	}
	for _, u := range save.Updates {
		delete(saved, u.Path)
		if u.Decision != nil {
			saved[u.Path] = *u.Decision
		}
	}
	data, err := json.Marshal(saved)
	if err != nil {
		return wire.Empty{}, err
	}
	return wire.Empty{}, os.WriteFile(filepath.Join(s.Start.AgentDir, "trust.json"), data, 0o600)
}
