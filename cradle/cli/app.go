package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"pi-cradle/internal/printable"
	"pi-cradle/internal/usererr"
)

// app is what every subcommand works with: where to write, and the surroundings, read once.
type app struct {
	stdout, stderr     io.Writer
	stdoutTTY          bool
	stdoutWidth        int // in columns; 0 when it is no terminal
	stderrTTY, colours bool
	signals            *signals

	home     string // $HOME, else the account's
	cwd      string // the physical working directory, links resolved
	platform string // as runtime.GOOS has it
}

func newApp(stdout, stderr *os.File) *app {
	a := &app{
		stdout:    stdout,
		stderr:    stderr,
		stdoutTTY: term.IsTerminal(int(stdout.Fd())),
		stderrTTY: term.IsTerminal(int(stderr.Fd())),
		home:      homeDir(),
		platform:  runtime.GOOS,
	}
	if columns, _, err := term.GetSize(int(stdout.Fd())); a.stdoutTTY && err == nil {
		a.stdoutWidth = columns
	}
	a.colours = a.stderrTTY && os.Getenv("NO_COLOR") == ""
	return a
}

func homeDir() string {
	if home := os.Getenv("HOME"); home != "" {
		return home
	}
	if account, err := user.Current(); err == nil {
		return account.HomeDir
	}
	return "/"
}

// locate reads the working directory. It is apart from newApp because `--help` must work in a deleted directory too.
func (a *app) locate() error {
	// Not os.Getwd: that believes $PWD, and a sandbox grants the physical place.
	cwd, err := unix.Getwd()
	if err != nil {
		return usererr.New("the current directory can't be read: %w", err).Hint("change to a directory that exists")
	}
	a.cwd = cwd
	return nil
}

// warn prints one warning line.
func (a *app) warn(text string) { a.line("33", "warning: "+printable.Line(text)) }

// warnAll prints warnings in order.
func (a *app) warnAll(texts []string) {
	for _, text := range texts {
		a.warn(text)
	}
}

// fail prints err, each of several joined ones in turn, and returns the exit code.
func (a *app) fail(err error) int {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			a.failOne(e)
		}
	} else {
		a.failOne(err)
	}
	return usererr.ExitCode(err)
}

// failOne prints one line for an error, its further lines indented, and then its hints.
func (a *app) failOne(err error) {
	lines := strings.Split(strings.TrimRight(err.Error(), "\n"), "\n")
	a.line("31", printable.Line(lines[0]))
	for _, line := range lines[1:] {
		fmt.Fprintln(a.stderr, "  "+printable.Line(strings.TrimLeft(line, " \t")))
	}
	var user *usererr.Error
	if errors.As(err, &user) {
		for _, hint := range user.Hints {
			fmt.Fprintln(a.stderr, "hint: "+printable.Line(hint))
		}
	}
}

// progress tells a person at a terminal what takes time; logs and pipes stay clean.
func (a *app) progress(format string, args ...any) {
	if a.stderrTTY {
		fmt.Fprintln(a.stderr, printable.Line(fmt.Sprintf(format, args...)))
	}
}

// printJSON prints v for a program to read.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (a *app) line(colour, text string) {
	if a.colours {
		text = "\x1b[" + colour + "m" + text + "\x1b[0m"
	}
	fmt.Fprintln(a.stderr, text)
}
