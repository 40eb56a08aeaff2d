package rpctest

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Record is one line that crossed the wire, or a thing that happened to the helper.
type Record struct {
	At   time.Duration // since the fake pi was made
	From string        // "pi", "helper", or "" for an event
	Text string        // the line, or its beginning
}

// maxRecorded is how much of a line is kept, and maxTranscript how many lines.
const (
	maxRecorded   = 4096
	maxTranscript = 5000
)

type recorder struct {
	start time.Time

	mu      sync.Mutex
	records []Record
	dropped int
}

func (r *recorder) add(from, text string) {
	if len(text) > maxRecorded {
		cut := maxRecorded
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = fmt.Sprintf("%s … (%d bytes)", text[:cut], len(text))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.records) == maxTranscript {
		r.records = r.records[1:]
		r.dropped++
	}
	r.records = append(r.records, Record{time.Since(r.start), from, text})
}

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	if r.dropped > 0 {
		fmt.Fprintf(&b, "(%d earlier lines)\n", r.dropped)
	}
	for _, rec := range r.records {
		arrow := map[string]string{"pi": "-->", "helper": "<--", "": "***"}[rec.From]
		fmt.Fprintf(&b, "%9.3fs %s %s\n", rec.At.Seconds(), arrow, rec.Text)
	}
	return b.String()
}

// splitter turns a stream into calls of line, one for each line without its newline.
type splitter struct {
	line func(text string)
	rest []byte
}

func (s *splitter) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	for {
		line, rest, found := bytes.Cut(s.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		s.line(string(line))
		s.rest = append(s.rest[:0], rest...)
	}
}

// tap is the stream to the helper, seen by the recorder, with a valve in what comes from it.
type tap struct {
	io.ReadWriteCloser
	in, out *splitter
	gate    gate

	writing sync.Mutex // keeps the connection's frames and what a test writes by hand apart
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Read(p)
	t.gate.pass()
	_, _ = t.in.Write(p[:n])
	return n, err
}

func (t *tap) Write(p []byte) (int, error) {
	t.writing.Lock()
	defer t.writing.Unlock()
	_, _ = t.out.Write(p)
	return t.ReadWriteCloser.Write(p)
}

func (t *tap) Close() error {
	t.gate.open()
	return t.ReadWriteCloser.Close()
}

// gate is open unless shut.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed again when it opens; nil while it is open
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

func (g *gate) pass() {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
}
