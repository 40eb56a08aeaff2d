package compose

import (
	"bytes"
	"encoding/json"

	"pi-cradle/cradle/folder"
)

// document is the machine-readable plan. Field names are a contract with scripts; new ones may be added.
type document struct {
	Version  int          `json:"version"`
	Agent    string       `json:"agent"`
	State    string       `json:"state"`
	CWD      reasoned     `json:"cwd"`
	Sandbox  reasoned     `json:"sandbox"` // none, nono or sbx
	Network  docNetwork   `json:"network"`
	Writes   []reasoned   `json:"writes"`
	Steps    []docStep    `json:"steps"`
	Packages *docPackages `json:"packages"`
	Env      []docEnv     `json:"env"`
	Grants   []docGrant   `json:"grants"`
	Rules    []string     `json:"seatbelt_rules"`
	Command  []docPart    `json:"command"`
	Argv     []string     `json:"argv"`  // without the extensions of packages
	Stdin    *string      `json:"stdin"` // null for the caller's own
	AlsoRead []reasoned   `json:"also_read"`
	Warnings []string     `json:"warnings"`
}

type reasoned struct {
	Value  string `json:"value"`
	Reason string `json:"reason"`
}

type docNetwork struct {
	Block       *bool    `json:"block,omitempty"`
	Profile     *string  `json:"network_profile,omitempty"`
	AllowDomain []string `json:"allow_domain,omitempty"`
	OpenPort    []int    `json:"open_port,omitempty"`
	ListenPort  []int    `json:"listen_port,omitempty"`
	Reason      string   `json:"reason"`
}

type docStep struct {
	Kind   string   `json:"kind"`
	Argv   []string `json:"argv"`
	Reason string   `json:"reason"`
}

type docPackages struct {
	Dir     string   `json:"dir"`
	Command []string `json:"command"`
	Specs   []string `json:"specs"`
}

type docEnv struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Reason string `json:"reason"`
}

type docGrant struct {
	Path   string `json:"path"`
	Access string `json:"access"` // read, allow, write, unix_socket_dir_bind; ro and rw for mounts
	Reason string `json:"reason"`
}

type docPart struct {
	Words  []string `json:"words"`
	Reason string   `json:"reason"`
}

// JSON is the whole plan with its reasons, indented, with a final newline. Lists are never null.
func (p *Plan) JSON() string {
	command := p.Command(nil)
	d := document{
		Version: 1, Agent: p.Agent, State: p.State.Path(),
		CWD:      reasoned{p.CWD, p.CWDReason},
		Sandbox:  reasoned{"none", p.Why},
		Network:  networkDocument(p.Network, p.NetworkWhy),
		Writes:   []reasoned{},
		Steps:    []docStep{},
		Env:      []docEnv{},
		Grants:   []docGrant{},
		Rules:    append([]string{}, p.Rules...),
		Command:  []docPart{},
		Argv:     Argv(command),
		Stdin:    p.Stdin,
		AlsoRead: []reasoned{},
		Warnings: append([]string{}, p.Warnings...),
	}
	if p.Backend != None {
		d.Sandbox.Value = string(p.Backend)
	}
	for _, w := range p.writes() {
		d.Writes = append(d.Writes, reasoned{w.Path, w.Reason})
	}
	steps, _ := p.Steps("")
	for _, s := range steps {
		d.Steps = append(d.Steps, docStep{string(s.Kind), s.Argv, s.Reason})
	}
	if k := p.Packages; k != nil {
		d.Writes = append(d.Writes, reasoned{k.manifest(), "the packages of settings.json"})
		d.Packages = &docPackages{k.Dir, k.Command(), k.specs()}
	}
	for _, e := range p.Env {
		d.Env = append(d.Env, docEnv(e))
	}
	for _, g := range p.Grants {
		d.Grants = append(d.Grants, docGrant{g.Path, string(g.Access), g.Reason})
	}
	for _, m := range p.Mounts {
		d.Grants = append(d.Grants, docGrant{m.Path, m.Access(), m.Reason})
	}
	for _, part := range command {
		d.Command = append(d.Command, docPart(part))
	}
	for _, s := range p.AlsoRead {
		d.AlsoRead = append(d.AlsoRead, reasoned{s.Path, s.Reason})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(d); err != nil {
		panic(err) // strings and numbers always encode
	}
	return b.String()
}

func networkDocument(n *folder.Network, why string) docNetwork {
	if n == nil {
		return docNetwork{Reason: why}
	}
	return docNetwork{n.Block, n.Profile, n.AllowDomain, n.OpenPort, n.ListenPort, why}
}
