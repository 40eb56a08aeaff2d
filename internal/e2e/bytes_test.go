package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

func TestTasksArriveByteForByte(t *testing.T) {
	tasks := map[string]string{
		"200 KiB":         strings.Repeat("all work and no play, ünïcode too\n", 6000),
		"newlines":        "one\n\n\ntwo\n\tthree",
		"emoji":           "👩‍👩‍👧 and 日本語 and e\u0301 and \u2028 line separator",
		"final semicolon": "stop here;",
		"format":          "#{pane_id} #S #(touch /tmp/never) %1 $HOME `id` \\n",
		"leading dash":    "-rf --model x",
		"leading at":      "@/etc/hostname is not a file here",
		"leading slash":   "/quit is not a command here",
		"leading bang":    "!echo is not a shell line here",
		"quotes":          `"double" 'single' \"escaped\" \\`,
	}
	for name, task := range tasks {
		t.Run(name, func(t *testing.T) {
			e, parent := world(t, testenv.Options{})
			args, err := json.Marshal(map[string]string{"agent": "scout", "task": task})
			if err != nil {
				t.Fatal(err)
			}
			e.Model.Script(func(r testenv.Request) (testenv.Response, bool) {
				if r.Model == "child" {
					return testenv.Response{Text: "seen"}, true
				}
				if r.Model == "parent" && r.Last().Role == "user" && r.Last().Text == "go" {
					return testenv.Response{Calls: []testenv.Call{{Tool: "delegate", Args: string(args)}}}, true
				}
				return testenv.Response{Text: "ok"}, true
			})
			parent.Submit("go")
			first := e.Model.Await(t, "the delegate", func(r testenv.Request) bool { return r.Model == "child" })
			if !strings.HasSuffix(first.Last().Text, task) {
				t.Errorf("the model got %q", testenv.Clip(first.Last().Text, 2000))
			}
			e.Model.Await(t, "the result", told("seen"))
			e.Tmux.AwaitNoWindow("scout-")
		})
	}
}

func TestTaskByCommandKeepsItsBytes(t *testing.T) {
	const task = "--not a flag  inner   spaces\n\n  indented \"quotes\" #{pane_id};"
	e, parent := world(t, testenv.Options{})
	parent.Submit("/delegate scout --label x look " + task)
	first := e.Model.Await(t, "the delegate", func(r testenv.Request) bool { return r.Model == "child" })
	if !strings.HasSuffix(first.Last().Text, "look "+task) {
		t.Errorf("the model got %q", first.Last().Text)
	}
}

func TestOddWorkingDirectories(t *testing.T) {
	for _, name := range []string{
		"with space", "ha#sh", "#S", "#{session_name}", "#(touch marker)", "semi;colon;", `quo'te"s`, "ünïcode-日本", "-dash", "$HOME", "new\nline",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testenv.New(t, testenv.Options{})
			e.Scout()
			dir := e.Dir("work/" + name)
			parent := e.Start(testenv.PiOptions{Dir: dir})
			parent.Submit("/delegate scout where?\n" + call("bash", map[string]any{"command": "pwd -P; echo end"}))
			r := e.Model.Await(t, "the place", func(r testenv.Request) bool { return r.Model == "child" && r.Last().Role == "tool" })
			if !strings.Contains(r.Last().Text, dir+"\nend") {
				t.Errorf("the delegate works in %q, not in %q", r.Last().Text, dir)
			}
			got := e.Model.Await(t, "the result", told("Status: done")).Last().Text
			if !strings.Contains(got, "Working directory: ") {
				t.Errorf("no directory in\n%s", got)
			}
			if _, err := os.Stat(dir + "/marker"); err == nil {
				t.Error("a command in the directory's name was run")
			}
		})
	}
}

func TestLargeAnswerIsCutWithItsEnvelope(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	large := strings.Repeat("0123456789 ", 20_000)
	e.Model.Script(func(r testenv.Request) (testenv.Response, bool) {
		return testenv.Response{Text: large}, r.Model == "child"
	})
	parent.Submit("/delegate scout write a lot")
	got := e.Model.Await(t, "the result", told("Status: done")).Last().Text
	if len(got) > 34_000 || !strings.Contains(got, large[:10_000]) {
		t.Errorf("%d bytes reached the parent: %s", len(got), testenv.Clip(got, 1000))
	}
	_, rest, _ := strings.Cut(got, "Envelope: ")
	path, _, _ := strings.Cut(rest, "\n")
	if envelope := read(path); !strings.Contains(envelope, large[:len(large)-1]) {
		t.Errorf("the envelope %s holds %d bytes", path, len(envelope))
	}
}
