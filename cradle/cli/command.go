package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"pi-cradle/internal/closest"
	"pi-cradle/internal/usererr"
	"pi-cradle/internal/version"
)

// command is one subcommand: what its help says, its options, and what it does.
type command struct {
	name        string
	summary     string // one line, for the list of commands
	about       string // the paragraph that opens its own help
	positionals []positional
	note        string // closes its own help
	flags       *pflag.FlagSet
	// run gets as many args as there were positionals on the command line, and what followed "--".
	run func(ctx context.Context, a *app, args, forwarded []string) (code int, err error)
}

type positional struct {
	name     string
	about    string
	required bool
	choices  []string // nil: anything
}

// execute parses args for c and runs it.
func (c *command) execute(ctx context.Context, a *app, args, forwarded []string) (int, error) {
	if err := parseFlags(c.flags, args); err != nil {
		return 0, err.Hint("see `cradle %s --help`", c.name)
	}
	switch {
	case isSet(c.flags, "help"):
		fmt.Fprint(a.stdout, c.help())
		return 0, nil
	case isSet(c.flags, "version"):
		fmt.Fprintln(a.stdout, version.Version)
		return 0, nil
	}
	rest := c.flags.Args()
	if err := c.checkPositionals(rest); err != nil {
		return 0, err.Hint("see `cradle %s --help`", c.name)
	}
	return c.run(ctx, a, rest, forwarded)
}

func (c *command) checkPositionals(args []string) *usererr.Error {
	if n := len(c.positionals); len(args) > n {
		return unknownArguments(args[n:], nil)
	}
	for i, p := range c.positionals {
		switch {
		case i >= len(args) && p.required:
			return usererr.New("Not enough non-option arguments: got %d, need at least %d", len(args), i+1)
		case i < len(args) && p.choices != nil && !slices.Contains(p.choices, args[i]):
			return invalidValue(p.name, args[i], p.choices)
		}
	}
	return nil
}

// newFlagSet makes a flag set with what every command understands.
func newFlagSet(name string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SortFlags = false
	fs.Usage = func() {}
	return fs
}

// addCommonFlags comes last, so that help lists a command's own options first.
func addCommonFlags(fs *pflag.FlagSet) {
	if fs.Lookup("help") != nil {
		return
	}
	fs.BoolP("help", "h", false, "show this help")
	fs.Bool("version", false, "print the version")
}

func isSet(fs *pflag.FlagSet, name string) bool {
	set, err := fs.GetBool(name)
	return err == nil && set
}

func parseFlags(fs *pflag.FlagSet, args []string) *usererr.Error {
	addCommonFlags(fs)
	err := fs.Parse(args)
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown):
		var names []string
		fs.VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		return unknownArguments([]string{unknown.GetSpecifiedName()}, names)
	case errors.As(err, &missing):
		if choices, ok := missing.GetFlag().Value.(*choice); ok {
			return invalidValue(missing.GetFlag().Name, "", choices.allowed)
		}
		return usererr.New("Not enough arguments following: %s", missing.GetSpecifiedName())
	case errors.As(err, &invalid):
		if choices, ok := invalid.GetFlag().Value.(*choice); ok {
			return invalidValue(invalid.GetFlag().Name, invalid.GetValue(), choices.allowed)
		}
		return usererr.New("invalid value %q for --%s", invalid.GetValue(), invalid.GetFlag().Name)
	default:
		return usererr.New("%w", err)
	}
}

// unknownArguments refuses words nobody asked for, and suggests known words that the first of them may be a slip of.
func unknownArguments(words, known []string) *usererr.Error {
	noun := "argument"
	if len(words) > 1 {
		noun = "arguments"
	}
	err := usererr.New("Unknown %s: %s", noun, strings.Join(words, ", "))
	if near := closest.Hint(words[0], known); near != "" {
		err.Hint("%s", near)
	}
	return err
}

func invalidValue(name, given string, choices []string) *usererr.Error {
	quoted := make([]string, len(choices))
	for i, c := range choices {
		quoted[i] = fmt.Sprintf("%q", c)
	}
	err := usererr.New("Invalid values:\n  Argument: %s, Given: %q, Choices: %s", name, given, strings.Join(quoted, ", "))
	if near := closest.Hint(given, choices); near != "" {
		err.Hint("%s", near)
	}
	return err
}

// choice is a string flag that takes one of a few words; the last one given wins.
type choice struct {
	allowed []string
	value   *string
}

func (c *choice) String() string { return *c.value }
func (c *choice) Type() string   { return strings.Join(c.allowed, "|") }
func (c *choice) Set(s string) error {
	if !slices.Contains(c.allowed, s) {
		return errors.New("not a choice")
	}
	*c.value = s
	return nil
}
