package squire

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"pi-cradle/internal/usererr"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/agents"
	"pi-cradle/squire/models"
	"pi-cradle/squire/prompt"
	"pi-cradle/squire/settings"
	"pi-cradle/squire/toolset"
)

// order is what a user or a model asks for.
type order struct {
	Agent    string `json:"agent"`
	Task     string `json:"task"`
	Model    string `json:"model"`
	Thinking string `json:"thinking"`
	Label    string `json:"label"`
	AutoExit *bool  `json:"auto_exit"`
	Cwd      string `json:"-"` // "" for this session's own
	Worktree string `json:"-"` // branch of a new worktree, "" for none
	Source   string `json:"-"` // directory in the checkout that the worktree is made of, "" for this session's own
	Base     string `json:"-"` // commit at which it starts, "" for the HEAD of the source
	CallID   string `json:"-"` // of the tool call, "" for a command
}

// plan is everything a launch needs, found out before the first side effect. Each part is asked for by one function, which
// refuses what can't work and changes nothing.
type plan struct {
	id       string // of the delegation
	order    order
	settings settings.Settings
	agent    agents.Agent
	choice   models.Choice
	tools    []string
	prompt   string // appended to pi's own, "" for nothing
	place    place
	target   target
}

// plan refuses whatever can't work, and changes nothing.
func (l *live) plan(ctx context.Context, o order) (plan, error) {
	p := plan{id: uuid.NewString(), order: o}
	if err := l.admit(o); err != nil {
		return p, err
	}
	var roster agents.Roster
	roster, p.settings = l.roster()
	var err error
	if p.agent, err = l.findAgent(roster, o.Agent); err != nil {
		return p, err
	}
	if err := p.settings.Launch(); err != nil {
		return p, err
	}
	// The questions to others go out together: each costs a process or a round trip.
	var where place
	known := p // for the question about the place; the others fill in the rest meanwhile
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		p.target, err = l.findTarget(gctx, p.settings)
		return err
	})
	group.Go(func() (err error) {
		p.choice, err = l.chooseModel(gctx, o, p.agent)
		return err
	})
	group.Go(func() (err error) {
		p.tools, err = l.chooseTools(gctx, p.settings, p.agent)
		return err
	})
	group.Go(func() (err error) {
		if where, err = l.findPlace(gctx, known); err == nil && where.cwd == l.start.Cwd {
			where.trust, err = l.resolveTrust(gctx, l.site(o.Agent, where)) // here nobody is asked
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return p, err
	}
	p.place, p.prompt = where, prompt.Appended(p.agent, where.notes()...)
	if err := l.post.ready(ctx, p.settings.Mail); err != nil {
		return p, err
	}
	if p.place.cwd != l.start.Cwd {
		// The user is asked last, when everything else is as it should be.
		p.place.trust, err = l.resolveTrust(ctx, l.site(o.Agent, p.place))
	}
	return p, err
}

var labelRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)

// admit refuses by what is known without asking anybody.
func (l *live) admit(o order) error {
	if err := l.admitSession(); err != nil {
		return err
	}
	if strings.TrimSpace(o.Task) == "" {
		return usererr.New("there is no task").Hint("write it after the agent's name: /delegate <agent> <task>")
	}
	if err := checkPlace(o); err != nil {
		return err
	}
	return checkLabel(o.Label)
}

func checkLabel(label string) error {
	if label != "" && !labelRule.MatchString(label) {
		return usererr.New("label %q is not allowed", label).Hint("use at most 32 letters, digits, _ or -, beginning with a letter or digit")
	}
	return nil
}

// admitSession refuses in a session that can't have delegates.
func (l *live) admitSession() error {
	if err := l.healthy(); err != nil {
		return err
	}
	if l.role() == "delegate" {
		return usererr.New("a delegate can't start delegates")
	}
	if !filepath.IsAbs(l.start.SessionDir) {
		return usererr.New("this session's directory %q is not absolute, so a delegate's session could not be found again", l.start.SessionDir).
			Hint("start pi without --no-session, or with an absolute --session-dir")
	}
	return nil
}

func (l *live) role() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Own != nil {
		return "delegate"
	}
	return "root"
}

// chooseModel asks pi for the models with credentials, and for all of them only when those do not decide it.
func (l *live) chooseModel(ctx context.Context, o order, a agents.Agent) (models.Choice, error) {
	wish := models.Wish{
		CallModel: o.Model, CallThinking: o.Thinking, AgentModel: a.Model, AgentThinking: a.Thinking, Fallback: a.Fallback,
		LockModel: a.Locked.Model, LockThinking: a.Locked.Thinking,
	}
	reg, err := l.host.models(ctx, false)
	if err == nil && !wish.Settled(reg) {
		reg, err = l.host.models(ctx, true)
	}
	if err != nil {
		return models.Choice{}, err
	}
	return models.Choose(wish, reg)
}

// chooseTools works out a delegate's tools, asking pi for the parent's when they matter.
func (l *live) chooseTools(ctx context.Context, set settings.Settings, a agents.Agent) ([]string, error) {
	var parent wire.ToolsResult
	if a.Tools.Kind != toolset.Only {
		var err error
		if parent, err = l.host.tools(ctx); err != nil {
			return nil, err
		}
	}
	return a.Tools.Select(parent.Active, set.DelegateTools, nil), nil
}
