package rpctest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"pi-cradle/rpc/wire"
)

// Session is a pi session: what is told of it at its start, and its conversation, as far as that came from the helper. It may be
// opened by one Pi after another.
type Session struct {
	Start wire.SessionStartParams

	mu       sync.Mutex
	messages []wire.SendParams
	prompts  []string
}

// NewSession makes an empty session of a TUI in cwd, with everything a helper insists on. Change Start before opening it.
func NewSession(agentDir, cwd string) *Session { return OpenSession(agentDir, cwd, uuid.NewString()) }

// OpenSession is NewSession with a given id, such as a delegate's.
func OpenSession(agentDir, cwd, id string) *Session {
	dir := filepath.Join(agentDir, "sessions")
	return &Session{Start: wire.SessionStartParams{
		SessionID: id, SessionFile: filepath.Join(dir, id+".jsonl"), SessionDir: dir, Cwd: cwd, Reason: "startup", Mode: "tui",
		HasUI: true, Trusted: true, AgentDir: agentDir, PiVersion: "1.6.0", PiCommand: []string{"/bin/false"}, Thinking: "off",
	}}
}

// ID is the session's id.
func (s *Session) ID() string { return s.Start.SessionID }

// claims is what the helper last left for the extension to read before it is up itself.
func (s *Session) claims() wire.Claims {
	var c wire.Claims
	data, err := os.ReadFile(filepath.Join(s.Start.AgentDir, "squire", "owners", s.ID(), "claims.json"))
	if err != nil || json.Unmarshal(data, &c) != nil {
		return wire.Claims{}
	}
	return c
}

// Messages is a copy of the messages that the conversation holds.
func (s *Session) Messages() []wire.SendParams {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// Prompts is a copy of the prompts that were submitted by the helper.
func (s *Session) Prompts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.prompts)
}

// Count says how many messages contain text.
func (s *Session) Count(text string) int {
	n := 0
	for _, m := range s.Messages() {
		if strings.Contains(m.Content, text) {
			n++
		}
	}
	return n
}

func (s *Session) addMessage(m wire.SendParams) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, m)
}

func (s *Session) addPrompt(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts = append(s.prompts, text)
}

func (s *Session) entries(p wire.EntriesParams) wire.EntriesResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found wire.EntriesResult
	for _, id := range p.Messages {
		if slices.ContainsFunc(s.messages, func(m wire.SendParams) bool { return m.ID == id }) {
			found.Messages = append(found.Messages, id)
		}
	}
	for _, start := range p.Prompts {
		if slices.ContainsFunc(s.prompts, func(text string) bool { return strings.HasPrefix(text, start) }) {
			found.Prompts = append(found.Prompts, start)
		}
	}
	return found
}
