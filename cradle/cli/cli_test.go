package cli

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pi-cradle/cradle/state"
	"pi-cradle/internal/lockfile"
	"pi-cradle/internal/usererr"
)

func TestHelpFitsEightyColumns(t *testing.T) {
	texts := []string{topHelp(newFlagSet("cradle"))}
	for _, c := range commands() {
		addCommonFlags(c.flags)
		texts = append(texts, c.help())
		if !strings.Contains(texts[0], "cradle "+c.synopsis()) {
			t.Errorf("the list of commands lacks %q", c.synopsis())
		}
	}
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
}

// outputs gives what print writes to the two streams of an app that is not at a terminal.
func outputs(t *testing.T, print func(*app)) string {
	t.Helper()
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	print(newApp(f, f))
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestErrorsAreOneLineEachAndTheirHints(t *testing.T) {
	got := outputs(t, func(a *app) {
		err := errors.Join(usererr.New("first\n  more\n\tand more\n").Hint("do this").Hint("or that"), errors.New("second"))
		if code := a.fail(err); code != 1 {
			t.Errorf("exit code %d", code)
		}
		if code := a.fail(usererr.New("third").Exit(4)); code != 4 {
			t.Errorf("exit code %d", code)
		}
		a.warn("careful\nnow")
		a.progress("nobody sees this in a file")
	})
	const want = "first\n  more\n  and more\nhint: do this\nhint: or that\nsecond\nthird\nwarning: careful\\nnow\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestASetupThatNeverEnds(t *testing.T) {
	dir := state.ForFolder("/a/hello", "/nowhere", t.TempDir())
	unlock, err := dir.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = new(app).lockState(ctx, dir)
	var user *usererr.Error
	var held *lockfile.HeldError
	if !errors.As(err, &user) || !errors.As(err, &held) || held.Holder.PID != os.Getpid() || len(user.Hints) != 1 || !strings.Contains(user.Message, strconv.Itoa(os.Getpid())) {
		t.Errorf("got %v", err)
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	got := outputs(t, func(a *app) {
		a.colours = true
		a.warn("w")
		a.fail(usererr.New("e").Hint("h"))
	})
	if want := "\x1b[33mwarning: w\x1b[0m\n\x1b[31me\x1b[0m\nhint: h\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Whatever the command line, it is taken or refused with one clear line, and what follows "--" arrives as it was.
func FuzzRunCommandLine(f *testing.F) {
	f.Add("--sandbox\x00dir\x00--allow-host\x00x\x00--\x00--help\x00--")
	f.Add("--sandbox-backend\x00nono\x00--no-sandbox=false")
	f.Add("-\x00-=\x00--=\x00---\x00--dry-run=\x00-h1")
	f.Fuzz(func(t *testing.T, joined string) {
		args := strings.Split(joined, "\x00")
		own, forwarded := splitAtDashes(args)
		if i := slices.Index(args, "--"); i >= 0 {
			if !slices.Equal(own, args[:i]) || !slices.Equal(forwarded, args[i+1:]) {
				t.Fatalf("%q: %q, %q", args, own, forwarded)
			}
		} else if !slices.Equal(own, args) || forwarded != nil {
			t.Fatalf("%q: %q, %q", args, own, forwarded)
		}
		c := newRunCommand()
		if err := parseFlags(c.flags, own); err != nil {
			var user *usererr.Error
			if !errors.As(err, &user) || user.Message == "" {
				t.Fatalf("%q: %v", own, err)
			}
			return
		}
		if err := c.checkPositionals(c.flags.Args()); err == nil && len(c.flags.Args()) > 1 {
			t.Fatalf("%q: several folders", own)
		}
	})
}
