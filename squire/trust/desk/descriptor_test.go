package desk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestDescriptorThatOthersCouldHaveWritten(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"readable by others": func(path string) error { return os.Chmod(path, 0o644) },
		"writable by group":  func(path string) error { return os.Chmod(path, 0o620) },
		"open folder":        func(path string) error { return os.Chmod(filepath.Dir(path), 0o777) },
		"symlink": func(path string) error {
			return errors.Join(os.Rename(path, path+".x"), os.Symlink(path+".x", path))
		},
		"symlinked folder": func(path string) error {
			dir := filepath.Dir(path)
			return errors.Join(os.Rename(dir, dir+".x"), os.Symlink(dir+".x", dir))
		},
		"pipe":   func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) },
		"folder": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"empty":  func(path string) error { return os.Truncate(path, 0) },
		"future": func(path string) error {
			return descriptor{descriptorVersion + 1, 1, strings.Repeat("00", tokenSize)}.write(path)
		},
		"no port": func(path string) error {
			return descriptor{descriptorVersion, 0, strings.Repeat("00", tokenSize)}.write(path)
		},
		"short token": func(path string) error { return descriptor{descriptorVersion, 1, "00"}.write(path) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := open(t, patient)
			if err := spoil(descriptorPath(o.dir, "root")); err != nil {
				t.Fatal(err)
			}
			cannotAsk(t, o)
			none(t, "a question was shown", o.shown)
		})
	}
}

type ownedBy struct {
	fs.FileInfo
	uid uint32
}

func (o ownedBy) Sys() any { return &syscall.Stat_t{Uid: o.uid} }

func TestDescriptorOfAnotherUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := private(path, info, 0o077); err != nil {
		t.Error(err)
	}
	if err := private(path, ownedBy{info, uint32(os.Geteuid()) + 1}, 0o077); err == nil {
		t.Error("a file of another user was taken")
	}
}

// A root that can't keep its descriptor to itself does not serve.
func TestServeInAnOpenFolder(t *testing.T) {
	dir := Dir(t.TempDir())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if s, err := Serve(dir, "root", New(newUser().ask), t.Logf); err == nil {
		closed(t, s)
		t.Error("it serves")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}
