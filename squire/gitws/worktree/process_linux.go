package worktree

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processesIn finds the processes whose working directory is dir or below. Those that this user may not look at are passed over.
func processesIn(ctx context.Context, dir string) ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		cwd, err := os.Readlink(filepath.Join("/proc", entry.Name(), "cwd"))
		if err != nil || !within(cwd, dir) {
			continue
		}
		name, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "comm"))
		found = append(found, Process{pid, strings.TrimSpace(string(name))})
	}
	return found, nil
}
