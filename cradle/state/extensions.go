package state

import (
	"io/fs"
	"os"
	"path/filepath"

	"pi-cradle/internal/durable"
)

// File is one generated file, by its name within the extensions directory.
type File struct{ Name, Content string }

// WriteExtensions makes the extensions directory hold exactly files. It compares first, so an unchanged directory is not
// touched and a damaged one never trusted. Each file is replaced whole: a crash, a full disk or a session that starts in
// between finds the old content or the new, and the next run repairs the rest. With no files the directory goes.
//
// Unless alone, what another run may need, though this one does not, stays: its pi may not have read it yet, or reads it again.
//
// The agent can write here, so nothing is followed: a link in place of the directory or a file is removed, not its target.
func (d Dir) WriteExtensions(files []File, alone bool) error {
	if err := d.writeExtensions(files, alone); err != nil {
		return d.writeFailure(err)
	}
	return nil
}

func (d Dir) writeExtensions(files []File, alone bool) error {
	dir := d.Extensions()
	info, err := os.Lstat(dir)
	switch {
	case notExist(err):
		if len(files) == 0 {
			return nil
		}
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		if err := os.Remove(dir); err != nil {
			return err
		}
	case len(files) == 0 && !alone:
		return nil
	case len(files) == 0:
		return removeTree(dir)
	}
	if err := durable.MkdirAll(dir); err != nil {
		return err
	}
	wanted := map[string]string{}
	for _, f := range files {
		wanted[f.Name] = f.Content
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		if entries, err = makeReadable(dir, err); err != nil {
			return err
		}
	}
	same := map[string]bool{}
	for _, e := range entries {
		content, ok := wanted[e.Name()]
		same[e.Name()] = ok && e.Type().IsRegular() && holds(filepath.Join(dir, e.Name()), content)
	}
	return replace(dir, files, entries, same, alone)
}

// replace writes what differs, then removes what is left over if alone, so that at no moment a wanted file is missing.
func replace(dir string, files []File, entries []fs.DirEntry, same map[string]bool, alone bool) error {
	writable := false
	prepare := func() error {
		if writable {
			return nil
		}
		writable = true
		return makeWritable(dir)
	}
	kept := map[string]bool{}
	for _, f := range files {
		kept[f.Name] = true
		if same[f.Name] {
			continue
		}
		if err := prepare(); err != nil {
			return err
		}
		path := filepath.Join(dir, f.Name)
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			if err := removeTree(path); err != nil {
				return err
			}
		}
		if err := durable.Write(path, []byte(f.Content)); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if kept[e.Name()] || !alone {
			continue
		}
		if err := prepare(); err != nil {
			return err
		}
		if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// holds says whether the file has exactly this content. One that can't be read has not.
func holds(path, content string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Size() != int64(len(content)) {
		return false
	}
	data, err := os.ReadFile(path)
	return err == nil && string(data) == content
}

func makeReadable(dir string, cause error) ([]fs.DirEntry, error) {
	if err := makeWritable(dir); err != nil {
		return nil, cause
	}
	return os.ReadDir(dir)
}

// makeWritable gives the owner access to dir and keeps the rest of its mode.
func makeWritable(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o700 == 0o700 {
		return err
	}
	return os.Chmod(dir, info.Mode().Perm()|0o700)
}

// removeTree removes path and what is below it, also when directories in it were made read-only. Links are not followed.
func removeTree(path string) error {
	if err := os.RemoveAll(path); err == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(p, durable.DirMode)
		}
		return nil
	})
	return os.RemoveAll(path)
}
