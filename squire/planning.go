package squire

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sync/errgroup"

	"pi-cradle/internal/usererr"
	"pi-cradle/squire/agents"
	"pi-cradle/squire/models"
	"pi-cradle/squire/settings"
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

// plan is everything a launch needs, found out before the first side effect. Each part is asked for by one function, which
// refuses what can't work and changes nothing.
type plan struct {
	order    order
	settings settings.Settings
	agent    agents.Agent
	choice   models.Choice
	place    place
	target   target
}

// plan refuses whatever can't work, and changes nothing.
func (l *live) plan(ctx context.Context, o order) (plan, error) {
	p := plan{order: o}
	if err := l.admit(o); err != nil {
		return p, err
	}
	var err error
	if p.agent, err = l.findAgent(o.Agent); err != nil {
		return p, err
	}
	if p.settings, err = settings.Load(settings.Path(l.start.AgentDir)); err != nil {
		return p, err
	}
	// The questions to others go out together: each costs a process or a round trip.
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
		p.place, err = l.findPlace(gctx, o)
		return err
	})
	if err := group.Wait(); err != nil {
		return p, err
	}
	return p, l.post.ready(ctx, p.settings.Mail)
}

var labelRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)

// admit refuses by what is known without asking anybody.
func (l *live) admit(o order) error {
	if err := l.healthy(); err != nil {
		return err
	}
	if l.role() == "delegate" {
		return usererr.New("a delegate can't start delegates")
	}
	if strings.TrimSpace(o.Task) == "" {
		return usererr.New("there is no task").Hint("write it after the agent's name: /delegate <agent> <task>")
	}
	if o.Label != "" && !labelRule.MatchString(o.Label) {
		return usererr.New("label %q is not allowed", o.Label).Hint("use at most 32 letters, digits, _ or -, beginning with a letter or digit")
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
