package squire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"pi-cradle/internal/closest"
	"pi-cradle/internal/durable"
	"pi-cradle/internal/usererr"
	"pi-cradle/squire/agents"
	"pi-cradle/squire/launch"
	"pi-cradle/squire/mail"
	"pi-cradle/squire/models"
	"pi-cradle/squire/records"
	"pi-cradle/squire/session"
	"pi-cradle/squire/settings"
	"pi-cradle/squire/tmux"
)

// order is what a user or a model asks for.
type order struct {
	Agent    string `json:"agent"`
	Task     string `json:"task"`
	Model    string `json:"model"`
	Thinking string `json:"thinking"`
	Label    string `json:"label"`
	AutoExit *bool  `json:"auto_exit"`
}

// started is a delegation whose window is open.
type started struct {
	delegation session.Delegation
	notes      []string
}

// plan is everything a launch needs, found out before the first side effect.
type plan struct {
	order  order
	agent  agents.Agent
	choice models.Choice
	caller tmux.Caller
	target string // tmux session id
	mail   string // mail mode
}

var labelRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)

// prepare refuses whatever can't work, and changes nothing.
func (l *live) prepare(ctx context.Context, o order) (plan, error) {
	p := plan{order: o}
	if err := l.healthy(); err != nil {
		return p, err
	}
	if l.role() == "delegate" {
		return p, usererr.New("a delegate can't start delegates")
	}
	if strings.TrimSpace(o.Task) == "" {
		return p, usererr.New("there is no task").Hint("write it after the agent's name: /delegate <agent> <task>")
	}
	if o.Label != "" && !labelRule.MatchString(o.Label) {
		return p, usererr.New("label %q is not allowed", o.Label).Hint("use at most 32 letters, digits, _ or -, beginning with a letter or digit")
	}
	if !filepath.IsAbs(l.start.SessionDir) {
		return p, usererr.New("this session's directory %q is not absolute, so a delegate's session could not be found again", l.start.SessionDir).
			Hint("start pi without --no-session, or with an absolute --session-dir")
	}
	var err error
	if p.agent, err = l.findAgent(o.Agent); err != nil {
		return p, err
	}
	set, err := settings.Load(settings.Path(l.start.AgentDir))
	if err != nil {
		return p, err
	}
	p.mail = set.Mail
	// The two questions to others go out together: each costs a process or a round trip.
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		p.caller, p.target, err = l.findTmux(gctx)
		return err
	})
	group.Go(func() (err error) {
		p.choice, err = l.chooseModel(gctx, o, p.agent)
		return err
	})
	if err := group.Wait(); err != nil {
		return p, err
	}
	return p, l.post.ready(ctx, p.mail)
}

func (l *live) role() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Own != nil {
		return "delegate"
	}
	return "root"
}

func (l *live) findAgent(name string) (agents.Agent, error) {
	dir := agents.Dir(l.start.AgentDir)
	roster := agents.Load(dir)
	if agent, ok := roster.Find(name); ok {
		return agent, nil
	}
	for _, p := range roster.Problems {
		if p.File == filepath.Join(dir, name+".md") {
			return agents.Agent{}, usererr.New("agent %q can't be used: %s", name, p.Reason).Hint("mend %s", p.File)
		}
	}
	if len(roster.Agents) == 0 {
		return agents.Agent{}, usererr.New("there are no agents yet").
			Hint("an agent is a Markdown file: write its instructions to %s", filepath.Join(dir, "scout.md"))
	}
	refusal := usererr.New("unknown agent %q", name)
	if hint := closest.Hint(name, roster.Names()); hint != "" {
		refusal.Hint("%s", hint)
	}
	return agents.Agent{}, refusal.Hint("the agents are %s", strings.Join(roster.Names(), ", "))
}

func (l *live) findTmux(ctx context.Context) (tmux.Caller, string, error) {
	caller, err := tmux.FromEnv(l.svc.cfg.Getenv)
	if err != nil {
		return caller, "", err
	}
	target, err := caller.Resolve(ctx)
	return caller, target, err
}

// chooseModel asks pi for the models with credentials, and for all only when that can make a refusal more helpful.
func (l *live) chooseModel(ctx context.Context, o order, a agents.Agent) (models.Choice, error) {
	wish := models.Wish{CallModel: o.Model, CallThinking: o.Thinking, AgentModel: a.Model, AgentThinking: a.Thinking}
	reg, err := l.host.models(ctx, false)
	if err != nil {
		return models.Choice{}, err
	}
	choice, refusal := models.Choose(wish, reg)
	if refusal == nil {
		return choice, nil
	}
	if reg, err = l.host.models(ctx, true); err != nil {
		return models.Choice{}, err
	}
	return models.Choose(wish, reg)
}

// delegate starts one delegation: record, files and task, window, record. The order is the one of package records.
func (l *live) delegate(ctx context.Context, o order) (started, error) {
	p, err := l.prepare(ctx, o)
	if err != nil {
		return started{}, err
	}
	d := l.newDelegation(p)
	if err := l.apply(session.Opening{Delegation: &d}); err != nil {
		_ = l.apply(session.OpenFailed{ID: d.ID})
		return started{}, fmt.Errorf("could not record the delegation: %w", err)
	}
	id := d.ID
	if err := l.writeFiles(ctx, p, &d); err != nil {
		l.takeBack(id)
		return started{}, err
	}
	window, err := p.caller.Server.NewWindow(ctx, tmux.NewWindow{
		Session: p.target, Name: d.Name, Argv: []string{l.svc.cfg.Binary, "exec", l.dir.Spec(l.id(), id)},
	})
	var uncertain *tmux.UncertainError
	if errors.As(err, &uncertain) {
		// The window may be there. Taking the launch file away decides it: a launcher that has not taken it yet never will.
		if l.revoke(id) {
			l.takeBack(id)
			return started{}, usererr.New("the delegate was not started: %w", err)
		}
		window = tmux.Window{Name: d.Name}
	} else if err != nil {
		l.takeBack(id)
		return started{}, err
	}
	return l.opened(id, p, window)
}

func (l *live) newDelegation(p plan) session.Delegation {
	id := uuid.NewString()
	suffix := p.order.Label
	if suffix == "" {
		suffix = id[:8]
	}
	autoExit := p.agent.AutoExit
	if p.order.AutoExit != nil {
		autoExit = *p.order.AutoExit
	}
	at := l.svc.cfg.Now().UTC()
	file := strings.NewReplacer(":", "-", ".", "-").Replace(at.Format("2006-01-02T15:04:05.000Z")) + "_" + id + ".jsonl"
	return session.Delegation{
		ID: id, Agent: p.agent.Name, Label: p.order.Label, Name: p.agent.Name + "-" + suffix,
		Model: p.choice.Model, Thinking: p.choice.Thinking, AutoExit: autoExit, Cwd: l.start.Cwd,
		SessionDir: l.start.SessionDir, SessionFile: filepath.Join(l.start.SessionDir, file),
		Window: session.Window{Socket: p.caller.Server.Socket}, Phase: session.Launching, Started: at.UnixMilli(),
	}
}

// writeFiles puts everything in place that the delegate finds when it starts. The parts do not depend on one another.
func (l *live) writeFiles(ctx context.Context, p plan, d *session.Delegation) error {
	if err := durable.MkdirAll(l.dir.Launches(l.id())); err != nil {
		return err
	}
	var group errgroup.Group
	group.Go(func() error {
		return l.dir.SaveBirth(d.ID, records.Birth{AutoExit: d.AutoExit, Identity: session.Identity{
			Parent: l.id(), Root: l.id(), Depth: 1, Agent: d.Agent, Chain: []string{d.Agent},
		}})
	})
	group.Go(func() error { return writeSessionHeader(d) })
	group.Go(func() error {
		if p.agent.Body == "" {
			return nil
		}
		return durable.Write(l.dir.Prompt(l.id(), d.ID), []byte(p.agent.Body+"\n"))
	})
	group.Go(func() error { return launch.WriteSpec(l.dir.Spec(l.id(), d.ID), l.spec(p, d)) })
	group.Go(func() error { return l.sendTask(ctx, p, d) })
	return group.Wait()
}

// sendTask mails the task and records the envelope that the answer will name.
func (l *live) sendTask(ctx context.Context, p plan, d *session.Delegation) error {
	sent, err := l.post.transport(p.mail).Send(ctx, mail.Outgoing{To: d.ID, Body: p.order.Task})
	if err != nil {
		return err
	}
	return l.apply(session.Opened{ID: d.ID, Request: sent.ID})
}

// writeSessionHeader makes the delegate's session file with its first line: pi then opens it under the id, directory and mode
// that we chose, and has every entry on disk at once.
func writeSessionHeader(d *session.Delegation) error {
	header, err := json.Marshal(map[string]any{
		"type": "session", "version": 3, "id": d.ID, "cwd": d.Cwd,
		"timestamp": time.UnixMilli(d.Started).UTC().Format("2006-01-02T15:04:05.000Z"),
	})
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(d.SessionDir); err != nil {
		return err
	}
	return durable.Write(d.SessionFile, append(header, '\n'))
}

// spec is what the launcher starts: this same pi, on the prepared session, with this same extension.
func (l *live) spec(p plan, d *session.Delegation) launch.Spec {
	trust := "--no-approve"
	if l.start.Trusted {
		trust = "--approve"
	}
	argv := append([]string{}, l.start.PiCommand...)
	argv = append(argv, "--session", d.SessionFile, "--session-dir", d.SessionDir, "--name", d.Name, trust)
	if l.start.Shim != "" {
		argv = append(argv, "-e", l.start.Shim)
	}
	if d.Model != "" {
		argv = append(argv, "--model", d.Model)
	}
	if d.Thinking != "" {
		argv = append(argv, "--thinking", d.Thinking)
	}
	s := launch.Spec{ID: d.ID, Cwd: d.Cwd, Tmux: p.caller.Server.Bin}
	if p.agent.Body != "" {
		prompt := l.dir.Prompt(l.id(), d.ID)
		argv = append(argv, "--append-system-prompt", prompt)
		s.Remove = append(s.Remove, prompt)
	}
	s.Argv = argv
	s.Env, s.Unset = l.environment(d)
	return s
}

// environment is what a delegate gets on top of its tmux server's: who it is, and what must be the same for both sides to find
// each other and the same programs.
func (l *live) environment(d *session.Delegation) (set map[string]string, unset []string) {
	set = map[string]string{
		"PI_CODING_AGENT_DIR": l.start.AgentDir,
		"PI_UNATTENDED":       "1",
		"PI_DELEGATE_PARENT":  l.id(),
		"PI_DELEGATE_ROOT":    l.id(),
		"PI_DELEGATE_DEPTH":   "1",
		"PI_DELEGATE_AGENT":   d.Agent,
		"PI_DELEGATE_CHAIN":   d.Agent,
		"CRADLE_HELPER":       l.svc.cfg.Binary,
	}
	set["PI_DELEGATE_AUTO_EXIT"] = "0"
	if d.AutoExit {
		set["PI_DELEGATE_AUTO_EXIT"] = "1"
	}
	for _, name := range []string{"HOME", "PATH", "XDG_STATE_HOME", "PI_CODING_AGENT_SESSION_DIR", "PI_OFFLINE"} {
		if v := l.svc.cfg.Getenv(name); v != "" {
			set[name] = v
		} else {
			unset = append(unset, name)
		}
	}
	return set, unset
}

func (l *live) opened(id string, p plan, w tmux.Window) (started, error) {
	err := l.apply(session.Opened{ID: id, Window: locator(p.caller.Server.Socket, w)})
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.state.Find(id)
	if d == nil {
		return started{}, errors.New("the delegation was taken back while its window opened")
	}
	notes := p.choice.Notes
	if err != nil {
		notes = append(notes, "its window could not be recorded: "+err.Error())
	}
	return started{delegation: d.Clone(), notes: notes}, nil
}

func locator(socket string, w tmux.Window) session.Window {
	return session.Window{
		Socket: socket, ServerPID: w.ServerPID, ServerStart: w.ServerStart, Session: w.Session, SessionName: w.SessionName,
		ID: w.ID, Pane: w.Pane, Name: w.Name,
	}
}
