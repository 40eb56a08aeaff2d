package watch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestDirTellsOfEveryArrival(t *testing.T) {
	dir := t.TempDir()
	calls := make(chan struct{}, 100)
	stop, err := Dir(dir, func() { calls <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	next := func(what string) {
		t.Helper()
		select {
		case <-calls:
		case <-time.After(20 * time.Second):
			t.Fatalf("no call for %s", what)
		}
	}
	next("the start")
	tmp := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(tmp, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	next("a rename into the folder")
	stop()
	stop()
}

func TestDirOfAMissingFolder(t *testing.T) {
	if _, err := Dir(filepath.Join(t.TempDir(), "none"), func() {}); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
}
