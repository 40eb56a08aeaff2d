package launch

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"pi-cradle/internal/run"
)

const (
	screenLines = 20
	screenBytes = 4 << 10
	tmuxLimit   = time.Second // for each question to tmux: the end of a session waits for it
)

// pane is the launcher's own. The zero value is no pane, and does nothing.
type pane struct{ tmux, socket, id string }

func paneOf(getenv func(string) string, tmux string) pane {
	// "<socket>,<server pid>,<session>": the socket's path may hold commas.
	socket := getenv("TMUX")
	for range 2 {
		i := strings.LastIndexByte(socket, ',')
		if i < 0 {
			return pane{}
		}
		socket = socket[:i]
	}
	if tmux == "" {
		tmux = "tmux"
	}
	return pane{tmux, socket, getenv("TMUX_PANE")}
}

func (p pane) ask(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), tmuxLimit)
	defer cancel()
	res, err := run.Output(ctx, run.Cmd{Path: p.tmux, Args: append([]string{"-u", "-S", p.socket}, args...), Dir: "/"})
	return string(res.Stdout), err
}

func (p pane) closeOnExit() {
	if p.id != "" {
		_, _ = p.ask("set-option", "-p", "-t", p.id, "remain-on-exit", "off")
	}
}

// lastLines reads the pane's last lines. tmux may not yet have read what pi wrote last, so it asks until two answers agree.
func (p pane) lastLines() []string {
	if p.id == "" {
		return nil
	}
	var last string
	for i := range 6 {
		text, err := p.ask("capture-pane", "-p", "-J", "-S", "-50", "-t", p.id)
		if err != nil {
			return clean(last)
		}
		if i > 0 && text == last {
			break
		}
		last = text
		time.Sleep(5 * time.Millisecond)
	}
	return clean(last)
}

// clean takes the last lines of text that hold anything, without control characters or broken UTF-8, within the limits.
func clean(text string) []string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRightFunc(strings.Map(printable, line), unicode.IsSpace)
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	lines = lines[max(0, len(lines)-screenLines):]
	budget := screenBytes
	for i, line := range slices.Backward(lines) {
		if len(line) > budget {
			if i == len(lines)-1 {
				return []string{cut(line, budget)}
			}
			lines = lines[i+1:]
			break
		}
		budget -= len(line) + 1
	}
	for len(lines) > 0 && lines[0] == "" {
		lines = lines[1:]
	}
	return lines
}

func printable(r rune) rune {
	if r == '\t' {
		return ' '
	}
	if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
		return -1
	}
	return r
}

// cut keeps the end of a line, where an error's reason stands, on a character's boundary.
func cut(line string, size int) string {
	line = line[len(line)-size:]
	for line != "" && !utf8.RuneStart(line[0]) {
		line = line[1:]
	}
	return line
}
