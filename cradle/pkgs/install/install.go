// Package install brings the packages of an agent to disk.
package install

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pi-cradle/cradle/pkgs"
	"pi-cradle/internal/durable"
	"pi-cradle/internal/run"
	"pi-cradle/internal/usererr"
)

// Options are what the caller decides.
type Options struct {
	// Find gives the path of the installer.
	Find func(name string) (string, error)
	// Progress is told what takes time, in a few words.
	Progress func(format string, args ...any)
}

// Run installs the packages of p unless they are there already. The caller holds the agent's state lock, so that a second run
// waits and then finds the work done. An interrupted installation is never taken for a finished one.
func Run(ctx context.Context, p pkgs.Project, opts Options) error {
	if p.UpToDate() {
		return nil
	}
	installer, err := opts.Find(p.Install[0])
	if err != nil {
		return err
	}
	if err := prepare(p); err != nil {
		return usererr.New("Failed to prepare packages: %w", err)
	}
	opts.Progress("installing %s", p.List())
	if _, err := run.Attached(ctx, run.Cmd{Path: installer, Args: p.Install[1:], Dir: p.Dir}); err != nil {
		// Without a manifest nothing is up to date, also for other programs that share the state and don't know the mark.
		_ = os.Remove(p.ManifestPath())
		return failure(ctx, p.Install, err)
	}
	if err := os.Remove(p.Unfinished()); err != nil {
		return usererr.New("Failed to finish the installation of packages: %w", err)
	}
	return nil
}

// prepare leaves nothing in the project but node_modules, the mark and the manifest. The installer runs outside the sandbox
// and the agent can write here: an .npmrc or a lock file that it left would choose what runs on the host. For the same reason
// no link is followed.
func prepare(p pkgs.Project) error {
	if info, err := os.Lstat(p.Dir); err == nil && !info.IsDir() {
		if err := os.Remove(p.Dir); err != nil {
			return err
		}
	}
	if err := durable.MkdirAll(p.Dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "node_modules" && e.IsDir() {
			continue
		}
		if err := os.RemoveAll(filepath.Join(p.Dir, e.Name())); err != nil {
			return err
		}
	}
	// The mark comes first: a crash between the two must not leave a manifest without it.
	if err := durable.Write(p.Unfinished(), nil); err != nil {
		return err
	}
	return durable.Write(p.ManifestPath(), p.Manifest())
}

// failure words what became of the installer.
func failure(ctx context.Context, argv []string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	command := strings.Join(argv, " ")
	var exit *run.ExitError
	switch {
	case errors.As(err, &exit) && exit.Result.Signal != 0:
		return usererr.New("Package install failed (%s was killed: %s)", command, exit.Result.Signal)
	case errors.As(err, &exit):
		return usererr.New("Package install failed (%s exited %d)", command, exit.Result.Code)
	case errors.Is(err, fs.ErrNotExist):
		return usererr.New("Package install failed (%s could not start: %w)", command, err)
	default:
		return usererr.New("Package install failed (%s: %w)", command, err)
	}
}
