package run

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func sh(script string) Cmd { return Cmd{Path: "/bin/sh", Args: []string{"-c", script}} }

func TestOutput(t *testing.T) {
	ctx := context.Background()
	res, err := Output(ctx, sh("echo out; echo err >&2"))
	if err != nil || string(res.Stdout) != "out\n" || string(res.Stderr) != "err\n" {
		t.Fatalf("%+v, %v", res, err)
	}
	var exit *ExitError
	if _, err := Output(ctx, sh("echo why >&2; exit 3")); !errors.As(err, &exit) || exit.Result.Code != 3 || !strings.Contains(err.Error(), "why") {
		t.Fatalf("exit 3: %v", err)
	}
	if _, err := Output(ctx, sh("kill -TERM $$")); !errors.As(err, &exit) || exit.Result.Signal != syscall.SIGTERM {
		t.Fatalf("signal: %v", err)
	}
	if _, err := Output(ctx, Cmd{Path: "/no/such/program"}); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("missing: %v", err)
	}
	if _, err := Output(ctx, Cmd{Path: "no-such-program-on-path"}); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("missing on PATH: %v", err)
	}
}

func TestOutputKillsTheWholeGroupAtTheDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	res, err := Output(ctx, sh("trap '' TERM HUP; sleep 1000 & echo $!; wait"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if strings.TrimSpace(string(res.Stdout)) == "" {
		t.Fatal("no pid printed")
	}
}

func TestOutputLimitCountsBothStreams(t *testing.T) {
	c := sh("printf 12345; printf 67890 >&2; sleep 1000")
	c.Limit = 8
	res, err := Output(context.Background(), c)
	if !errors.Is(err, ErrOutputLimit) || len(res.Stdout)+len(res.Stderr) != 8 {
		t.Fatalf("%d bytes, %v", len(res.Stdout)+len(res.Stderr), err)
	}
}

func TestOutputTeesAndLeavesGrandchildrenAlone(t *testing.T) {
	var tee bytes.Buffer
	c := sh("echo out; echo err >&2; sleep 1000 & echo $!")
	c.Tee, c.Wait = &tee, 50*time.Millisecond
	res, err := Output(context.Background(), c)
	if err != nil || res.Code != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(string(res.Stdout), "out\n")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("the grandchild is gone: %v", err)
	}
	for _, word := range []string{"out\n", "err\n"} {
		if !strings.Contains(tee.String(), word) {
			t.Errorf("the copy lacks %q: %q", word, tee.String())
		}
	}
}

func TestAttached(t *testing.T) {
	var exit *ExitError
	if _, err := Attached(context.Background(), sh("read x && exit 9; exit 4")); !errors.As(err, &exit) || exit.Result.Code != 4 {
		t.Fatalf("no input, exit 4: %v", err)
	}
	cause := errors.New("told to stop")
	ctx, cancel := context.WithCancelCause(context.Background())
	pipe := t.TempDir() + "/pipe"
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = os.ReadFile(pipe) // returns once the child runs
		cancel(cause)
	}()
	child := sh("trap 'exit 0' TERM; echo >\"$1\"; while :; do sleep 0.05; done")
	child.Args = append(child.Args, "sh", pipe)
	if _, err := Attached(ctx, child); !errors.Is(err, cause) {
		t.Fatalf("told to stop: %v", err)
	}
}
