package placetest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pi-cradle/helper/serve"
	"pi-cradle/internal/durable"
	"pi-cradle/internal/run"
	"pi-cradle/rpc/rpctest"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/gitws/gittest"
	"pi-cradle/squire/records"
	"pi-cradle/squire/session"
	"pi-cradle/squire/tmux/tmuxtest"
)

// The test binary plays the helper, the launcher, and the delegate's pi.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "serve", "exec":
			os.Exit(serve.Main(os.Args[1:]))
		case "pane":
			os.Exit(pane(os.Args[2], os.Args[3:]))
		}
	}
	os.Exit(m.Run())
}

// arrival is what a delegate's pi finds when it starts.
type arrival struct {
	Args   []string
	Cwd    string
	PWD    string
	Prompt string // what is appended to its instructions
}

// pane leaves an arrival in dir and stays until its window is closed.
func pane(dir string, args []string) int {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP, syscall.SIGTERM)
	a := arrival{Args: args, PWD: os.Getenv("PWD"), Prompt: after(args, "--append-system-prompt")}
	if a.Prompt != "" {
		text, err := os.ReadFile(a.Prompt)
		if err != nil {
			return 64
		}
		a.Prompt = string(text)
	}
	var err error
	if a.Cwd, err = os.Getwd(); err != nil {
		return 65
	}
	id := strings.TrimSuffix(after(args, "--session"), ".jsonl")
	if err := durable.WriteJSON(filepath.Join(dir, id[strings.LastIndexByte(id, '_')+1:]), a); err != nil {
		return 66
	}
	<-hangup
	return 0
}

func after(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// world is a home with a project, a tmux server, an agent, and a parent session in that project.
type world struct {
	t        *testing.T
	tmux     *tmuxtest.Server
	repo     gittest.Repo // a repository with one commit, in a folder called "repo"
	home     string
	agentDir string
	arrivals string
	bin      string   // first on PATH
	env      []string // of the helper
	inTmux   []string
	session  *rpctest.Session
	pi       *rpctest.Pi
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{t: t, tmux: tmuxtest.Start(t, "s", ""), repo: gittest.Committed(t)}
	w.home = strings.TrimPrefix(w.repo.Env[0], "HOME=")
	base := gittest.Dir(t)
	w.agentDir, w.arrivals, w.bin = filepath.Join(base, "agent"), filepath.Join(base, "arrivals"), filepath.Join(base, "bin")
	for _, dir := range []string{filepath.Join(w.agentDir, "agents"), w.arrivals, w.bin} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.write(filepath.Join(w.agentDir, "agents", "scout.md"), "---\ndescription: looks around\n---\nLook around.\n", 0o600)
	w.env = []string{"HOME=" + w.home, "PATH=" + w.bin + ":" + os.Getenv("PATH"), "TERM=xterm-256color"}
	w.inTmux = []string{"TMUX=" + w.tmux.Getenv("TMUX"), "TMUX_PANE=" + w.tmux.Getenv("TMUX_PANE")}
	w.session = w.newSession(w.repo.Dir)
	return w
}

func (w *world) newSession(cwd string) *rpctest.Session {
	s := rpctest.NewSession(w.agentDir, cwd)
	s.Start.PiCommand = []string{os.Args[0], "pane", w.arrivals}
	return s
}

func (w *world) write(path, text string, mode os.FileMode) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) settings(text string) {
	w.t.Helper()
	w.write(filepath.Join(w.agentDir, "squire", "settings.json"), text, 0o600)
}

// fake puts a script in front of a program; $REAL is the real one.
func (w *world) fake(name, script string) {
	w.t.Helper()
	real, err := run.LookPath(name)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(filepath.Join(w.bin, name+".new"), "#!/bin/sh\nREAL="+real+"\n"+script+"\n", 0o755)
	if err := os.Rename(filepath.Join(w.bin, name+".new"), filepath.Join(w.bin, name)); err != nil {
		w.t.Fatal(err)
	}
}

var models = wire.ModelsResult{
	Models:  []wire.Model{{Provider: "test", ID: "model", Name: "Model", Available: true, Thinking: []string{"off"}}},
	Current: &wire.ModelRef{Provider: "test", ID: "model"}, Thinking: "off",
}

// start starts the parent's pi, in tmux unless environ says otherwise.
func (w *world) start(environ ...string) *world {
	w.t.Helper()
	if environ == nil {
		environ = w.inTmux
	}
	w.pi = w.open(w.session, environ, "noted")
	return w
}

// open starts a pi whose runs all end with the same words.
func (w *world) open(s *rpctest.Session, environ []string, reply string) *rpctest.Pi {
	w.t.Helper()
	pi := rpctest.Start(w.t, rpctest.Options{
		Env: append(slices.Clone(w.env), environ...), MayDie: true, Models: models,
		Run: func(context.Context, string) wire.RunSettledParams { return rpctest.Done(reply) },
	})
	pi.StartSession(s)
	return pi
}

type (
	args = map[string]any
	ctx  = context.Context
)

// delegate calls the tool with more arguments than the agent and a task.
func (w *world) delegate(more args) (wire.ToolCallResult, details) {
	w.t.Helper()
	all := args{"agent": "scout", "task": "look"}
	for name, value := range more {
		all[name] = value
	}
	res := w.pi.Tool("delegate", all)
	var d details
	if err := json.Unmarshal(res.Details, &d); err != nil {
		w.t.Fatal(err)
	}
	return res, d
}

// started is delegate for a call that has to work. It waits for the delegate's pi.
func (w *world) started(more args) (wire.ToolCallResult, details, arrival) {
	w.t.Helper()
	res, d := w.delegate(more)
	if res.IsError {
		w.t.Fatalf("refused: %s", res.Text)
	}
	return res, d, w.arrived(d.Delegation)
}

// refused is delegate for a call that must not work, and must leave nothing behind.
func (w *world) refused(more args, texts ...string) string {
	w.t.Helper()
	records, mail := len(w.record()), w.mail()
	res, _ := w.delegate(more)
	if !res.IsError {
		w.t.Fatalf("%v started: %s", more, res.Text)
	}
	contains(w.t, fmt.Sprint(more), res.Text, texts...)
	expect(w.t, fmt.Sprintf("%v: delegations on record", more), len(w.record()), records)
	expect(w.t, fmt.Sprintf("%v: envelopes", more), w.mail(), mail)
	return res.Text
}

// mail is how many envelopes lie about.
func (w *world) mail() int {
	all, err := filepath.Glob(filepath.Join(w.home, ".local/state/pi-session-mail/*/*/*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return len(all)
}

type details struct {
	Delegation    string `json:"delegation"`
	Cwd           string `json:"cwd"`
	WindowSession string `json:"windowSession"`
	Workspace     struct {
		Mode string `json:"mode"`
		Cwd  string `json:"cwd"`
		Git  struct {
			Kind     string  `json:"kind"`
			Baseline *string `json:"baseline"`
			Position struct {
				Branch *string `json:"branch"`
			} `json:"position"`
		} `json:"git"`
	} `json:"workspace"`
}

func (w *world) arrived(id string) arrival {
	w.t.Helper()
	var a arrival
	tmuxtest.Await(w.t, "the delegate", func() bool { return durable.ReadJSON(filepath.Join(w.arrivals, id), &a) == nil })
	return a
}

func (w *world) record() []*session.Delegation {
	w.t.Helper()
	children, _, err := records.In(w.agentDir).Load(w.session.ID())
	if err != nil {
		w.t.Fatal(err)
	}
	return children.Delegations
}

// answer lets the delegate answer its task.
func (w *world) answer(d details, text string) {
	w.t.Helper()
	child := rpctest.OpenSession(w.agentDir, d.Cwd, d.Delegation)
	w.open(child, []string{"PI_UNATTENDED=1"}, text)
}

// windows lists "session window" of a server, but for the user's own.
func (w *world) windows() string {
	w.t.Helper()
	var all []string
	for _, line := range strings.Split(w.tmux.Run("list-windows", "-a", "-F", "#{session_name} #{window_name}"), "\n") {
		if line != "main user" {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: no %q in %q", what, part, text)
		}
	}
}
