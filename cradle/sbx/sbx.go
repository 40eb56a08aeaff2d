// Package sbx composes what sbx, which runs pi in a microVM of its own, needs for a run: mounts, the setup steps as data, and
// the command line.
package sbx

import (
	"path/filepath"
	"slices"
	"strings"

	"pi-cradle/cradle/alias"
	"pi-cradle/cradle/folder"
	"pi-cradle/cradle/state"
	"pi-cradle/internal/usererr"
)

// Mount is one host path that the guest sees under its own name.
type Mount struct {
	Path     string
	ReadOnly bool
	Reason   string
}

// Access is ro or rw.
func (m Mount) Access() string {
	if m.ReadOnly {
		return "ro"
	}
	return "rw"
}

// Input is what the mounts depend on.
type Input struct {
	Home, CWD, Agent, State string
	GitDir                  string // of a linked checkout, "" for none
	Folder                  folder.Grants
}

// Mounts lists the mounts in order. A path that comes up twice keeps its first place and is writable if either was.
func Mounts(in Input) []Mount {
	var out []Mount
	add := func(path string, readOnly bool, reason string) {
		if i := slices.IndexFunc(out, func(m Mount) bool { return m.Path == path }); i >= 0 {
			out[i].ReadOnly = out[i].ReadOnly && readOnly
			return
		}
		out = append(out, Mount{path, readOnly, reason})
	}
	add(in.CWD, false, "the directory pi works in")
	add(in.Agent, true, "the agent folder")
	add(in.State, false, "this agent's state: sessions and generated extensions")
	add(filepath.Join(in.Home, ".pi", "agent"), false, "pi's own settings, login and trust decisions")
	if in.GitDir != "" {
		add(in.GitDir, false, "the git directory that this checkout shares, hooks and config included")
	}
	for _, list := range []struct {
		paths    []string
		readOnly bool
	}{{in.Folder.Read, true}, {in.Folder.Write, false}, {in.Folder.Allow, false}} {
		for _, p := range list.paths {
			add(alias.ExpandHome(p, in.Home), list.readOnly, "sandbox/sbx.json grants it")
		}
	}
	return out
}

// Name is the sandbox's name. sbx fixes the mounts when it creates a sandbox, so another set of mounts gives another name.
func Name(stateName string, mounts []Mount) string {
	keys := make([]string, len(mounts))
	for i, m := range mounts {
		keys[i] = m.Path + ":" + m.Access()
	}
	slices.SortFunc(keys, compareUTF16)
	return "cradle-" + stateName + "-" + state.Hash8(strings.Join(keys, "|"))
}

// compareUTF16 orders by UTF-16 code units: unlike in UTF-8, characters beyond U+FFFF come before U+E000 to U+FFFF.
func compareUTF16(a, b string) int {
	ra, rb := []rune(a), []rune(b)
	for i := 0; i < len(ra) && i < len(rb); i++ {
		if ra[i] != rb[i] {
			return int(unitRank(ra[i])) - int(unitRank(rb[i]))
		}
	}
	return len(ra) - len(rb)
}

// unitRank moves the characters that UTF-16 writes as surrogates (from d800) below those from U+E000 on.
func unitRank(r rune) rune {
	switch {
	case r >= 0x10000:
		return r - 0x10000 + 0xD800
	case r >= 0xE000:
		return r + 0x110000
	}
	return r
}

// Kind is what a step is for.
type Kind string

const (
	Create    Kind = "create"
	Policy    Kind = "policy"
	Provision Kind = "provision"
)

// Step is one command to run, with nothing on its input and its output dropped, before pi starts.
type Step struct {
	Kind   Kind
	Argv   []string
	Reason string
	name   string
}

// Failure judges a step that did not exit 0. It returns nil when the run may go on: the sandbox of this name, and so with
// these mounts, is there already.
func (s Step) Failure(stderr string) error {
	what := ""
	switch s.Kind {
	case Create:
		if strings.Contains(strings.ToLower(stderr), "already exists") {
			return nil
		}
		what = "Failed to create sbx sandbox " + s.name
	case Policy:
		what = "Failed to apply sbx network policy (" + s.name + ")"
	default:
		what = "Failed to provision pi in sbx sandbox " + s.name
	}
	// The first line is the error; what follows is indented, so that it can't be taken for an error of its own.
	return usererr.New("%s: %s", what, strings.ReplaceAll(strings.TrimSpace(stderr), "\n", "\n  "))
}

// Steps are the commands that prepare the sandbox, in order. hostVersion pins pi in the guest; "" leaves it to npm.
func Steps(bin, name string, mounts []Mount, n *folder.Network, hostVersion string) []Step {
	create := []string{bin, "create", "shell"}
	for _, m := range mounts {
		if m.ReadOnly {
			create = append(create, m.Path+":ro")
		} else {
			create = append(create, m.Path)
		}
	}
	create = append(create, "--name", name, "-q")
	steps := []Step{{Create, create, "a sandbox with exactly these mounts", name}}
	if argv, reason := policy(bin, name, n); argv != nil {
		steps = append(steps, Step{Policy, argv, reason, name})
	}
	provision := []string{bin, "exec", name, "bash", "-lc", script(hostVersion)}
	return append(steps, Step{Provision, provision, "pi in the guest, in the host's version", name})
}

func policy(bin, name string, n *folder.Network) ([]string, string) {
	switch {
	case n == nil:
		return nil, ""
	case n.Block != nil && *n.Block:
		return []string{bin, "policy", "deny", "network", "--sandbox", name, "**"}, "the network policy blocks everything"
	case len(n.AllowDomain) > 0:
		return []string{bin, "policy", "allow", "network", "--sandbox", name, resources(n.AllowDomain)}, "the network policy's hosts"
	}
	return nil, ""
}

const hostAlias = "host.docker.internal"

// resources spells hosts as sbx wants them: a host does not include its subdomains, and the host machine's own loopback has
// another name in the guest.
func resources(domains []string) string {
	var out []string
	loopback := false
	for _, d := range domains {
		switch {
		case isLoopback(d):
			loopback = true
		case isIPv4(d):
			out = append(out, d)
		default:
			out = append(out, d, "*."+d)
		}
	}
	if loopback {
		out = append(out, hostAlias)
	}
	return strings.Join(out, ",")
}

func isLoopback(host string) bool { return host == "localhost" || host == "127.0.0.1" }

func isIPv4(s string) bool {
	groups := strings.Split(s, ".")
	for _, g := range groups {
		if g == "" || strings.Trim(g, "0123456789") != "" {
			return false
		}
	}
	return len(groups) == 4
}

const npmPackage = "@earendil-works/pi-coding-agent"

func script(hostVersion string) string {
	if hostVersion == "" {
		return "command -v pi >/dev/null 2>&1 || npm i -g " + npmPackage
	}
	return `command -v pi >/dev/null 2>&1 && [ "$(pi --version 2>/dev/null)" = "` + hostVersion + `" ] || npm i -g ` + npmPackage + "@" + hostVersion
}

// PinnedVersion returns what may stand in the guest's shell command. A version that is not shaped like one gives "" and a
// warning.
func PinnedVersion(hostVersion string) (version, warning string) {
	for i := range len(hostVersion) {
		c := hostVersion[i]
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == '-' || c == '+' {
			continue
		}
		return "", "the host's pi reports a version that is none — pi in the sbx sandbox is not pinned to it"
	}
	return hostVersion, ""
}

// Disclosures are what the user should know about the difference between the policy as written and as sbx enforces it.
func Disclosures(n *folder.Network, sockets bool) []string {
	var out []string
	if n != nil && n.Profile != nil {
		out = append(out, "network_profile is nono-only — ignored under the sbx backend")
	}
	if n != nil && (n.OpenPort != nil || n.ListenPort != nil) {
		out = append(out, "open_port/listen_port are nono-only — guest-local ports are unrestricted and host services are reachable via host.docker.internal under sbx")
	}
	if n != nil && len(n.AllowDomain) > 0 && (n.Block == nil || !*n.Block) {
		out = append(out, "sbx allow rules add to your global sbx policy but cannot subtract from it — run `sbx policy init deny-all` for strict allowlist semantics (nono enforces the allowlist exactly)")
	}
	if sockets {
		out = append(out, "unix_socket_dir_bind is nono-only — Unix sockets cannot cross the sbx VM boundary; grant ignored")
	}
	return out
}
