// Package cli is cradle's command line: it parses arguments, asks the pure packages for a plan, carries the plan out, and is
// the one place that turns warnings and errors into text and an exit code.
//
// Every subcommand is one file with the same four parts: the constructor of its command, its options, the registration of its
// flags, and the function that runs it.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"pi-cradle/internal/version"
)

// commands lists the subcommands in the order of the help. A new one joins here and nowhere else.
func commands() []*command {
	return []*command{newRunCommand(), newScheduleCommand(), newDoctorCommand()}
}

// Run is the whole program without the exit: it carries out args, which exclude the program's name, and returns the exit code.
func Run(args []string, stdout, stderr *os.File) int {
	a := newApp(stdout, stderr)
	ctx, signals, stop := watchSignals(context.Background())
	defer stop()
	a.signals = signals
	code, err := dispatch(ctx, a, args)
	var interrupted *signalError
	switch {
	case err != nil && errors.As(context.Cause(ctx), &interrupted):
		return 128 + int(interrupted.signal) // whoever sent it knows why
	case err != nil:
		return a.fail(err)
	}
	return code
}

const seeHelp = "see `cradle --help`"

func dispatch(ctx context.Context, a *app, args []string) (int, error) {
	own, forwarded := splitAtDashes(args)
	if len(own) > 0 && !strings.HasPrefix(own[0], "-") {
		for _, c := range commands() {
			if c.name == own[0] {
				return c.execute(ctx, a, own[1:], forwarded)
			}
		}
		return 0, unknownArguments(own[:1], commandNames()).Hint(seeHelp)
	}
	flags := newFlagSet("cradle")
	if err := parseFlags(flags, own); err != nil {
		return 0, err.Hint(seeHelp)
	}
	if rest := append(flags.Args(), forwarded...); len(rest) > 0 {
		return 0, unknownArguments(rest, nil).Hint(seeHelp)
	}
	if isSet(flags, "version") {
		fmt.Fprintln(a.stdout, version.Version)
		return 0, nil
	}
	fmt.Fprint(a.stdout, topHelp(flags))
	return 0, nil
}

// splitAtDashes cuts args at the first "--": what follows belongs to pi and is never looked at.
func splitAtDashes(args []string) (own, forwarded []string) {
	for i, arg := range args {
		if arg == "--" {
			return args[:i], args[i+1:]
		}
	}
	return args, nil
}
