package squire

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"pi-cradle/internal/usererr"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/agents"
	"pi-cradle/squire/models"
	"pi-cradle/squire/views"
)

// form is one run of the dialogs behind /delegate without arguments. Whoever cancels one of them starts nothing.
type form struct {
	live     *live
	agent    agents.Agent
	registry wire.ModelsResult
	order    order
	model    string // what the delegate will run on, "" when pi decides
	thinking string
}

// cancelled says that the user left the form. It is no failure, so nothing is said about it.
type cancelled struct{}

func (cancelled) Error() string { return "cancelled" }

// askOrder asks for everything that /delegate could have been given. What a launch would refuse whatever the answers is refused
// before the first question, and a task that was written is offered again until it has been started.
func (l *live) askOrder(ctx context.Context) (order, error) {
	f := form{live: l}
	if err := l.admitSession(); err != nil {
		return f.order, err
	}
	roster, set := l.roster()
	if err := set.Launch(); err != nil {
		return f.order, err
	}
	if _, err := l.findTarget(ctx, set); err != nil {
		return f.order, err
	}
	if err := l.post.ready(ctx, set.Mail); err != nil {
		return f.order, err
	}
	var err error
	if f.registry, err = l.host.models(ctx, false); err != nil {
		return f.order, err
	}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return f.askAgent(ctx, roster) }, f.askTask, f.askLabel, f.askSettings,
	} {
		if err := step(ctx); err != nil {
			return f.order, err
		}
	}
	return f.order, nil
}

// ask shows one dialog; leaving it is a cancelled error.
func (f *form) ask(ctx context.Context, p wire.DialogParams) (string, error) {
	answer, err := f.live.host.dialog(ctx, p)
	if err == nil && !answer.OK {
		err = cancelled{}
	}
	return answer.Value, err
}

func (f *form) askAgent(ctx context.Context, roster agents.Roster) error {
	if len(roster.Agents) == 0 {
		_, err := f.live.findAgent(roster, "")
		return err
	}
	p := wire.DialogParams{Kind: "select", Title: "Delegate to which agent?", Options: roster.Names()}
	for _, a := range roster.Agents {
		detail := a.Description
		if a.Display != "" {
			detail = fmt.Sprintf("%q %s", a.Display, detail)
		}
		p.Details = append(p.Details, views.Line(detail))
	}
	name, err := f.ask(ctx, p)
	if err != nil {
		return err
	}
	f.order.Agent = name
	f.agent, err = f.live.findAgent(roster, name)
	return err
}

func (f *form) askTask(ctx context.Context) error {
	for {
		answer, err := f.live.host.dialog(ctx, wire.DialogParams{Kind: "editor", Title: "Task for " + f.agent.Name, Prefill: f.live.svc.draft.text()})
		if err != nil {
			return err
		}
		if answer.Value != "" {
			f.live.svc.draft.keep(answer.Value)
		}
		if !answer.OK {
			return cancelled{}
		}
		if f.order.Task = answer.Value; strings.TrimSpace(answer.Value) != "" {
			return nil
		}
		f.live.host.notify("warning", "delegate: write a task, or cancel")
	}
}

func (f *form) askLabel(ctx context.Context) error {
	for {
		label, err := f.ask(ctx, wire.DialogParams{Kind: "input", Title: "Short name for its window (empty: the default)"})
		if err != nil {
			return err
		}
		f.order.Label = strings.TrimSpace(label)
		if err = checkLabel(f.order.Label); err == nil {
			return nil
		}
		f.live.host.notify("warning", "delegate: "+usererr.Text(err, ""))
	}
}

// row is one line of the settings screen.
type row struct {
	name, value string
	choose      func(context.Context) error // nil: start
}

// askSettings shows what a launch would do until the user starts it.
func (f *form) askSettings(ctx context.Context) error {
	f.model, f.thinking = f.agent.Model, f.agent.Thinking
	if f.model == "" && f.registry.Current != nil {
		f.model = ref(*f.registry.Current)
	}
	if f.thinking == "" {
		f.thinking = f.registry.Thinking
	}
	f.fitThinking()
	at := 0
	for {
		rows := f.rows()
		lines := make([]string, len(rows))
		for i, r := range rows {
			lines[i] = r.name
			if r.value != "" {
				lines[i] += ": " + r.value
			}
		}
		line, err := f.ask(ctx, wire.DialogParams{Kind: "select", Title: "Start " + f.agent.Name, Options: lines, Prefill: lines[at]})
		if err != nil {
			return err
		}
		if at = slices.Index(lines, line); at <= 0 {
			return nil
		}
		// Leaving a row's own dialog leaves the row as it was.
		if err := rows[at].choose(ctx); err != nil && err != (cancelled{}) {
			return err
		}
	}
}

func (f *form) rows() []row {
	onOff := "off"
	if f.autoExit() {
		onOff = "on"
	}
	cwd := f.live.start.Cwd
	if f.order.Cwd != "" {
		cwd = f.order.Cwd
	}
	worktree := "none"
	if f.order.Worktree != "" {
		worktree = f.order.Worktree
	}
	return []row{
		{"Start", "", nil},
		{"Model", orElse(f.model, "pi's default"), f.chooseModel},
		{"Thinking", orElse(f.thinking, "pi's default"), f.chooseThinking},
		{"Auto-exit", onOff, func(context.Context) error {
			on := !f.autoExit()
			f.order.AutoExit = &on
			return nil
		}},
		{"Working directory", f.live.short(cwd), f.chooseCwd},
		{"Worktree", worktree, f.chooseWorktree},
	}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func ref(m wire.ModelRef) string { return m.Provider + "/" + m.ID }

func (f *form) autoExit() bool {
	if f.order.AutoExit != nil {
		return *f.order.AutoExit
	}
	return f.agent.AutoExit
}

// locked says so when the agent's file keeps a call from changing a field.
func (f *form) locked(is bool, field string) bool {
	if is {
		f.live.host.notify("info", fmt.Sprintf("delegate: agent %q locks its %s", f.agent.Name, field))
	}
	return is
}

func (f *form) chooseModel(ctx context.Context) error {
	if f.locked(f.agent.Locked.Model, "model") {
		return nil
	}
	p := wire.DialogParams{Kind: "select", Title: "Model", Filter: true, Prefill: f.model}
	for _, m := range f.registry.Models {
		p.Options = append(p.Options, ref(wire.ModelRef{Provider: m.Provider, ID: m.ID}))
		p.Details = append(p.Details, views.Line(m.Name))
	}
	if own := f.agent.Model; own != "" && !slices.Contains(p.Options, own) {
		p.Options, p.Details = slices.Insert(p.Options, 0, own), slices.Insert(p.Details, 0, "from the agent's file")
	}
	model, err := f.ask(ctx, p)
	if err != nil {
		return err
	}
	f.model = model
	// The agent's own model is left to the launch, which then also knows its fallbacks.
	if f.order.Model = model; model == f.agent.Model || f.agent.Model == "" && f.registry.Current != nil && model == ref(*f.registry.Current) {
		f.order.Model = ""
	}
	f.fitThinking()
	return nil
}

// levels are what the selected model supports.
func (f *form) levels() []string {
	for _, m := range f.registry.Models {
		if m.Provider+"/"+m.ID == f.model && len(m.Thinking) > 0 {
			return m.Thinking
		}
	}
	return agents.Levels
}

// fitThinking moves the level to the nearest one that the model supports, and says so.
func (f *form) fitThinking() {
	if near := models.Nearest(f.thinking, f.levels()); f.thinking != "" && near != f.thinking {
		f.live.host.notify("info", fmt.Sprintf("delegate: %s does not support thinking %s; using %s", f.model, f.thinking, near))
		f.setThinking(near)
	}
}

func (f *form) setThinking(level string) {
	f.thinking = level
	if !f.agent.Locked.Thinking {
		f.order.Thinking = level
	}
}

func (f *form) chooseThinking(ctx context.Context) error {
	if f.locked(f.agent.Locked.Thinking, "thinking") {
		return nil
	}
	level, err := f.ask(ctx, wire.DialogParams{Kind: "select", Title: "Thinking", Options: f.levels(), Prefill: f.thinking})
	if err == nil {
		f.setThinking(level)
	}
	return err
}

func (f *form) chooseCwd(ctx context.Context) error {
	dir, err := f.ask(ctx, wire.DialogParams{Kind: "input", Title: "Working directory (empty: this session's own)"})
	if err != nil {
		return err
	}
	if dir = strings.TrimSpace(dir); dir != "" {
		if _, err := f.live.directory(dir); err != nil {
			f.live.host.notify("warning", "delegate: "+usererr.Text(err, ""))
			return nil
		}
	}
	f.order.Cwd = dir
	if f.order.Cwd != "" && f.order.Worktree != "" {
		f.order.Worktree = ""
		f.live.host.notify("info", "delegate: a working directory of its own takes the place of the worktree")
	}
	return nil
}

func (f *form) chooseWorktree(ctx context.Context) error {
	branch, err := f.ask(ctx, wire.DialogParams{Kind: "input", Title: "New branch, in a worktree of its own (empty: none)"})
	if err != nil {
		return err
	}
	f.order.Worktree = strings.TrimSpace(branch)
	if f.order.Worktree != "" && f.order.Cwd != "" {
		f.order.Cwd = ""
		f.live.host.notify("info", "delegate: the worktree takes the place of the working directory")
	}
	return nil
}

// short is a path with the home directory as ~.
func (l *live) short(path string) string {
	if rest, ok := strings.CutPrefix(path, l.svc.cfg.Home+string(filepath.Separator)); ok && l.svc.cfg.Home != "" {
		return filepath.Join("~", rest)
	}
	return path
}
