package cli

import (
	"context"

	"github.com/spf13/pflag"

	"pi-cradle/cradle/alias"
	"pi-cradle/cradle/compose"
	"pi-cradle/internal/usererr"
)

func newRunCommand() *command {
	opts := new(runOptions)
	c := &command{
		name:    "run",
		summary: "start pi as the agent in a folder",
		about: "Start pi as the agent that a folder describes, in the current directory.\n" +
			"It runs in a sandbox when the folder has sandbox/nono.json or sandbox/sbx.json.",
		positionals: []positional{{name: "dir", about: "an agent's folder, or a name in ~/.cradle/settings.json (default \".\")"}},
		note: "Exits with pi's code, 128+n when signal n ended it, or 1 when it never began.\n" +
			"Everything after -- goes to pi.",
		flags: newFlagSet("run"),
	}
	opts.addFlags(c.flags)
	c.run = func(ctx context.Context, a *app, args, forwarded []string) (int, error) {
		return runRun(ctx, a, opts, args, forwarded)
	}
	return c
}

type runOptions struct {
	flags                 compose.Flags
	dryRun, explain, json bool
}

func (o *runOptions) addFlags(fs *pflag.FlagSet) {
	f := &o.flags
	fs.Var(&toggle{&f.Sandbox, true}, "sandbox", "always run in a sandbox")
	fs.Var(&toggle{&f.Sandbox, false}, "no-sandbox", "never run in a sandbox")
	for _, name := range []string{"sandbox", "no-sandbox"} {
		fs.Lookup(name).NoOptDefVal = "true"
	}
	fs.Var(&choice{[]string{string(compose.Nono), string(compose.Sbx)}, (*string)(&f.Backend)}, "sandbox-backend", "run in this kind of sandbox")
	fs.BoolVar(&f.Offline, "offline", false, "no network; turns the sandbox on")
	fs.StringArrayVar(&f.AllowHost, "allow-host", nil, "reach only this `host`; turns the sandbox on; may be repeated")
	fs.BoolVar(&f.Verbose, "verbose", false, "let nono print what it grants")
	fs.BoolVar(&o.dryRun, "dry-run", false, "only print what would be done")
	fs.BoolVar(&o.explain, "explain", false, "print the same with a reason for every part")
	fs.BoolVar(&o.json, "json", false, "with --dry-run or --explain: print JSON")
}

func runRun(ctx context.Context, a *app, opts *runOptions, args, forwarded []string) (int, error) {
	preview := opts.dryRun || opts.explain
	if opts.json && !preview {
		return 0, usererr.New("--json goes with --dry-run or --explain").Hint("add --explain")
	}
	ref := "."
	if len(args) > 0 {
		ref = args[0]
	}
	if err := a.locate(); err != nil {
		return 0, err
	}
	agent, err := alias.Resolve(ref, a.cwd, a.home)
	l := launch{agent: agent, warnings: agent.Warnings, flags: opts.flags, forwarded: forwarded}
	if err != nil {
		a.warnAll(l.warnings)
		return 0, err
	}
	plan, err := a.plan(l, preview)
	if err != nil {
		return 0, err
	}
	if preview {
		return 0, a.preview(plan, opts)
	}
	return a.carryOut(ctx, plan)
}
