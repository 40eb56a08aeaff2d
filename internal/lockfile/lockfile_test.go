package lockfile

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestMain lets the test binary play the process that holds a lock until it is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv("LOCKFILE_TEST_HOLD"); path != "" {
		if _, err := TryLock(path, "holder"); err != nil {
			os.Exit(3)
		}
		os.Stdout.WriteString("held\n")
		select {}
	}
	os.Exit(m.Run())
}

func TestHeldByAnotherProcessAndFreeOnceItIsKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "x.lock")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LOCKFILE_TEST_HOLD="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("holder said %q", line)
	}
	var held *HeldError
	if _, err := TryLock(path, "me"); !errors.As(err, &held) || held.Holder.PID != cmd.Process.Pid || held.Holder.What != "holder" {
		t.Fatalf("got %v, want a HeldError naming process %d", err, cmd.Process.Pid)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	unlock, err := Lock(ctx, path, "me")
	_ = cmd.Wait()
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	unlock()
	if _, err := TryLock(path, "again"); err != nil {
		t.Fatal(err)
	}
}

func TestLockGivesUpWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	unlock, err := TryLock(path, "first")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var held *HeldError
	if _, err := Lock(ctx, path, "second"); !errors.As(err, &held) || held.Holder.What != "first" {
		t.Fatalf("got %v, want a HeldError that names the first holder", err)
	}
}

func TestShare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "x.use")
	share := func(wantAlone bool) (release func()) {
		t.Helper()
		release, alone, err := Share(path)
		if err != nil || alone != wantAlone {
			t.Fatalf("alone %v, %v", alone, err)
		}
		return release
	}
	first, second := share(true), share(false)
	first()
	first()
	third := share(false)
	second()
	third()
	unlock, err := TryLock(path, "me")
	if err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	if _, _, err := Share(path); !errors.As(err, &held) {
		t.Fatalf("got %v, want a HeldError", err)
	}
	unlock()
	share(true)()
}
