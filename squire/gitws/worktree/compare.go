package worktree

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// comparison tells which files of one checkout are in another as well. It looks at a bounded amount and takes the rest as
// different.
type comparison struct {
	from, to string
	files    int
	bytes    int64
}

// holds says whether path, a file, a symlink or a whole folder below to, is the same below from.
func (c *comparison) holds(path string) bool {
	if c.from == "" || c.from == c.to {
		return false
	}
	same := true
	err := filepath.WalkDir(filepath.Join(c.to, path), func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(c.to, file)
		if err != nil {
			return err
		}
		if same = c.same(entry, filepath.Join(c.from, rel), file); !same {
			return filepath.SkipAll
		}
		return nil
	})
	return err == nil && same
}

func (c *comparison) same(entry fs.DirEntry, from, to string) bool {
	if c.files++; c.files > maxIncluded {
		return false
	}
	info, err := os.Lstat(from)
	if err != nil || info.Mode().Type() != entry.Type() {
		return false
	}
	switch entry.Type() {
	case fs.ModeDir:
		return true
	case fs.ModeSymlink:
		a, err := os.Readlink(from)
		b, err2 := os.Readlink(to)
		return err == nil && err2 == nil && a == b
	case 0:
		ours, err := entry.Info()
		if err != nil || ours.Size() != info.Size() || c.bytes+info.Size() > maxIncludedBytes {
			return false
		}
		c.bytes += info.Size()
		return equal(from, to)
	}
	return false
}

func equal(a, b string) bool {
	x, err := os.Open(a)
	if err != nil {
		return false
	}
	defer x.Close()
	y, err := os.Open(b)
	if err != nil {
		return false
	}
	defer y.Close()
	left, right := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(x, left)
		m, err2 := io.ReadFull(y, right)
		if !bytes.Equal(left[:n], right[:m]) {
			return false
		}
		if err != nil || err2 != nil {
			return (err == io.EOF || err == io.ErrUnexpectedEOF) && (err2 == io.EOF || err2 == io.ErrUnexpectedEOF)
		}
	}
}
