package schedule_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pi-cradle/cradle/schedule/history"
	"pi-cradle/cradle/state"
	"pi-cradle/internal/testenv"
)

// rig is an installed agent whose timers can be fired.
type rig struct {
	*testenv.Env
	folder string
	state  state.Dir
}

func newRig(t *testing.T) *rig {
	needLinux(t)
	e := testenv.New(t, testenv.Options{Bare: true})
	if err := link(e.BinDir); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(e.BinDir, "pi")); err != nil { // pi is never faked here
		t.Fatal(err)
	}
	e.FakeTool("pi", `exec node "`+e.Pi.CLI+`" "$@"`)
	e.Setenv("FAKE_LINGER", "yes")
	e.Setenv("GORACE", quickEnd)
	r := &rig{Env: e, folder: e.Dir("reporter")}
	r.state = state.ForFolder(r.folder, e.Home, "")
	e.Write(filepath.Join(r.folder, "SYSTEM.md"), "You report.")
	return r
}

func (r *rig) task(slug, prompt string) {
	r.Write(filepath.Join(r.folder, "schedule", slug+".md"), "---\nname: Task "+slug+"\ncron: '@daily'\ncwd: "+r.Work+"\n---\n"+prompt+"\n")
}

func (r *rig) install() {
	r.T.Helper()
	if out := r.Exec("cradle", "schedule", "install", r.folder); out.Code != 0 || out.Stdout+out.Stderr != "" {
		r.T.Fatalf("install: %+v", out)
	}
}

// fire does what systemd does with the task's unit, and returns the exit code and what the log got. Nobody closes the standard
// input: a run that read it would hang.
func (r *rig) fire(slug string) (int, string) {
	r.T.Helper()
	unit, err := os.ReadFile(filepath.Join(r.Home, ".config/systemd/user", "cradle-"+r.state.ID+"-"+slug+".service"))
	if err != nil {
		r.T.Fatalf("%v", err)
	}
	value := func(key string) string {
		_, rest, _ := strings.Cut(string(unit), "\n"+key+"=")
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	path := strings.TrimPrefix(value("StandardOutput"), "append:")
	before, _ := os.ReadFile(path)
	log, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		r.T.Fatalf("%v", err)
	}
	defer log.Close()
	in, hold, err := os.Pipe()
	if err != nil {
		r.T.Fatalf("%v", err)
	}
	defer in.Close()
	defer hold.Close()
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
	defer cancel()
	argv := strings.Split(strings.Trim(value("ExecStart"), `"`), `" "`)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = value("WorkingDirectory"), in, log, log
	cmd.Env = []string{value("Environment"), "HOME=" + r.Home, "GORACE=" + quickEnd}
	for _, variable := range r.Environ() { // where the test keeps pi's login and caches
		if strings.HasPrefix(variable, "PI_") || strings.HasPrefix(variable, "NODE_") || strings.HasPrefix(variable, "JITI_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	_ = cmd.Run()
	after, err := os.ReadFile(path)
	if err != nil || ctx.Err() != nil {
		r.T.Fatalf("%s did not end: %v, log %q", slug, err, after)
	}
	return cmd.ProcessState.ExitCode(), string(bytes.TrimPrefix(after, before))
}

func (r *rig) lastRun(slug string) history.Record {
	r.T.Helper()
	records, err := history.Dir{State: r.state.Path()}.Read(slug)
	if err != nil || len(records) == 0 {
		r.T.Fatalf("no record of %s: %v", slug, err)
	}
	return records[len(records)-1]
}

func TestRealPiGetsThePromptVerbatim(t *testing.T) {
	r := newRig(t)
	prompts := map[string]string{
		"plain":   "Summarize yesterday.\n\n- `code` \"quotes\" 'x' $HOME \\n\n- ünïcödé 日本語",
		"dash":    "--print is a flag, -p too",
		"rule":    "--\nnothing",
		"mention": "@everyone: hello",
		"command": "/unknown command",
		"large":   "Read this.\n" + strings.Repeat("0123456789abcde\n", 16<<10) + "The end.", // more than one argument can hold
	}
	for slug, prompt := range prompts {
		r.task(slug, prompt)
	}
	r.install()
	for slug, prompt := range prompts {
		seen := len(r.Model.Requests())
		r.Model.FailNext(func(testenv.Request) bool { return true }, testenv.Response{Text: "the answer to " + slug})
		code, log := r.fire(slug)
		if code != 0 || !strings.Contains(log, "the answer to "+slug+"\n") {
			t.Errorf("%s: exit %d, log %q", slug, code, log)
		}
		requests := r.Model.Requests()[seen:]
		if len(requests) != 1 {
			t.Fatalf("%s: %d requests", slug, len(requests))
		}
		if got := requests[0].Last().Text; got != prompt {
			t.Errorf("%s: the model was told %q", slug, testenv.Clip(got, 200))
		}
		run := r.lastRun(slug)
		if run.Outcome != history.OK || run.Trigger != history.Timer || run.Planned == nil || run.Planned.After(run.Start) {
			t.Errorf("%s: recorded as %+v", slug, run)
		}
		// The session is this run's, under the task's name.
		session, err := os.ReadFile(run.Session)
		if err != nil || !bytes.Contains(session, []byte(`"name":"Task `+slug+`"`)) {
			t.Errorf("%s: session %q, %v", slug, run.Session, err)
		}
	}
}

func TestRealPiFails(t *testing.T) {
	r := newRig(t)
	r.task("refused", "STATUS 401")
	r.task("projects", "SAY done")
	// A project that would ask whether to be trusted does not hold the run up.
	r.Write(filepath.Join(r.Work, ".pi", "settings.json"), "{}")
	r.install()
	code, log := r.fire("refused")
	if code != 1 || !strings.Contains(log, "401") {
		t.Errorf("exit %d, log %q", code, log)
	}
	if run := r.lastRun("refused"); run.Outcome != history.Failed || run.ExitCode == nil || *run.ExitCode != 1 {
		t.Errorf("recorded as %+v", run)
	}
	if code, log := r.fire("projects"); code != 0 || !strings.Contains(log, "done\n") {
		t.Errorf("exit %d, log %q", code, log)
	}
	if trust, err := os.ReadFile(filepath.Join(r.AgentDir, "trust.json")); err == nil && strings.Contains(string(trust), "true") {
		t.Errorf("the project came to be trusted: %s", trust)
	}
}
