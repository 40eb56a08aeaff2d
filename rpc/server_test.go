package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"pi-cradle/internal/usererr"
	"pi-cradle/rpc/wire"
)

// deadline is for what must happen; nothing waits for it unless it fails.
const deadline = 60 * time.Second

const serverEnv = "RPC_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverEnv) != "" {
		log.SetFlags(0)
		os.Exit(serveStdio())
	}
	os.Exit(m.Run())
}

func serveStdio() int {
	server := newServer()
	conn := NewConn(Stdio(), server.mux, log.Printf)
	conn.report = log.Printf
	server.conn.Store(conn)
	fmt.Println("this went to stdout once") // Stdio has pointed it elsewhere: a frame it is not
	<-conn.Done()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if err := conn.Close(ctx); err != nil {
		log.Print(err)
		return 3
	}
	log.Printf("closed; cancelled handlers: %d; recorded: %s", server.cancelled(), strings.Join(server.recorded(), " "))
	return 0
}

// server is the side under test. What it does is told through its methods, so that it may be another process.
type server struct {
	mux  *Mux
	conn onceConn

	mu      sync.Mutex
	events  []string
	ended   int
	release chan struct{}
}

type onceConn struct {
	set  chan struct{}
	conn *Conn
}

func (o *onceConn) Store(c *Conn) { o.conn = c; close(o.set) }
func (o *onceConn) Load() *Conn   { <-o.set; return o.conn }

type textParams struct {
	Text string `json:"text"`
}

type listResult struct {
	List []string `json:"list"`
}

func newServer() *server {
	s := &server{mux: NewMux(), release: make(chan struct{}, 100)}
	s.conn.set = make(chan struct{})
	s.mux.RequireInitialize("/the/binary")
	note := func(_ context.Context, p textParams) (wire.Empty, error) { s.note(p.Text); return wire.Empty{}, nil }
	Ordered(s.mux, "note", note)
	Notification(s.mux, "tell", func(ctx context.Context, p textParams) { note(ctx, p) })
	Ordered(s.mux, "block", s.block)
	Concurrent(s.mux, "wait", s.block)
	Concurrent(s.mux, "release", func(context.Context, wire.Empty) (wire.Empty, error) {
		s.release <- struct{}{}
		return wire.Empty{}, nil
	})
	Concurrent(s.mux, "deaf", func(ctx context.Context, p textParams) (textParams, error) {
		s.note(p.Text)
		<-ctx.Done()
		return textParams{"finished nevertheless"}, nil
	})
	Concurrent(s.mux, "echo", func(_ context.Context, p textParams) (textParams, error) { return p, nil })
	Concurrent(s.mux, "recorded", func(context.Context, wire.Empty) (listResult, error) {
		return listResult{s.recorded()}, nil
	})
	Concurrent(s.mux, "back", func(ctx context.Context, p textParams) (textParams, error) {
		var result textParams
		err := s.conn.Load().Call(ctx, "host.echo", p, &result)
		return result, err
	})
	Concurrent(s.mux, "back then", func(ctx context.Context, p textParams) (textParams, error) {
		var result textParams
		var failed error
		s.conn.Load().CallThen(ctx, "host.answer then tell", p, &result, func(err error) {
			s.note("answered " + result.Text)
			failed = err
		})
		return result, failed
	})
	Concurrent(s.mux, "size", func(_ context.Context, p struct{ Size int }) (textParams, error) {
		return textParams{strings.Repeat("x", p.Size)}, nil
	})
	Concurrent(s.mux, "refuse", func(context.Context, wire.Empty) (wire.Empty, error) {
		return wire.Empty{}, fmt.Errorf("delegate: %w", usererr.New("no agent %q", "scuot").Hint("did you mean %q?", "scout"))
	})
	Concurrent(s.mux, "fail", func(context.Context, wire.Empty) (wire.Empty, error) {
		return wire.Empty{}, fmt.Errorf("outer: %w", Errorf(wire.CodeNoSession, "no session"))
	})
	Concurrent(s.mux, "plain", func(context.Context, wire.Empty) (wire.Empty, error) {
		return wire.Empty{}, errors.New("plain")
	})
	Ordered(s.mux, "panic", func(context.Context, wire.Empty) (wire.Empty, error) { panic("oh") })
	return s
}

// block says that it runs, then waits for a release or for the end of its context.
func (s *server) block(ctx context.Context, p textParams) (wire.Empty, error) {
	s.note(p.Text)
	select {
	case <-s.release:
		return wire.Empty{}, nil
	case <-ctx.Done():
		s.mu.Lock()
		s.ended++
		s.mu.Unlock()
		s.note(p.Text + "-ended")
		return wire.Empty{}, ctx.Err()
	}
}

func (s *server) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, text)
}

func (s *server) recorded() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.events...)
}

func (s *server) cancelled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// link is the client's end of a server, and how the server came to its end.
type link struct {
	io.ReadWriteCloser
	wait func() string // waits for the server's end and gives what it logged
}

// eachMode runs a test against a server in this process and against one in a process of its own.
func eachMode(t *testing.T, test func(t *testing.T, start func(t *testing.T) link)) {
	t.Run("pipes", func(t *testing.T) { t.Parallel(); test(t, startInProcess) })
	t.Run("process", func(t *testing.T) { t.Parallel(); test(t, startProcess) })
}

type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Printf(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(b, format+"\n", args...)
}

func startInProcess(t *testing.T) link {
	near, far := net.Pipe()
	server, logged := newServer(), &syncBuffer{}
	conn := NewConn(far, server.mux, logged.Printf)
	conn.report = logged.Printf
	server.conn.Store(conn)
	wait := sync.OnceValue(func() string {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		select {
		case <-conn.Done():
		case <-ctx.Done():
			t.Error("the server did not see the end of its stream")
		}
		if err := conn.Close(ctx); err != nil {
			t.Error(err)
		}
		logged.Printf("closed; cancelled handlers: %d; recorded: %s", server.cancelled(), strings.Join(server.recorded(), " "))
		logged.mu.Lock()
		defer logged.mu.Unlock()
		return logged.String()
	})
	t.Cleanup(func() { near.Close(); wait() })
	return link{near, wait}
}

func startProcess(t *testing.T) link {
	ctx, cancel := context.WithTimeout(context.Background(), 2*deadline)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), serverEnv+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wait := sync.OnceValue(func() string {
		defer cancel()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v:\n%s", err, stderr.String())
		}
		return stderr.String()
	})
	pipes := &duplex{out, in}
	t.Cleanup(func() { pipes.Close(); wait() })
	return link{pipes, wait}
}

type duplex struct {
	io.ReadCloser
	w io.WriteCloser
}

func (d *duplex) Write(p []byte) (int, error) { return d.w.Write(p) }
func (d *duplex) Close() error                { return errors.Join(d.w.Close(), d.ReadCloser.Close()) }

// dial is a proper client of a server, past the handshake.
func dial(t *testing.T, to link) *Conn {
	t.Helper()
	mux := NewMux()
	Concurrent(mux, "host.echo", func(_ context.Context, p textParams) (textParams, error) { return p, nil })
	conn := NewConn(to, mux, t.Logf)
	t.Cleanup(func() { conn.Close(context.Background()) })
	if _, err := conn.Initialize(within(t)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	t.Cleanup(cancel)
	return ctx
}

func echo(t *testing.T, conn *Conn, text string) {
	t.Helper()
	var got textParams
	if err := conn.Call(within(t), "echo", textParams{text}, &got); err != nil {
		t.Fatalf("echo of %d bytes: %v", len(text), err)
	}
	if got.Text != text {
		t.Fatalf("echo changed %.100q into %.100q", text, got.Text)
	}
}

// awaitRecorded polls the server until it has recorded text, through calls and without sleeping.
func awaitRecorded(t *testing.T, conn *Conn, text string) {
	t.Helper()
	ctx := within(t)
	for {
		var got listResult
		if err := conn.Call(ctx, "recorded", wire.Empty{}, &got); err != nil {
			t.Fatalf("waiting for %q: %v", text, err)
		}
		for _, have := range got.List {
			if have == text {
				return
			}
		}
	}
}

// raw is a client that writes what it likes.
type raw struct {
	t *testing.T
	link
	lines *bufio.Reader
}

func dialRaw(t *testing.T, to link) *raw {
	r := &raw{t, to, bufio.NewReaderSize(to, 1<<20)}
	r.send(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"version":"` + testVersion + `"}}`)
	r.want(`{"id":"hello","result":{"version":"` + testVersion + `","binary":"/the/binary"},"jsonrpc":"2.0"}`)
	return r
}

func (r *raw) send(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r, line+"\n"); err != nil {
		r.t.Fatalf("write: %v", err)
	}
}

func (r *raw) receive() string {
	r.t.Helper()
	timer := time.AfterFunc(deadline, func() { r.Close() }) // turns a hang into an error below
	defer timer.Stop()
	line, err := r.lines.ReadString('\n')
	if err != nil {
		r.t.Fatalf("read: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (r *raw) want(line string) {
	r.t.Helper()
	if got := r.receive(); got != line {
		r.t.Fatalf("got  %.300s\nwant %.300s", got, line)
	}
}

// awaitRecorded is for raw clients what the function is for proper ones.
func (r *raw) awaitRecorded(text string) {
	r.t.Helper()
	for limit := within(r.t); limit.Err() == nil; {
		r.send(`{"jsonrpc":"2.0","id":"recorded","method":"recorded"}`)
		if strings.Contains(r.receive(), `"`+text+`"`) {
			return
		}
	}
	r.t.Fatalf("%q never happened", text)
}

// code receives an error answer for id and gives its code.
func (r *raw) code(id string) int64 {
	r.t.Helper()
	var answer struct {
		ID    json.RawMessage
		Error *struct{ Code int64 }
	}
	line := r.receive()
	if err := json.Unmarshal([]byte(line), &answer); err != nil {
		r.t.Fatal(err)
	}
	if string(answer.ID) != id || answer.Error == nil {
		r.t.Fatalf("got %.300s, want an error for %s", line, id)
	}
	return answer.Error.Code
}
