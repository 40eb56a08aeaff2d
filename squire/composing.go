package squire

import (
	"pi-cradle/squire/launch"
	"pi-cradle/squire/session"
)

// spec is what the launcher starts: this same pi, on the prepared session, with this same extension.
func (l *live) spec(p plan, d *session.Delegation) launch.Spec {
	trust := "--no-approve"
	if p.place.trusted {
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
	s := launch.Spec{ID: d.ID, Cwd: d.Cwd, Tmux: p.target.server.Bin}
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
