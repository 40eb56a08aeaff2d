package testenv

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestPiInItsTerminal(t *testing.T) {
	for _, find := range []func(T) PiVersion{Newest, Oldest} {
		version := find(t)
		t.Run(version.Version, func(t *testing.T) {
			t.Parallel()
			e := New(t, Options{Bare: true, Pi: version})
			pi := e.Start(PiOptions{})
			pi.Submit("first line\nCALL bash {\"command\":\"echo from-the-tool\"}\nTHEN\nSAY all done here")
			pi.AwaitAnswer("all done here")
			last := e.Model.AwaitAnswered(t, "the one after the tool", func(r Request) bool { return r.Said("tool", "from-the-tool") })
			if !last.Said("user", "first line") || last.Model != "parent" || !strings.Contains(strings.Join(last.Tools, " "), "bash") {
				t.Errorf("%+v", last)
			}

			pi.Kill()
			again := pi.Reopen()
			again.AwaitText("all done here")
			again.Submit("SAY second answer")
			second := e.Model.Await(t, "the second prompt", func(r Request) bool { return r.Said("user", "SAY second answer") })
			if !second.Said("assistant", "all done here") {
				t.Error("the reopened session has lost its past")
			}
			again.AwaitAnswer("second answer")
			again.Quit()
		})
	}
}

func TestPiInOtherModes(t *testing.T) {
	t.Parallel()
	e := New(t, Options{Bare: true})
	out := e.Print("SAY printed")
	if out.Code != 0 || out.Stdout != "printed\n" || out.Stderr != "" {
		t.Errorf("print mode: %+v", out)
	}
	rpc := e.StartRPC()
	rpc.Call(map[string]any{"type": "prompt", "message": "PAUSE gate\nSAY one two three"})
	e.Model.Await(t, "the prompt", func(r Request) bool { return r.Said("user", "PAUSE gate") })
	e.Model.Release("gate")
	rpc.Await("the end of the run", func(ev Event) bool { return ev.Type == "agent_end" })
	if code := rpc.Close(); code != 0 || len(rpc.Noise()) > 0 {
		t.Errorf("exit code %d, noise %q, stderr %s", code, rpc.Noise(), rpc.Stderr())
	}
}

func TestModelFaults(t *testing.T) {
	t.Parallel()
	e := New(t, Options{Bare: true})
	e.Model.FailNext(func(r Request) bool { return r.Said("user", "after one") }, Response{Status: 500, Text: "once"})
	if out := e.Print("after one\nSAY recovered"); out.Stdout != "recovered\n" {
		t.Errorf("%+v", out)
	}
	if out := e.Print("STATUS 401"); out.Code == 0 || !strings.Contains(out.Stderr, "401") {
		t.Errorf("%+v", out)
	}
	e.Model.FailNext(func(r Request) bool { return r.Said("user", "cut") }, Response{Text: "one two three", Drop: 2})
	if out := e.Print("cut\nSAY whole"); out.Stdout != "whole\n" {
		t.Errorf("%+v", out)
	}
	e.Model.AwaitAborted(t, "the cut answer", func(r Request) bool { return r.Said("user", "cut") })
}

func TestRun(t *testing.T) {
	var dir string
	err := Run("program", func(t T) {
		e := New(t, Options{Bare: true})
		dir = e.Root
		t.Fatalf("stopped: %d", 7)
	})
	if err == nil || err.Error() != "stopped: 7" {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s was left behind: %v", dir, err)
	}
	if err := Run("program", func(T) {}); err != nil {
		t.Error(err)
	}
}
