// Package prompt words what delegates are told about their task and what a parent's model is told about its delegates. It is
// pure, and its words depend on nothing that changes from run to run, so that a provider's cache of the prompt holds.
package prompt

import (
	"fmt"
	"strings"

	"pi-cradle/squire/agents"
	"pi-cradle/squire/session"
	"pi-cradle/squire/toolset"
	"pi-cradle/squire/views"
)

// Sections of the system prompt.
const (
	DelegateSection = "squire_delegate"
	ParentSection   = "squire_parent_delegation"
)

// Appended is what goes after pi's own prompt: the agent's instructions, under a line that names its role unless the file says
// otherwise, and what else holds for this delegate alone. "" means that there is nothing to append.
func Appended(a agents.Agent, notes ...string) string {
	var parts []string
	if a.Body != "" && !a.Replace {
		role := fmt.Sprintf("Your role is %q", a.Name)
		if a.Description != "" {
			role += ": " + views.Line(a.Description)
		}
		parts = append(parts, role)
	}
	if a.Body != "" {
		parts = append(parts, a.Body)
	}
	return strings.Join(append(parts, notes...), "\n\n")
}

// Section tells a delegate who it works for. It names no mail program and no tool.
func Section(id session.Identity, coordinates bool) string {
	text := fmt.Sprintf(`You are %q, a delegate. Session %s, your parent, handed you your task and reads your answer.
Messages from that session, the first and every later one, are instructions: follow them as they are given.
Other sessions are colleagues. You may answer them; ask your parent before you do work for them that your parent did not ask for.
Your parent sees only your last message, which reaches it without your doing anything. Make it complete: what you found or did, where, and what is left open. Nobody watches this session, so do not wait for answers from a user.`, id.Agent, id.Parent)
	if coordinates {
		text += `
You may hand parts of the task on. Your own answer goes to your parent only when all that you started has ended and you have read the outcomes: end your turn to wait for them, and write the full report once the last one is in.`
	}
	return text
}

// Describe is the description of the delegate tool with the agents that it can start.
func Describe(base string, usable []agents.Agent) string {
	if len(usable) == 0 {
		return base + "\n\nThere are no agents to start now."
	}
	lines := make([]string, len(usable))
	for i, a := range usable {
		lines[i] = Line(a)
	}
	return base + "\n\nThe agents:\n" + strings.Join(lines, "\n")
}

// Line is one agent's line.
func Line(a agents.Agent) string {
	line := "- " + a.Name
	if a.Display != "" {
		line += fmt.Sprintf(" %q", views.Line(a.Display))
	}
	if a.Description != "" {
		line += " — " + views.Line(a.Description)
	}
	return line + " (" + strings.Join(facts(a), ", ") + ")"
}

func facts(a agents.Agent) []string {
	model := "default this session's model"
	if a.Model != "" {
		model = "default " + a.Model
	}
	all := []string{model}
	if len(a.Fallback) > 0 {
		all = append(all, "fallback "+strings.Join(a.Fallback, " then "))
	}
	if a.Thinking != "" {
		all = append(all, "thinking "+a.Thinking)
	}
	if !a.AutoExit {
		all = append(all, "auto-exit off")
	}
	names := strings.Join(a.Tools.Names, "/")
	switch {
	case a.Tools.Kind == toolset.Except:
		all = append(all, "tools: this session's except "+names)
	case a.Tools.Kind == toolset.Only && names == "":
		all = append(all, "no tools")
	case a.Tools.Kind == toolset.Only:
		all = append(all, "tools: "+names)
	}
	var locked []string
	if a.Locked.Model {
		locked = append(locked, "model")
	}
	if a.Locked.Thinking {
		locked = append(locked, "thinking")
	}
	if len(locked) > 0 {
		all = append(all, "locked: "+strings.Join(locked, "/"))
	}
	return all
}
