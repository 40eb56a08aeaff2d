package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

// example is the text of a ```js block of the README, by the name after js.
func example(t *testing.T, name string) string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(testenv.Repo(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```js " + regexp.QuoteMeta(name) + "\n(.*?)^```$").FindSubmatch(readme)
	if block == nil {
		t.Fatalf("the README has no example of %s", name)
	}
	return string(block[1])
}

// heard is one event that an observer noted.
type heard struct {
	PID     int
	Channel string
	Error   string
	Payload struct {
		SessionID string
		Status    string
		Identity  *struct {
			Parent, Root, Agent string
			Chain               []string
			Depth               int
		}
		ToolCallID string
		Args       []string
	}
}

// observer writes an extension that runs code with pi and assert in reach, and notes each event that its listeners are given.
func observer(e *testenv.Env, code string) (path string, notes func() []heard) {
	e.T.Helper()
	log := filepath.Join(e.Root, "events.jsonl")
	path = filepath.Join(e.Root, "observer.ts")
	e.Write(path, `import assert from "node:assert/strict";
import { appendFileSync } from "node:fs";
export default function (real: any) {
	const note = (what: object) => appendFileSync(`+quoted(log)+`, JSON.stringify({ PID: process.pid, ...what }) + "\n");
	const on = (channel: string, listen: (payload: any) => void) =>
		real.events.on(channel, (payload: any) => {
			let error = "";
			try {
				listen(payload);
			} catch (caught) {
				error = String(caught);
			}
			note({ Channel: channel, Error: error, Payload: payload });
		});
	const pi: any = { events: { on } };
	real.on("resources_discover", () => note({ Channel: "resources_discover" }));
`+code+`
	void assert;
	void pi;
}
`)
	return path, func() []heard {
		e.T.Helper()
		data, err := os.ReadFile(log)
		if err != nil && !os.IsNotExist(err) {
			e.T.Fatalf("%v", err)
		}
		var all []heard
		for line := range strings.Lines(string(data)) {
			var h heard
			if err := json.Unmarshal([]byte(line), &h); err != nil {
				e.T.Fatalf("%v in %s", err, line)
			}
			all = append(all, h)
		}
		return all
	}
}

func quoted(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always marshals
	}
	return string(data)
}

func on(all []heard, channel string) []heard {
	var some []heard
	for _, h := range all {
		if h.Channel == channel {
			some = append(some, h)
		}
	}
	return some
}

// The README's examples, as they are written there.
func TestHookExamples(t *testing.T) {
	t.Parallel()
	e := testenv.New(t, testenv.Options{})
	e.Agent("scout", "---\nmodel: fake/child\ntools: bash\n---\nx\n")
	path, notes := observer(e, example(t, "session:launch")+example(t, "squire:identity"))
	parent := e.Start(testenv.PiOptions{Args: []string{"-e", path}})
	show := call("bash", map[string]any{"command": "echo agent=$GATE_AGENT root=$GATE_ROOT parent=$PI_DELEGATE_PARENT depth=$PI_DELEGATE_DEPTH chain=$PI_DELEGATE_CHAIN unattended=$PI_UNATTENDED"})
	parent.Submit("go\n" + delegate("look\n"+show+"\nTHEN\nSAY done"))
	r := e.Model.AwaitAnswered(t, "the delegate's environment", func(r testenv.Request) bool { return r.Model == "child" && r.Last().Role == "tool" })
	want := "agent=scout root=" + e.Work + " parent=" + parent.Session + " depth=1 chain=scout unattended=1"
	if !strings.Contains(r.Last().Text, want) || !strings.Contains(r.System(), "Ask the gate before you deploy.") {
		t.Errorf("the delegate has %q and is told\n%s", r.Last().Text, r.System())
	}
	e.Tmux.AwaitNoWindow("scout-")
	launches := on(notes(), "session:launch")
	if len(launches) != 1 || launches[0].Error != "" || launches[0].Payload.ToolCallID == "" {
		t.Errorf("session:launch: %+v", launches)
	}
}

func TestIdentityEvents(t *testing.T) {
	t.Parallel()
	e := testenv.New(t, testenv.Options{})
	e.Scout()
	path, notes := observer(e, example(t, "squire:identity"))
	addExtension(t, e, path)
	parent := e.Start(testenv.PiOptions{})
	parent.Submit("/delegate scout --no-auto-exit look\nSAY seen")
	e.Model.AwaitAnswered(t, "the result", told("seen"))
	all := notes()
	for _, h := range all {
		if h.Error != "" {
			t.Errorf("%s: %s", h.Channel, h.Error)
		}
	}
	seen := on(all, "squire:identity")
	if len(seen) != 2 || seen[0].Payload.Status != "root" || seen[0].Payload.SessionID != parent.Session || seen[0].Payload.Identity != nil {
		t.Fatalf("squire:identity: %+v", seen)
	}
	id := seen[1].Payload.Identity
	if seen[1].Payload.Status != "delegate" || id == nil || id.Parent != parent.Session || id.Root != parent.Session || id.Agent != "scout" || id.Depth != 1 || len(id.Chain) != 1 {
		t.Errorf("in the delegate: %+v", seen[1])
	}
	// It came while pi was in session_start, which resources_discover follows.
	for i, h := range all {
		if h.Channel == "resources_discover" && (i == 0 || all[i-1].Channel != "squire:identity" || all[i-1].PID != h.PID) {
			t.Errorf("event %d of %+v came before squire:identity", i, all)
		}
	}
	// A record that can't be read: whose delegate this is, nobody knows.
	delegated := seen[1].Payload.SessionID
	e.Tmux.Run("kill-window", "-t", e.Tmux.AwaitWindow("scout-").ID)
	e.Tmux.AwaitNoWindow("scout-")
	e.Write(e.AgentDir+"/squire/identity/"+delegated+".json", "{")
	found := files(e.Sessions, delegated)
	if len(found) != 1 {
		t.Fatalf("session files %v", found)
	}
	e.Start(testenv.PiOptions{Session: &testenv.Pi{Env: e, Session: delegated, File: found[0]}})
	testenv.Await(t, "the identity of the reopened session", func() bool { return len(on(notes(), "squire:identity")) == 3 })
	if last := on(notes(), "squire:identity")[2]; last.Payload.Status != "invalid" || last.Payload.Identity != nil || last.Error != "" {
		t.Errorf("with a broken record: %+v", last)
	}
}

// addExtension has every pi of e load path.
func addExtension(t *testing.T, e *testenv.Env, path string) {
	t.Helper()
	file := filepath.Join(e.AgentDir, "settings.json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var settings map[string]any
	if err := json.Unmarshal(data, &settings); err != nil {
		t.Fatal(err)
	}
	settings["extensions"] = []string{path}
	e.WriteJSON(file, settings)
}

// A listener that decides what only the parent may decide stops the launch, by name.
func TestLaunchHookThatGoesTooFar(t *testing.T) {
	for name, c := range map[string]struct{ code, says string }{
		"trust":     {`payload.args.push("--approve")`, `it added "--approve", but the trust is chosen by the parent`},
		"session":   {`payload.args.push("--session-dir", "/tmp/x")`, `it added "--session-dir"`},
		"replaced":  {`payload.args = []`, "arguments were changed or removed"},
		"variables": {`payload.env.PI_DELEGATE_PARENT = "me"`, "variable PI_DELEGATE_PARENT was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testenv.New(t, testenv.Options{})
			e.Scout()
			path, _ := observer(e, `	pi.events.on("session:launch", (payload: any) => { `+c.code+` });`)
			parent := e.Start(testenv.PiOptions{Args: []string{"-e", path}})
			parent.Submit("/delegate scout look")
			shows(parent, c.says)
			parent.Submit("a marker")
			e.Model.AwaitAnswered(t, "a later prompt", prompt("a marker"))
			if windows, specs := e.Tmux.Named("scout"), files(e.AgentDir+"/squire", "/launch/"); len(windows)+len(specs) != 0 {
				t.Errorf("started: %+v, %v", windows, specs)
			}
			parent.Submit("status\n" + call("delegation_status", map[string]any{}))
			r := e.Model.Await(t, "the status", func(r testenv.Request) bool { return r.Last().Role == "tool" })
			if strings.Contains(r.Last().Text, "scout") {
				t.Errorf("a launch that was refused is on record: %s", r.Last().Text)
			}
		})
	}
}
