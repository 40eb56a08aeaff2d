package squire

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"pi-cradle/squire/launch"
	"pi-cradle/squire/session"
	"pi-cradle/squire/toolset"
)

// childIdentity is who a delegate of this session is.
func (l *live) childIdentity(agent string) session.Identity {
	return session.Identity{Parent: l.id(), Root: l.id(), Depth: 1, Agent: agent, Chain: []string{agent}}
}

// offer is what other extensions are shown of a launch: the whole command line of pi and what they may rely on in its environment.
func (l *live) offer(p plan, d *session.Delegation) launchOffer {
	id := l.childIdentity(d.Agent)
	return launchOffer{
		Args: l.arguments(p, d), Env: l.contract(id, d, p.choice.Rest), Agent: d.Agent, Cwd: d.Cwd, ToolCallID: p.order.CallID,
		Parent: id.Parent, Root: id.Root, Depth: id.Depth, Chain: id.Chain,
	}
}

// arguments make this same pi open the prepared session with this same extension, on the chosen model and tools.
func (l *live) arguments(p plan, d *session.Delegation) []string {
	trust := "--no-approve"
	if p.place.trust.approve {
		trust = "--approve"
	}
	args := []string{"--session", d.SessionFile, "--session-dir", d.SessionDir, "--name", d.Name, trust}
	if l.start.Shim != "" {
		args = append(args, "-e", l.start.Shim)
	}
	if d.Model != "" {
		args = append(args, "--model", d.Model)
	}
	if d.Thinking != "" {
		args = append(args, "--thinking", d.Thinking)
	}
	args = append(args, toolset.Args(p.tools)...)
	if p.prompt != "" {
		args = append(args, "--append-system-prompt", l.dir.Prompt(l.id(), d.ID))
	}
	return args
}

// contract is the part of a delegate's environment that says who it is.
func (l *live) contract(id session.Identity, d *session.Delegation, fallback []string) map[string]string {
	env := map[string]string{
		"PI_CODING_AGENT_DIR":   l.start.AgentDir,
		"PI_UNATTENDED":         "1",
		"PI_DELEGATE_PARENT":    id.Parent,
		"PI_DELEGATE_ROOT":      id.Root,
		"PI_DELEGATE_DEPTH":     strconv.Itoa(id.Depth),
		"PI_DELEGATE_AGENT":     id.Agent,
		"PI_DELEGATE_CHAIN":     strings.Join(id.Chain, ","),
		"PI_DELEGATE_AUTO_EXIT": "0",
	}
	if d.AutoExit {
		env["PI_DELEGATE_AUTO_EXIT"] = "1"
	}
	if len(fallback) > 0 {
		env["PI_DELEGATE_FALLBACK"] = strings.Join(fallback, ",")
	}
	if dir := l.svc.cfg.Getenv("PI_CODING_AGENT_SESSION_DIR"); dir != "" {
		env["PI_CODING_AGENT_SESSION_DIR"] = dir
	}
	return env
}

// shared are variables that must be the same for parent and delegate: they find each other's files, and the same programs.
var shared = []string{"HOME", "PATH", "XDG_STATE_HOME", "PI_OFFLINE"}

// foreign are variables that say "you run inside this agent". A tmux server that such an agent started hands them to every window,
// where they mean nobody.
var foreign = []string{
	"AI_AGENT", "PI_CODING_AGENT", "PI_CODING_AGENT_SESSION_DIR",
	"PI_DELEGATE_PARENT", "PI_DELEGATE_ROOT", "PI_DELEGATE_DEPTH", "PI_DELEGATE_AGENT", "PI_DELEGATE_CHAIN", "PI_DELEGATE_AUTO_EXIT", "PI_DELEGATE_FALLBACK",
	"PI_SUBAGENT_CHILD", "PI_SUBAGENT_DEPTH", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CODEX_SANDBOX", "CODEX_THREAD_ID",
	"CURSOR_AGENT", "GEMINI_CLI", "OPENCODE", "OPENCODE_CLIENT", "CRUSH", "GOOSE_TERMINAL",
}

// environment puts together what a delegate gets on top of the tmux server's environment: what is shared, what the settings
// inherit, what other extensions add, and last, so that nothing replaces it, who the delegate is. unset is what it must not have.
func (l *live) environment(inherit []string, contract, added map[string]string) (set map[string]string, unset []string) {
	set = map[string]string{"CRADLE_HELPER": l.svc.cfg.Binary}
	for _, kv := range l.svc.cfg.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		inherits := slices.ContainsFunc(inherit, func(p string) bool { return toolset.Matches(p, name) })
		if value != "" && slices.Contains(shared, name) || inherits && !slices.Contains(foreign, name) {
			set[name] = value
		}
	}
	maps.Copy(set, added)
	maps.Copy(set, contract)
	for _, name := range slices.Concat(shared, foreign) {
		if _, ok := set[name]; !ok {
			unset = append(unset, name)
		}
	}
	return set, unset
}

// spec is what the launcher starts.
func (l *live) spec(p plan, d *session.Delegation, contract map[string]string, got customized) launch.Spec {
	s := launch.Spec{ID: d.ID, Cwd: d.Cwd, Tmux: p.target.server.Bin, Argv: slices.Concat(l.start.PiCommand, got.args)}
	if p.prompt != "" {
		s.Remove = append(s.Remove, l.dir.Prompt(l.id(), d.ID))
	}
	s.Env, s.Unset = l.environment(p.settings.InheritEnv, contract, got.env)
	return s
}
