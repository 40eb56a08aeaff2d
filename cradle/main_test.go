package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"pi-cradle/cradle/cli"
	"pi-cradle/cradle/state"
)

var update = flag.Bool("update", false, "rewrite what the scripts compare with")

// TestMain lets the test binary play cradle and the programs that cradle starts, each under its own name.
func TestMain(m *testing.M) {
	// Built with -race, each process would sleep for a second at its end. Every child inherits this, and passes it on.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	commands := map[string]func(){"cradle": func() { os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr)) }}
	for name, fake := range fakes {
		commands[name] = func() { os.Exit(play(name, fake)) }
	}
	testscript.Main(m, commands)
}

// Every script gets a home, a state root and a project of its own to be in, and a PATH with cradle and those fakes it asks for.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "../testdata/script/cradle",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			work, err := filepath.EvalSymlinks(env.WorkDir)
			if err != nil {
				return err
			}
			for _, dir := range []string{"bin", "home", "project"} {
				if err := os.MkdirAll(filepath.Join(work, dir), 0o755); err != nil {
					return err
				}
			}
			env.Cd = filepath.Join(work, "project")
			env.Setenv("WORK", work)
			env.Setenv("HOME", filepath.Join(work, "home"))
			env.Setenv("PATH", filepath.Join(work, "bin")+":/usr/bin:/bin")
			env.Setenv(state.RootEnv, filepath.Join(work, "state"))
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Setenv(logEnv, filepath.Join(work, "log"))
			return link(filepath.Join(work, "bin"), "cradle")
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// fake NAME... puts fakes on PATH.
			"fake": func(ts *testscript.TestScript, _ bool, names []string) {
				ts.Check(link(filepath.Join(ts.Getenv("WORK"), "bin"), names...))
			},
			// state VAR DIR sets VAR to the state directory of the agent in DIR.
			"state": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Setenv(args[0], state.ForFolder(ts.MkAbs(args[1]), ts.Getenv("HOME"), ts.Getenv(state.RootEnv)).Path())
			},
			// lines FILE N holds when the file has N lines.
			"lines": func(ts *testscript.TestScript, neg bool, args []string) {
				n := strings.Count(ts.ReadFile(args[0]), "\n")
				if (fmt.Sprint(n) == args[1]) == neg {
					ts.Fatalf("%s has %d lines", args[0], n)
				}
			},
		},
	})
}

// link makes the test binary available under names in dir.
func link(dir string, names ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
