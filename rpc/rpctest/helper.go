package rpctest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// helper is one life of the other side: a process, or a function in this one.
type helper struct {
	stream io.ReadWriteCloser
	kill   func()                // SIGKILL, or the nearest thing
	signal func(os.Signal) error // nil for a function
	gone   chan struct{}         // closed when it has ended; how and stderr are set by then
	how    string                // "" for exit code 0
	stderr *tail
}

// tail keeps the last part of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const maxTail = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if extra := len(t.text) - maxTail; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}

// startProcess runs the helper as the extension does: in a session of its own, with pipes for all three streams.
func startProcess(o Options) (*helper, error) {
	path, args := o.Path, o.Args
	if path == "" {
		path = os.Args[0]
	}
	if args == nil {
		args = []string{"serve"}
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = o.Dir, o.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = 2 * time.Second // for a grandchild that holds stderr
	h := &helper{gone: make(chan struct{}), stderr: &tail{}, signal: func(s os.Signal) error { return cmd.Process.Signal(s) }}
	cmd.Stderr = h.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not StdoutPipe: Wait would close that while what the helper said last is still to be read.
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = childOut
	err = cmd.Start()
	_ = childOut.Close()
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	h.stream = &pipes{out, in}
	h.kill = func() { _ = cmd.Process.Kill() }
	go func() {
		if err := cmd.Wait(); err != nil {
			h.how = err.Error()
		}
		close(h.gone)
	}()
	return h, nil
}

type pipes struct {
	io.ReadCloser
	in io.WriteCloser
}

func (p *pipes) Write(b []byte) (int, error) { return p.in.Write(b) }

// Close ends both directions. Only the first error counts; closing twice is none.
func (p *pipes) Close() error {
	err := errors.Join(p.in.Close(), p.ReadCloser.Close())
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// startFunction runs serve on the far end of a pipe until it returns. Killing it ends its stream, which is all that can be done to
// a function.
func startFunction(serve func(io.ReadWriteCloser)) *helper {
	near, far := net.Pipe()
	h := &helper{stream: near, gone: make(chan struct{}), stderr: &tail{}}
	h.kill = func() { _ = near.Close() }
	go func() {
		defer close(h.gone)
		defer far.Close()
		serve(far)
	}()
	return h
}

// end waits until the helper has ended by itself after its input has; one that does not is made to say where it hangs, and killed.
func (h *helper) end(limit time.Duration) error {
	select {
	case <-h.gone:
	case <-time.After(limit):
		if h.signal != nil {
			_ = h.signal(syscall.SIGQUIT)
			select {
			case <-h.gone:
			case <-time.After(time.Second):
			}
		}
		h.kill()
		return fmt.Errorf("the helper did not end within %v after its input had ended; it wrote:\n%s", limit, h.stderr)
	}
	if h.how != "" {
		return fmt.Errorf("the helper ended with %s after its input had ended; it wrote:\n%s", h.how, h.stderr)
	}
	return nil
}
