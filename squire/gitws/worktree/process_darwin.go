package worktree

import (
	"context"
	"errors"
	"time"

	"pi-cradle/internal/run"
)

// processesIn finds the processes whose working directory is dir or below. Those that this user may not look at are passed over.
func processesIn(ctx context.Context, dir string) ([]Process, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	res, err := run.Output(ctx, run.Cmd{Path: "/usr/sbin/lsof", Args: []string{"-w", "-n", "-P", "-d", "cwd", "-F", "0pcn"}, Limit: 16 << 20})
	var exit *run.ExitError
	if err != nil && (!errors.As(err, &exit) || len(res.Stdout) == 0) {
		return nil, err // it exits with 1 when it was not let to see everything
	}
	return parseLsof(res.Stdout, dir), nil
}
