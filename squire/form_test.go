package squire

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pi-cradle/rpc/wire"
	"pi-cradle/squire/agents"
)

// user answers dialogs by their titles, in turn, and keeps what was shown and said.
type user struct {
	peer    // nothing else is called
	t       *testing.T
	answers []string // "title=answer"; "title!" leaves the dialog
	shown   []wire.DialogParams
	notices []string
}

func (u *user) Call(_ context.Context, method string, params, result any) error {
	if method != wire.HostDialog {
		return fmt.Errorf("%s was called", method)
	}
	p := params.(wire.DialogParams)
	u.shown = append(u.shown, p)
	if len(u.answers) == 0 {
		u.t.Fatalf("a dialog too many: %+v", p)
	}
	next := u.answers[0]
	u.answers = u.answers[1:]
	title, answer, ok := strings.Cut(next, "=")
	if !strings.HasPrefix(p.Title, strings.TrimSuffix(title, "!")) {
		u.t.Fatalf("dialog %q where %q was to come", p.Title, title)
	}
	if ok && p.Kind == "select" {
		i := slices.IndexFunc(p.Options, func(o string) bool { return o == answer || strings.HasPrefix(o, answer+":") })
		if i < 0 {
			u.t.Fatalf("no row %q in %q", answer, p.Options)
		}
		answer = p.Options[i]
	}
	raw, err := json.Marshal(wire.DialogResult{OK: ok, Value: answer})
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, result)
}

func (u *user) Notify(method string, params any) error {
	if n, ok := params.(wire.NotifyParams); ok && method == wire.HostNotify {
		u.notices = append(u.notices, n.Text)
	}
	return nil
}

var formModels = wire.ModelsResult{
	Models: []wire.Model{
		{Provider: "p", ID: "deep", Name: "Deep", Available: true, Thinking: []string{"off", "low", "high"}},
		{Provider: "p", ID: "plain", Name: "Plain", Available: true, Thinking: []string{"off"}},
	},
	Current: &wire.ModelRef{Provider: "p", ID: "deep"}, Thinking: "low",
}

func formFor(t *testing.T, a agents.Agent, answers ...string) (*form, *user) {
	t.Helper()
	u := &user{t: t, answers: answers}
	home := t.TempDir()
	for _, dir := range []string{"work", "other"} {
		if err := os.Mkdir(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	svc := &Service{host: host{u}, cfg: Config{Home: home}}
	l := &live{svc: svc, host: svc.host, start: wire.SessionStartParams{Cwd: filepath.Join(home, "work")}}
	return &form{live: l, agent: a, registry: formModels}, u
}

func TestFormSettings(t *testing.T) {
	plain := agents.Agent{Name: "scout", AutoExit: true}
	locked := agents.Agent{Name: "scout", Model: "p/plain", Thinking: "off", Locked: agents.Locked{Model: true, Thinking: true}}
	off := false
	for _, c := range []struct {
		name    string
		agent   agents.Agent
		answers []string
		want    order
		notices []string
	}{
		{"start at once", plain, []string{"Start scout=Start"}, order{}, nil},
		{"another model moves the level", plain, []string{"Start scout=Model", "Model=p/plain", "Start scout=Start"}, order{Model: "p/plain", Thinking: "off"}, []string{"p/plain does not support thinking low; using off"}},
		{"back to the agent's own", plain, []string{"Start scout=Model", "Model=p/plain", "Start scout=Model", "Model=p/deep", "Start scout=Start"}, order{Thinking: "off"}, []string{"using off"}},
		{"an agent's level that its model lacks", agents.Agent{Name: "scout", AutoExit: true, Thinking: "max"}, []string{"Start scout=Start"}, order{Thinking: "high"}, []string{"p/deep does not support thinking max; using high"}},
		{"an alias of the agent", agents.Agent{Name: "scout", Model: "sonnet", Thinking: "xhigh"}, []string{"Start scout=Model", "Model=sonnet", "Start scout=Start"}, order{}, nil},
		{"level", plain, []string{"Start scout=Thinking", "Thinking=high", "Start scout=Start"}, order{Thinking: "high"}, nil},
		{"locked", locked, []string{"Start scout=Model", "Start scout=Thinking", "Start scout=Start"}, order{}, []string{"locks its model", "locks its thinking"}},
		{"auto-exit", plain, []string{"Start scout=Auto-exit", "Start scout=Start"}, order{AutoExit: &off}, nil},
		{"a row left", plain, []string{"Start scout=Model", "Model!", "Start scout=Thinking", "Thinking!", "Start scout=Working directory", "Working directory!", "Start scout=Worktree", "New branch!", "Start scout=Start"}, order{}, nil},
		{"directory, then worktree", plain, []string{"Start scout=Working directory", "Working directory=../other", "Start scout=Worktree", "New branch=topic", "Start scout=Start"}, order{Worktree: "topic"}, []string{"takes the place of the working directory"}},
		{"worktree, then directory", plain, []string{"Start scout=Worktree", "New branch=topic", "Start scout=Working directory", "Working directory=~/other", "Start scout=Start"}, order{Cwd: "~/other"}, []string{"takes the place of the worktree"}},
		{"directory taken back", plain, []string{"Start scout=Working directory", "Working directory=..", "Start scout=Working directory", "Working directory= ", "Start scout=Start"}, order{}, nil},
		{"no directory", plain, []string{"Start scout=Working directory", "Working directory=nowhere", "Start scout=Start"}, order{}, []string{"\"nowhere\" does not exist"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, u := formFor(t, c.agent, c.answers...)
			if err := f.askSettings(t.Context()); err != nil {
				t.Fatal(err)
			}
			same := f.order.AutoExit == nil && c.want.AutoExit == nil || f.order.AutoExit != nil && c.want.AutoExit != nil && *f.order.AutoExit == *c.want.AutoExit
			f.order.AutoExit, c.want.AutoExit = nil, nil
			if f.order != c.want || !same || len(u.answers) > 0 {
				t.Errorf("got %+v, want %+v", f.order, c.want)
			}
			if len(u.notices) != len(c.notices) {
				t.Fatalf("notices %q", u.notices)
			}
			for i, n := range c.notices {
				if !strings.Contains(u.notices[i], n) {
					t.Errorf("notice %q, not %q", u.notices[i], n)
				}
			}
		})
	}
}

// The settings screen opens where it was left, begins at the agent's defaults, and Escape there starts nothing.
func TestFormSettingsScreen(t *testing.T) {
	f, u := formFor(t, agents.Agent{Name: "scout", Model: "p/plain", Thinking: "off"}, "Start scout=Auto-exit", "Start scout!")
	if err := f.askSettings(t.Context()); err != (cancelled{}) {
		t.Fatal(err)
	}
	want := []string{"Start", "Model: p/plain", "Thinking: off", "Auto-exit: off", "Working directory: ~/work", "Worktree: none"}
	if !slices.Equal(u.shown[0].Options, want) || u.shown[0].Prefill != "Start" || u.shown[1].Prefill != "Auto-exit: on" {
		t.Errorf("%+v", u.shown)
	}
}

func TestFormKeepsTheTask(t *testing.T) {
	f, u := formFor(t, agents.Agent{Name: "scout"}, "Task for scout=first words", "Short name!", "Task for scout= ", "Task for scout!")
	if err := f.askTask(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.askLabel(t.Context()); err != (cancelled{}) {
		t.Fatal(err)
	}
	if err := f.askTask(t.Context()); err != (cancelled{}) {
		t.Fatal(err)
	}
	if u.shown[2].Prefill != "first words" || len(u.notices) != 1 || !strings.Contains(u.notices[0], "write a task") {
		t.Errorf("%+v %q", u.shown, u.notices)
	}
}

func TestFormLabel(t *testing.T) {
	f, u := formFor(t, agents.Agent{Name: "scout"}, "Short name=a:b", "Short name=-a", "Short name= ok ")
	if err := f.askLabel(t.Context()); err != nil || f.order.Label != "ok" || len(u.notices) != 2 {
		t.Errorf("%+v, %v, %q", f.order, err, u.notices)
	}
}
