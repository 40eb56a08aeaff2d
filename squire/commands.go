package squire

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pi-cradle/internal/closest"
	"pi-cradle/internal/usererr"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/agents"
	"pi-cradle/squire/session"
)

// commandRun runs a slash command. What it has to say goes to the user as notices; nothing enters the conversation.
func (l *live) commandRun(ctx context.Context, p wire.CommandRunParams) (wire.Empty, error) {
	switch p.Command {
	case "delegate":
		return wire.Empty{}, l.commandDelegate(ctx, p.Args)
	case "delegate-worktrees":
		return wire.Empty{}, l.commandWorktrees(ctx)
	case "auto-exit":
		l.mu.Lock()
		isDelegate := l.state.Own != nil
		l.mu.Unlock()
		if !isDelegate {
			return wire.Empty{}, usererr.New("this session is no delegate, so there is no auto-exit to turn on")
		}
		return wire.Empty{}, l.apply(session.AutoExitOn{})
	}
	return wire.Empty{}, usererr.New("unknown command %q", p.Command)
}

func (l *live) commandDelegate(ctx context.Context, args string) error {
	if err := l.offerStarter(ctx); err != nil {
		return err
	}
	fromForm := strings.TrimSpace(args) == "" && l.start.HasUI
	var o order
	var err error
	if fromForm {
		o, err = l.askOrder(ctx)
	} else {
		o, err = parseDelegate(args)
	}
	if err == (cancelled{}) {
		return nil
	}
	if err != nil {
		return err
	}
	s, err := l.delegate(ctx, o)
	if err != nil {
		return err
	}
	if fromForm {
		l.svc.draft.keep("")
	}
	l.host.notify("info", startedNotice(s))
	return nil
}

// offerStarter offers to write a first set of agents to whoever has none and can be asked.
func (l *live) offerStarter(ctx context.Context) error {
	if roster, _ := l.roster(); !l.start.HasUI || !roster.Empty() || l.admitSession() != nil {
		return nil
	}
	dir := agents.Dir(l.start.AgentDir)
	answer, err := l.host.dialog(ctx, wire.DialogParams{
		Kind: "confirm", Title: "There are no agents yet. Write three to begin with?",
		Message: "scout looks things up, reviewer looks for defects, worker carries out a task. They are Markdown files in " + l.short(dir) + ", yours to change.",
	})
	if err != nil || !answer.OK {
		return err
	}
	written, err := agents.WriteStarter(dir)
	if err != nil {
		return fmt.Errorf("the agents could not be written: %w", err)
	}
	for i, path := range written {
		written[i] = l.short(path)
	}
	l.host.notify("info", "delegate: wrote "+strings.Join(written, ", "))
	return nil
}

func startedNotice(s started) string {
	where := "window " + s.delegation.Name
	if name := s.delegation.Window.SessionName; name != "" {
		where += " of tmux session " + name
	}
	text := fmt.Sprintf("%s started in %s: %s", s.delegation.Agent, where, s.delegation.ID)
	for _, note := range s.notes {
		text += "\n" + note
	}
	return text
}

// delegateFlags are the flags of /delegate, and whether each takes a value.
var delegateFlags = map[string]bool{
	"--model": true, "--thinking": true, "--label": true, "--cwd": true, "--worktree": true, "--worktree-source": true, "--worktree-base": true,
	"--auto-exit": false, "--no-auto-exit": false,
}

const delegateUsage = "/delegate <agent> [--model <provider/id>] [--thinking <level>] [--label <name>] " +
	"[--cwd <dir> | --worktree <branch> [--worktree-source <dir>] [--worktree-base <commit>]] [--auto-exit | --no-auto-exit] <task>"

// parseDelegate reads `<agent> [flags] <task…>`. The task begins at the first word after the agent that is no flag, or after
// "--", and is kept byte for byte. A flag's value may stand in double quotes, in which \" and \\ are a quote and a backslash.
func parseDelegate(args string) (order, error) {
	var o order
	rest := strings.TrimLeft(args, blanks)
	if rest == "" {
		return o, usererr.New("/delegate needs an agent and a task").Hint(delegateUsage)
	}
	o.Agent, rest = word(rest)
	for {
		rest = strings.TrimLeft(rest, blanks)
		flag, after := word(rest)
		if flag == "--" {
			o.Task = strings.TrimLeft(after, blanks)
			return o, nil
		}
		if !strings.HasPrefix(flag, "--") {
			o.Task = rest
			return o, nil
		}
		name, value, joined := strings.Cut(flag, "=")
		takes, known := delegateFlags[name]
		if !known {
			refusal := usererr.New("unknown flag %q", flag)
			if hint := closest.Hint(name, flagNames()); hint != "" {
				refusal.Hint("%s", hint)
			}
			return o, refusal.Hint(`write "--" before a task that begins with "--"`)
		}
		rest = after
		if takes {
			if joined && value == "" {
				return o, usererr.New("flag %q needs a value", name)
			}
			if joined {
				rest = rest0(args, rest, value)
			}
			var err error
			if value, rest, err = flagValue(name, rest); err != nil {
				return o, err
			}
		} else if joined {
			return o, usererr.New("flag %q takes no value", name)
		}
		o.set(name, value)
	}
}

const blanks = " \t\r\n"

func word(s string) (first, rest string) {
	if i := strings.IndexAny(s, blanks); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// rest0 steps back to the value of --flag=value, which may hold blanks when it is quoted.
func rest0(args, rest, value string) string { return args[len(args)-len(rest)-len(value):] }

// flagValue takes one value from the front of s.
func flagValue(name, s string) (value, rest string, err error) {
	s = strings.TrimLeft(s, blanks)
	if !strings.HasPrefix(s, `"`) {
		value, rest = word(s)
		if value == "" {
			return "", "", usererr.New("flag %q needs a value", name)
		}
		return value, rest, nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
			b.WriteByte(s[i])
		case s[i] == '"':
			if b.Len() == 0 && name != "--cwd" { // where it means this session's own
				return "", "", usererr.New("flag %q needs a value", name)
			}
			return b.String(), s[i+1:], nil
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", usererr.New("the value of flag %q has no closing quote", name)
}

func (o *order) set(flag, value string) {
	switch flag {
	case "--model":
		o.Model = value
	case "--thinking":
		o.Thinking = value
	case "--label":
		o.Label = value
	case "--cwd":
		o.Cwd = value
	case "--worktree":
		o.Worktree = value
	case "--worktree-source":
		o.Source = value
	case "--worktree-base":
		o.Base = value
	case "--auto-exit", "--no-auto-exit":
		on := flag == "--auto-exit"
		o.AutoExit = &on
	}
}

func flagNames() []string {
	var names []string
	for name := range delegateFlags {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
