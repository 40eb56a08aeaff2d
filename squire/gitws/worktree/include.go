package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"pi-cradle/internal/usererr"
	"pi-cradle/squire/gitws"
	"pi-cradle/squire/gitws/git"
)

// IncludeFile names, in the syntax of .gitignore, ignored files that a new worktree gets a copy of.
const IncludeFile = ".worktreeinclude"

// What is copied is meant to be the likes of .env; a file that names more is refused rather than half obeyed.
const (
	maxIncluded      = 5000
	maxIncludedBytes = 256 << 20
)

// Include is what the source's include file comes to.
type Include struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`

	paths []string // not recorded: a plan that is read back is rolled back, not carried out
}

// Copied is what became of Include. Skipped has a reason for each file that was left out.
type Copied struct {
	Files   int
	Bytes   int64
	Skipped []string
}

// findIncluded lets git decide: untracked files that the include file matches, and that the repository ignores.
func findIncluded(ctx context.Context, g git.Git, root string) (Include, error) {
	var in Include
	info, err := os.Stat(filepath.Join(root, IncludeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return in, nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return in, usererr.New("%q can't be read", filepath.Join(root, IncludeFile))
	}
	a := ask(g, root)
	named, err := a.Ask(ctx, "ls-files", "-z", "--others", "--ignored", "--exclude-from="+IncludeFile)
	var out []byte
	if err == nil && len(named) > 0 {
		out, err = a.AskWith(ctx, bytes.NewReader(named), "check-ignore", "-z", "--stdin")
		if len(out) == 0 && git.No(err) {
			err = nil
		}
	}
	var paths []string
	if err == nil {
		paths, err = gitws.SplitNUL(out)
	}
	if err != nil {
		return in, usererr.New("the files that %s names can't be listed: %s", IncludeFile, a.Reason(err))
	}
	for _, name := range paths {
		if info, err := os.Lstat(filepath.Join(root, name)); err == nil && info.Mode().IsRegular() {
			in.Bytes += info.Size()
		}
	}
	in.Files, in.paths = len(paths), paths
	if in.Files > maxIncluded || in.Bytes > maxIncludedBytes {
		return in, usererr.New("%s names %d files of %s together, more than are copied into a worktree", IncludeFile, in.Files, size(in.Bytes)).
			Hint("name fewer: up to %d files of %s together; what can be rebuilt belongs into worktreeSetup", maxIncluded, size(maxIncludedBytes))
	}
	return in, nil
}

// copyTo copies from one checkout to another. Neither side is left, whatever symlinks there are, and nothing is overwritten.
func (in Include) copyTo(ctx context.Context, from, to string) (Copied, error) {
	var done Copied
	if len(in.paths) == 0 {
		return done, nil
	}
	src, err := os.OpenRoot(from)
	if err != nil {
		return done, err
	}
	defer src.Close()
	dst, err := os.OpenRoot(to)
	if err != nil {
		return done, err
	}
	defer dst.Close()
	for _, name := range in.paths {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		n, err := copyOne(src, dst, strings.TrimSuffix(name, "/"))
		var skip skipError
		switch {
		case errors.As(err, &skip):
			done.Skipped = append(done.Skipped, fmt.Sprintf("%q %s", name, string(skip)))
		case err != nil:
			return done, fmt.Errorf("%q could not be copied: %w", name, err)
		default:
			done.Files++
			done.Bytes += n
		}
	}
	return done, nil
}

type skipError string

func (e skipError) Error() string { return string(e) }

func copyOne(src, dst *os.Root, name string) (int64, error) {
	info, err := src.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, skipError("is gone")
	}
	if err != nil {
		return 0, err
	}
	if _, err := dst.Lstat(name); err == nil {
		return 0, skipError("is there already")
	}
	link := info.Mode().Type() == fs.ModeSymlink
	if !link && !info.Mode().IsRegular() {
		return 0, skipError("is neither a file nor a symlink")
	}
	if err := folders(src, dst, path.Dir(name)); err != nil {
		// A folder of the source can be a file in the base, or a symlink to somewhere else.
		return 0, skipError("has no place in the worktree")
	}
	if link {
		target, err := src.Readlink(name)
		if err != nil {
			return 0, err
		}
		return 0, dst.Symlink(target, name)
	}
	return copyFile(src, dst, name, info)
}

// folders makes dir with the modes of the source's.
func folders(src, dst *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	if info, err := dst.Stat(dir); err == nil {
		if !info.IsDir() {
			return fs.ErrExist
		}
		return nil
	}
	if err := folders(src, dst, path.Dir(dir)); err != nil {
		return err
	}
	info, err := src.Stat(dir)
	if err != nil {
		return err
	}
	return dst.Mkdir(dir, info.Mode().Perm()|0o700)
}

func copyFile(src, dst *os.Root, name string, info fs.FileInfo) (n int64, err error) {
	in, err := src.Open(name)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := dst.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, out.Close())
		if err != nil {
			_ = dst.Remove(name) // half a file would keep the worktree from being taken back
		}
	}()
	// No more than was counted, should the file be growing.
	if n, err = io.Copy(out, io.LimitReader(in, info.Size())); err != nil {
		return n, err
	}
	return n, out.Chmod(info.Mode().Perm())
}

func size(n int64) string {
	const kib = 1 << 10
	switch {
	case n < kib:
		return fmt.Sprintf("%d bytes", n)
	case n < kib*kib:
		return fmt.Sprintf("%.1f KiB", float64(n)/kib)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(kib*kib))
}
