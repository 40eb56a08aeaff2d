package rpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/sourcegraph/jsonrpc2"

	"pi-cradle/internal/bug"
	"pi-cradle/rpc/wire"
)

// stream is the jsonrpc2.ObjectStream of this wire: one JSON object per line, split at byte 0x0A and nowhere else.
//
// Nothing a peer writes ends the session: a line that is no message is logged and skipped, and one that is too long is answered
// with an error under its own id. Only the end of the stream does.
type stream struct {
	rwc io.ReadWriteCloser
	in  *bufio.Reader
	out *outbox
	log *boundedLog

	// ready is closed once the connection around the stream is complete; reading before that would run into half of one.
	ready chan struct{}

	line []byte // the current line, reused

	// params belongs to the request that ReadObject returned last. They go around jsonrpc2, which would decode and encode them
	// anew. Only the reader touches them: jsonrpc2 calls the handler on the reader's goroutine before it reads on.
	params json.RawMessage
}

func newStream(rwc io.ReadWriteCloser, log *boundedLog) *stream {
	return &stream{
		rwc:   rwc,
		in:    bufio.NewReaderSize(rwc, 64<<10),
		out:   newOutbox(rwc),
		log:   log,
		ready: make(chan struct{}),
	}
}

// frame is a message as it lies on the line, checked far enough that jsonrpc2 can't stumble over it.
type frame struct {
	ID     *jsonrpc2.ID    `json:"id"`
	Method *string         `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *jsonrpc2.Error `json:"error"`
}

var (
	errNotObject   = errors.New("not a JSON object")
	errNotMessage  = errors.New("neither a request nor a response")
	errLineTooLong = errors.New("line too long")
)

func parseFrame(line []byte) (frame, error) {
	var f frame
	if trimmed := bytes.TrimLeft(line, " \t\r"); len(trimmed) == 0 || trimmed[0] != '{' {
		return f, errNotObject
	}
	if err := json.Unmarshal(line, &f); err != nil {
		return f, err
	}
	isResponse := f.Result != nil || f.Error != nil
	switch {
	case f.ID != nil && f.ID.Num > math.MaxInt64:
		return f, fmt.Errorf("id %s is out of range", f.ID)
	case f.Method != nil && (*f.Method == "" || isResponse), f.Method == nil && (f.ID == nil || !isResponse):
		return f, errNotMessage
	}
	return f, nil
}

// envelope is the frame in jsonrpc2's own terms, without params.
func (f *frame) envelope() any {
	switch {
	case f.Method != nil && f.ID != nil:
		return jsonrpc2.Request{ID: *f.ID, Method: *f.Method}
	case f.Method != nil:
		return jsonrpc2.Request{Method: *f.Method, Notif: true}
	case f.Error != nil:
		return jsonrpc2.Response{ID: *f.ID, Error: f.Error}
	default:
		return jsonrpc2.Response{ID: *f.ID, Result: &f.Result}
	}
}

// ReadObject gives the next message to jsonrpc2. Its error is always the end of the stream; half a line before it is dropped.
func (s *stream) ReadObject(v any) error {
	<-s.ready
	for {
		size, err := s.readLine()
		var f frame
		switch {
		case errors.Is(err, errLineTooLong):
			var ok bool
			if f, ok = s.tooLong(size); !ok {
				continue
			}
		case err != nil:
			return err
		case len(bytes.TrimSpace(s.line)) == 0:
			continue
		default:
			if f, err = parseFrame(s.line); err != nil {
				s.log.Printf("skipped a line of %d bytes that is no message (%v): %.200q", size, err, s.line)
				continue
			}
		}
		if len(f.Params) > 0 && string(f.Params) != "null" {
			s.params = f.Params
		} else {
			s.params = json.RawMessage("{}")
		}
		envelope, err := json.Marshal(f.envelope())
		if err == nil {
			err = json.Unmarshal(envelope, v)
		}
		if err == nil {
			return nil
		}
		bug.Reportf("a checked message can't be read: %v: %.200q", err, s.line)
	}
}

// readLine fills s.line with the next line without its newline and returns its length. Of a line over the limit it keeps the
// beginning only, reads to its end, and returns errLineTooLong.
func (s *stream) readLine() (size int, err error) {
	if cap(s.line) > 1<<20 {
		s.line = nil // one large message must not hold its memory for good
	}
	s.line = s.line[:0]
	for {
		part, err := s.in.ReadSlice('\n')
		size += len(part)
		if room := wire.MaxFrame + 1 - len(s.line); room > 0 {
			s.line = append(s.line, part[:min(room, len(part))]...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return size, err
		}
		size--
		if size > wire.MaxFrame {
			return size, errLineTooLong
		}
		s.line = s.line[:size]
		return size, nil
	}
}

// tooLong deals with a line of size bytes of which s.line is the beginning. A request is refused under its id; for a response it
// returns an error response, so that the call that waits for it ends.
func (s *stream) tooLong(size int) (frame, bool) {
	tooLarge := errTooLarge(size)
	id, isRequest, ok := scanHead(s.line)
	if !ok {
		s.log.Printf("skipped a line of %d bytes, which is over the limit of %d: %.200q", size, wire.MaxFrame, s.line)
		return frame{}, false
	}
	if isRequest {
		if err := s.WriteObject(jsonrpc2.Response{ID: id, Error: toWire(tooLarge)}); err != nil {
			s.log.Printf("request %s: %v", id, err)
		}
		return frame{}, false
	}
	return frame{ID: &id, Error: toWire(tooLarge)}, true
}

// scanHead finds the id in the beginning of a message, and whether it is a request. Both sides write the id and the method
// before anything large.
func scanHead(head []byte) (id jsonrpc2.ID, isRequest, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(head[:min(len(head), 64<<10)]))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return id, false, false
	}
	var haveID bool
	for {
		key, err := decoder.Token()
		if err != nil {
			return id, false, false
		}
		var target any = new(json.RawMessage)
		switch key {
		case "id":
			target = &id
			haveID = true
		case "method":
			isRequest = true
		case "params", "result", "error":
			return id, isRequest || key == "params", haveID
		}
		if err := decoder.Decode(target); err != nil {
			return id, false, false
		}
	}
}

// WriteObject queues a message. It never blocks on the peer, so a peer that doesn't read can't stop the reader from answering.
// A message over the limit is an error of its own and sends nothing.
func (s *stream) WriteObject(obj any) error {
	data, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	if len(data) > wire.MaxFrame {
		return errTooLarge(len(data))
	}
	return s.out.put(append(data, '\n'))
}

func (s *stream) Close() error {
	s.out.close(ErrClosed)
	return s.rwc.Close()
}
