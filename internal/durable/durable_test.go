package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestWriteReplacesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	for _, v := range []string{"one", "two"} {
		if err := WriteJSON(path, v); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := ReadJSON(path, &got); err != nil || got != v {
			t.Fatalf("got %q, %v; want %q", got, err, v)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != FileMode {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
}

func TestFailureLeavesOldContentAndNoLitter(t *testing.T) {
	for _, step := range []string{"create", "write", "rename"} {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "r.json")
			if err := Write(path, []byte("old")); err != nil {
				t.Fatal(err)
			}
			testOnlyFault = func(s, _ string) error {
				if s == step {
					return syscall.ENOSPC
				}
				return nil
			}
			defer func() { testOnlyFault = nil }()
			if err := Write(path, []byte("new")); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("got %v, want ENOSPC", err)
			}
			data, _ := os.ReadFile(path)
			entries, _ := os.ReadDir(dir)
			if string(data) != "old" || len(entries) != 1 {
				t.Fatalf("content %q, %d entries", data, len(entries))
			}
		})
	}
}

func TestReadJSONTellsMissingFromCorrupt(t *testing.T) {
	dir := t.TempDir()
	var v any
	if err := ReadJSON(filepath.Join(dir, "none"), &v); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("missing: %v", err)
	}
	path := filepath.Join(dir, "bad")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if err := ReadJSON(path, &v); !errors.As(err, &corrupt) || corrupt.Path != path {
		t.Fatalf("corrupt: %v", err)
	}
	aside, err := SetAside(path)
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(aside); string(data) != "{" {
		t.Fatalf("set aside file holds %q", data)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("original still there: %v", err)
	}
}

func TestDeliver(t *testing.T) {
	for name, deliver := range map[string]func(tmp, path string, data []byte) error{"Deliver": Deliver, "Hand": Hand} {
		dir := t.TempDir()
		tmp, path := filepath.Join(dir, "tmp"), filepath.Join(dir, "new")
		for _, step := range []string{"create", "write", "rename"} {
			testOnlyFault = func(s, _ string) error {
				if s == step {
					return syscall.ENOSPC
				}
				return nil
			}
			err := deliver(tmp, path, []byte("x"))
			testOnlyFault = nil
			if entries, _ := os.ReadDir(dir); !errors.Is(err, syscall.ENOSPC) || len(entries) != 0 {
				t.Errorf("%s, failing to %s: %v, %d files left", name, step, err, len(entries))
			}
		}
		if err := deliver(tmp, path, []byte("x")); err != nil {
			t.Error(err)
		}
		info, err := os.Stat(path)
		if data, _ := os.ReadFile(path); err != nil || string(data) != "x" || info.Mode().Perm() != FileMode {
			t.Errorf("%s: %q, %v", name, data, err)
		}
		if _, err := os.Stat(tmp); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the temporary file is still there", name)
		}
		if err := os.WriteFile(tmp, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := deliver(tmp, path, nil); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s over a file that exists: %v", name, err)
		}
	}
}
