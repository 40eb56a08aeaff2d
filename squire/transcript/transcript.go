// Package transcript reads what is needed of another session's file without reading the file: from its end, in pieces, and no
// further than a bound, however long the session has become.
package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
)

// chunk is how much is read at first, each further piece is twice the last up to maxChunk, and bound is how much of the end is
// looked at in all. All in bytes.
const (
	chunk    = 64 << 10
	maxChunk = 1 << 20
	bound    = 8 << 20
)

// LastModel gives the model, as provider/id, of the last answer in a session file. It is "" when the end of the file holds no
// answer; a last line that is still being written is passed over. The error is fs.ErrNotExist for a missing file.
func LastModel(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	model := ""
	err = backwards(f, info.Size(), func(line []byte) bool {
		model = answeredBy(line)
		return model == ""
	})
	return model, err
}

// answeredBy reads one line as an assistant message.
func answeredBy(line []byte) string {
	if !bytes.Contains(line, []byte(`"assistant"`)) {
		return ""
	}
	var entry struct {
		Type    string `json:"type"`
		Message struct {
			Role     string `json:"role"`
			Provider string `json:"provider"`
			Model    string `json:"model"`
		} `json:"message"`
	}
	if json.Unmarshal(line, &entry) != nil || entry.Type != "message" || entry.Message.Role != "assistant" || entry.Message.Model == "" {
		return ""
	}
	return entry.Message.Provider + "/" + entry.Message.Model
}

// backwards hands out the lines of the last bound bytes, the last one first, until more says no. What stands behind the last
// line break is no line yet.
func backwards(f io.ReaderAt, size int64, more func(line []byte) bool) error {
	var tail []byte // read, and not yet handed out
	complete := false
	step := int64(chunk)
	for end := size; end > 0 && size-end < bound; step = min(2*step, maxChunk) {
		start := max(0, end-step)
		piece := make([]byte, end-start, int(end-start)+len(tail))
		if _, err := f.ReadAt(piece, start); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		tail, end = append(piece, tail...), start
		for {
			i := bytes.LastIndexByte(tail, '\n')
			if i < 0 {
				break
			}
			line := tail[i+1:]
			tail = tail[:i]
			if complete && len(line) > 0 && !more(line) {
				return nil
			}
			complete = true
		}
		if start == 0 && complete && len(tail) > 0 {
			more(tail)
		}
	}
	return nil
}
