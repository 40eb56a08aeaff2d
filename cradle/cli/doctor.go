package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"pi-cradle/cradle/doctor"
	"pi-cradle/cradle/which"
)

func newDoctorCommand() *command {
	var opts doctorOptions
	c := &command{
		name:    "doctor",
		summary: "look for the programs agents need",
		about:   "Look for the programs that runs, sandboxes, schedules and delegates need, and\nsay what to do about those that are missing. Exits with 1 when pi is.",
		flags:   newFlagSet("doctor"),
	}
	opts.addFlags(c.flags)
	c.run = func(ctx context.Context, a *app, _, _ []string) (int, error) { return runDoctor(ctx, a, opts) }
	return c
}

type doctorOptions struct{ json bool }

func (o *doctorOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.json, "json", false, "print the findings as JSON")
}

func runDoctor(ctx context.Context, a *app, opts doctorOptions) (int, error) {
	if err := a.locate(); err != nil {
		return 0, err
	}
	report := doctor.Examine(ctx, doctor.Host{Platform: a.platform, Home: a.home, Find: func(name string) (string, bool) {
		path, ok := a.search().Find(name)
		if !ok && name == "cradle-helper" {
			return besideExecutable(name)
		}
		return path, ok
	}})
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if opts.json {
		if err := a.printJSON(report); err != nil {
			return 0, err
		}
	} else if _, err := io.WriteString(a.stdout, report.Text()); err != nil {
		return 0, err
	}
	if !report.Healthy {
		return 1, nil
	}
	return 0, nil
}

// search looks in the process's own PATH.
func (a *app) search() which.Search {
	return which.Search{Path: os.Getenv("PATH"), Home: a.home, Cwd: a.cwd}
}

// besideExecutable finds a program installed in the same folder as this one.
func besideExecutable(name string) (string, bool) {
	self, err := os.Executable()
	if err != nil {
		return "", false
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", false
	}
	return which.Search{Path: filepath.Dir(self)}.Find(name)
}
