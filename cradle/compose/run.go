package compose

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"pi-cradle/cradle/extgen"
	"pi-cradle/cradle/nono"
	"pi-cradle/cradle/sbx"
	"pi-cradle/internal/usererr"
)

func base(path string) string { return filepath.Base(path) }

// Run plans a run. With an error the Plan holds the warnings so far and nothing else of use.
func Run(in Input) (*Plan, error) {
	c := &composer{in: in, plan: &Plan{
		Warnings: append([]string{}, in.Warnings...),
		Agent:    in.Folder.Dir, Verbose: in.Flags.Verbose,
	}}
	err := c.directory()
	c.state()
	c.warn(in.Folder.Warnings...)
	if err != nil {
		return c.plan, err
	}
	c.decision = decide(in.Folder, in.Flags)
	c.warn(c.warnings...)
	p := c.plan
	p.Backend, p.Why, p.Network, p.NetworkWhy = c.backend, c.why, c.network, c.networkWhy
	if err := c.programs(); err != nil {
		return p, err
	}
	if err := c.sandbox(); err != nil {
		return p, err
	}
	c.generated()
	if s := in.Folder.Settings; len(s.Packages) > 0 {
		p.Packages = &Packages{Dir: p.State.NPM(), Installer: s.Installer, Specs: s.Packages}
	}
	c.arguments()
	if err := passable(p.Command(nil)); err != nil {
		return p, err
	}
	p.AlsoRead = alsoRead(in)
	return p, nil
}

// alsoRead names what no flag of ours keeps away. It is part of the explanation, so that nobody takes the agent's folder for all
// that shapes the agent.
func alsoRead(in Input) []Source {
	var out []Source
	personal := func(name, reason string) {
		out = append(out, Source{filepath.Join(in.Home, ".pi", "agent", name), reason})
	}
	if !in.Folder.HasSystem {
		personal("SYSTEM.md", "the base prompt, if it exists: the folder has no SYSTEM.md")
	}
	if !in.Folder.HasAppend {
		personal("APPEND_SYSTEM.md", "added to the prompt, if it exists: the folder has no APPEND_SYSTEM.md")
	}
	personal("settings.json", "personal preferences; a model only if the folder sets none")
	personal("models.json", "personal providers, beside the folder's")
	personal("auth.json", "logins")
	personal("trust.json", "which projects are trusted")
	personal("AGENTS.md", "personal instructions for every directory (or CLAUDE.md)")
	return append(out,
		Source{"AGENTS.md", "the project's instructions (or CLAUDE.md), here and in every parent directory"},
		Source{".pi/settings.json", "the project's settings, once the project is trusted"})
}

type composer struct {
	in   Input
	plan *Plan
	decision
	bins map[string]string
}

func (c *composer) warn(texts ...string) { c.plan.Warnings = append(c.plan.Warnings, texts...) }

// directory settles where pi runs: a schedule says it, else an alias may, else it is where cradle was started.
func (c *composer) directory() error {
	p, in := c.plan, c.in
	switch {
	case in.Scheduled != nil:
		p.CWD, p.CWDReason = in.Scheduled.CWD, "the schedule's cwd"
		if _, err := os.Stat(p.CWD); err != nil {
			c.warn(fmt.Sprintf(`schedule "%s" cwd does not exist: %s`, in.Scheduled.Slug, p.CWD))
		}
	case in.AliasCWD != "":
		p.CWD, p.CWDReason = in.AliasCWD, "the cwd of the alias "+in.Alias
		if info, err := os.Stat(p.CWD); err != nil || !info.IsDir() {
			return usererr.New(`Alias "%s" cwd is not a directory: %s`, in.Alias, p.CWD)
		}
	default:
		p.CWD, p.CWDReason = in.CWD, "where cradle was started"
	}
	return nil
}

// state keeps the state directory as it is spelled, unless it is relative and pi, which gets that spelling, runs elsewhere.
func (c *composer) state() {
	if root := &c.in.State.Root; !filepath.IsAbs(*root) && c.plan.CWD != c.in.CWD {
		*root = filepath.Join(c.in.CWD, *root)
	}
	c.plan.State = c.in.State
}

// programs finds what the run needs, the sandbox first. pi has to be there in any case: under sbx it gives the guest's version.
func (c *composer) programs() error {
	c.bins = map[string]string{"pi": "pi", "nono": "nono", "sbx": "sbx"}
	if c.in.Lookup == nil {
		return nil
	}
	for _, name := range []string{string(c.backend), "pi"} {
		if name == "" {
			continue
		}
		path, err := c.in.Lookup(name)
		if err != nil {
			return err
		}
		c.bins[name] = path
	}
	return nil
}

func (c *composer) sandbox() error {
	p, in := c.plan, c.in
	if c.backend == None {
		return nil
	}
	if c.backend == Nono {
		if err := nono.CheckCWD(p.CWD, in.Home); err != nil {
			return err
		}
	}
	gitDir := nono.LinkedGitDir(p.CWD)
	stateName := base(in.State.Path())
	if c.backend == Sbx {
		p.sbxBin = c.bins["sbx"]
		p.Mounts = sbx.Mounts(sbx.Input{Home: in.Home, CWD: p.CWD, Agent: p.Agent, State: in.State.Path(), GitDir: gitDir, Folder: c.grants})
		p.Name = sbx.Name(stateName, p.Mounts)
		c.warn(sbx.Disclosures(c.network, len(c.grants.UnixSocketDirBind) > 0)...)
		return nil
	}
	profile := nono.Input{
		Name: stateName, Home: in.Home, CWD: p.CWD, Agent: p.Agent, State: in.State.Path(), GitDir: gitDir,
		Folder: c.grants, Rules: c.rules, Network: c.network,
	}
	p.Grants, p.Rules = nono.Grants(profile), c.rules
	p.Profile = &Write{in.State.Profile(), nono.Profile(profile), "what nono lets pi reach"}
	p.Env = append(p.Env, Env{"MISE_CACHE_DIR", in.State.MiseCache(), "mise can't write its shared cache inside the sandbox"})
	return nil
}

func (c *composer) generated() {
	write := func(name, content, reason string) {
		c.plan.Extensions = append(c.plan.Extensions, Write{filepath.Join(c.in.State.Extensions(), name), content, reason})
	}
	if models := c.in.Folder.Models; models != nil {
		if c.backend == Sbx {
			models = sbx.RewriteProviders(models)
		}
		write(extgen.ProvidersFile, extgen.Providers(models), "registers the providers of models.json")
	}
	if c.backend == Nono {
		write(extgen.FallbackFile, extgen.Fallback, "lets a browser tool work inside nono")
	}
}

// arguments builds the command line. Its order is load-bearing: pi loads extensions in the order of -e, so providers come
// first and the agent's own last, and a scheduled run's prompt must be the last word.
func (c *composer) arguments() {
	p, in, f := c.plan, c.in, c.in.Folder
	c.wrap()
	before := &p.before
	add := func(to *[]Part, reason string, words ...string) { *to = append(*to, Part{words, reason}) }
	add(before, "pi itself", c.piProgram())
	if f.HasSystem {
		add(before, "replaces pi's prompt", "--system-prompt", f.SystemPath())
	}
	if f.HasAppend {
		add(before, "added to pi's prompt", "--append-system-prompt", f.AppendPath())
	}
	add(before, "personal and project extensions stay out", "--no-extensions")
	add(before, "personal and project skills stay out", "--no-skills")
	add(before, "personal and project prompt templates stay out", "--no-prompt-templates")
	for _, w := range p.Extensions {
		add(before, w.Reason, "-e", w.Path)
	}

	after := &p.after
	for _, e := range f.Extensions {
		add(after, "the agent's own extension", "-e", e)
	}
	if f.HasSkills {
		add(after, "the agent's skills", "--skill", f.SkillsDir())
	}
	for _, s := range []struct {
		flag, key string
		value     *string
	}{
		{"--provider", "defaultProvider", f.Settings.Provider},
		{"--model", "defaultModel", f.Settings.Model},
		{"--thinking", "defaultThinkingLevel", f.Settings.Thinking},
	} {
		if s.value != nil {
			add(after, s.key+" in settings.json", s.flag, *s.value)
		}
	}
	add(after, "this agent's session history", "--session-dir", in.State.Sessions())
	for _, a := range in.Passthrough {
		add(after, "given after --", a)
	}
	if s := in.Scheduled; s != nil {
		add(after, "a timer waits for no one", "--print")
		add(after, "the task's name", "--name", s.Name)
		add(after, "no trust question, and no trust given", "--no-approve")
		p.Stdin = new(string) // nobody is there to type
		if onStdin(s.Prompt) {
			*p.Stdin = s.Prompt
		} else {
			add(after, "what follows is the prompt", "--")
			add(after, "the task's prompt", s.Prompt)
		}
	}
}

// passable refuses what no program can be given.
func passable(parts []Part) error {
	for _, p := range parts {
		if text := strings.Join(p.Words, " "); strings.Contains(text, "\x00") {
			return usererr.New("%q can't be passed to pi: it holds a NUL character (%s)", text, p.Reason)
		}
	}
	return nil
}

// maxWord is below what Linux lets one argument of a program be.
const maxWord = 96 << 10

// onStdin says whether a prompt can't be an argument: pi would take it for the name of a file, or the system would refuse it.
func onStdin(prompt string) bool { return strings.HasPrefix(prompt, "@") || len(prompt) > maxWord }

func (c *composer) piProgram() string {
	if c.backend == Sbx {
		return "pi" // the guest's
	}
	return c.bins["pi"]
}

func (c *composer) wrap() {
	p := c.plan
	add := func(reason string, words ...string) { p.wrapper = append(p.wrapper, Part{words, reason}) }
	switch c.backend {
	case Nono:
		add("the sandbox", c.bins["nono"], "run")
		if !p.Verbose {
			add("only pi's own output", "--silent")
		}
		add("what pi may reach", "--profile", p.Profile.Path)
		add("what follows runs inside", "--")
	case Sbx:
		add("the sandbox", p.sbxBin, "exec", "-i")
		if c.in.StdoutIsTerminal {
			add("stdout is a terminal", "-t")
		}
		add("pi's settings and login are mounted there", "-e", "HOME="+c.in.Home)
		add(p.CWDReason, "-w", p.CWD)
		add("named after its mounts", p.Name)
	}
}
