package folder

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"pi-cradle/cradle/alias"
	"pi-cradle/internal/jsjson"
	"pi-cradle/internal/usererr"
)

// Stance is what one sandbox file says about being sandboxed at all.
type Stance int

const (
	Unconfigured Stance = iota // no such file
	Disabled                   // "sandbox": false
	Enabled
)

// Posture is one sandbox file. A disabled one is read as well: its grants serve a run that is sandboxed all the same.
type Posture struct {
	Stance  Stance
	Network *Network // nil when the file sets no policy
	Grants  Grants
	Rules   []string // raw macOS Seatbelt rules, trimmed
}

// Network is a policy for outgoing and listening connections. Unset parts are nil.
type Network struct {
	Block                *bool
	Profile              *string
	AllowDomain          []string
	OpenPort, ListenPort []int
}

// Restricts says whether the policy keeps pi from reaching hosts, so that running without it matters.
func (n *Network) Restricts() bool {
	return n != nil && (n.Block != nil && *n.Block || len(n.AllowDomain) > 0)
}

// Grants are paths as the file spells them: the home not expanded, nothing cleaned.
type Grants struct{ Read, Write, Allow, UnixSocketDirBind []string }

const (
	nonoFile    = "nono.json"
	sbxFile     = "sbx.json"
	rulesKey    = "unsafe_macos_seatbelt_rules"
	socketsKey  = "unix_socket_dir_bind"
	maximumPort = 65535
)

func (l *loader) sandbox() {
	if l.HasSandbox = l.directory(sandboxDir); !l.HasSandbox {
		return
	}
	dir := filepath.Join(l.Dir, sandboxDir)
	hasNono, hasSbx := l.exists(filepath.Join(dir, nonoFile)), l.exists(filepath.Join(dir, sbxFile))
	if !hasNono && !hasSbx {
		l.warn("sandbox/ has no nono.json or sbx.json — sandboxing stays off unless --sandbox is passed")
	}
	if hasNono {
		l.Nono = l.posture(filepath.Join(dir, nonoFile), reader.nono)
	}
	if hasSbx {
		l.Sbx = l.posture(filepath.Join(dir, sbxFile), reader.sbx)
	}
}

// exists counts a dangling link as present, so that it is an error and not a run without the sandbox that was meant. So is a
// directory that can't be looked into.
func (l *loader) exists(path string) bool {
	_, err := os.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.fail(usererr.New("%s could not be read: %w", path, reason(err)))
		return false
	}
	return err == nil
}

func (l *loader) posture(path string, read func(reader, *Posture)) Posture {
	p := Posture{Stance: Enabled}
	o := l.object(path)
	if o == nil {
		return p
	}
	r := reader{l, path, o}
	if b := r.boolean("sandbox"); b != nil && !*b {
		p.Stance = Disabled
	}
	read(r, &p)
	return p
}

func (r reader) nono(p *Posture) {
	if n := r.object("network"); n != nil {
		p.Network = reader{r.loader, r.path + " network", n}.network(true)
	}
	if r.o.Has("net") {
		r.warn(`%s: "net" was removed — use "network" instead (see ARCHITECTURE.md) — ignored`, r.path)
	}
	r.noOthers("sandbox", "network", "filesystem", rulesKey, "net")
	if fsys := r.object("filesystem"); fsys != nil {
		r.filesystem(fsys, &p.Grants, true)
	}
	p.Rules = r.rules()
}

func (r reader) sbx(p *Posture) {
	if n := r.object("network"); n != nil {
		for _, key := range []string{"network_profile", "open_port", "listen_port"} {
			if n.Has(key) {
				r.warn("%s: %s is nono-only — ignored", r.path, key)
			}
		}
		p.Network = reader{r.loader, r.path + " network", n}.network(false)
	}
	if r.o.Has(rulesKey) {
		r.warn("%s: %s is nono-only — the sbx VM boundary replaces Seatbelt; ignored", r.path, rulesKey)
	}
	r.noOthers("sandbox", "network", "filesystem", rulesKey)
	if fsys := r.object("filesystem"); fsys != nil {
		if fsys.Has(socketsKey) {
			r.warn("%s: %s is nono-only — Unix sockets cannot cross the sbx VM boundary; ignored", r.path, socketsKey)
		}
		r.filesystem(fsys, &p.Grants, false)
	}
}

// network reads a policy. Without full, only what the sbx backend knows of it; the caller has named the rest.
func (r reader) network(full bool) *Network {
	r.noOthers("block", "network_profile", "allow_domain", "open_port", "listen_port")
	n := &Network{Block: r.boolean("block")}
	if full {
		n.Profile = r.text("network_profile")
	}
	n.AllowDomain = r.domains()
	if full {
		n.OpenPort, n.ListenPort = r.ports("open_port"), r.ports("listen_port")
	}
	if n.Block == nil && n.Profile == nil && n.AllowDomain == nil && n.OpenPort == nil && n.ListenPort == nil {
		return nil
	}
	return n
}

func (r reader) domains() []string {
	var kept []string
	blank := false
	for _, d := range r.strings("allow_domain") {
		if d = jsjson.Trim(d); d == "" {
			blank = true
		} else {
			kept = append(kept, d)
		}
	}
	if blank {
		r.warn("%s: allow_domain entries must be non-empty — blanks ignored", r.path)
	}
	return kept
}

func (r reader) ports(key string) []int {
	list, _ := typed[[]any](r, key, "an array of port numbers")
	var ports []int
	var bad []string
	for _, v := range list {
		if f, ok := v.(float64); ok && f >= 0 && f <= maximumPort && f == math.Trunc(f) {
			ports = append(ports, int(f))
		} else {
			bad = append(bad, jsjson.Text(v))
		}
	}
	if len(bad) > 0 {
		r.warn("%s: %s entries must be integers 0–65535 — ignored: %s", r.path, key, strings.Join(bad, ", "))
	}
	return ports
}

// filesystem reads the grants. Messages about a list begin with the file alone, unlike those about unknown keys.
func (r reader) filesystem(o *jsjson.Object, g *Grants, sockets bool) {
	reader{r.loader, r.path + " filesystem", o}.noOthers("read", "write", "allow", socketsKey)
	in := reader{r.loader, r.path, o}
	g.Read, g.Write, g.Allow = in.paths("read"), in.paths("write"), in.paths("allow")
	if sockets {
		g.UnixSocketDirBind = in.paths(socketsKey)
	}
}

func (r reader) paths(key string) []string {
	return r.accepted(key, "absolute, ~/, or $HOME/ paths", func(path string) (string, bool) { return path, alias.PathShaped(path) })
}

func (r reader) rules() []string {
	return r.accepted(rulesKey, "parenthesized s-expressions", func(rule string) (string, bool) {
		rule = jsjson.Trim(rule)
		return rule, strings.HasPrefix(rule, "(") && strings.HasSuffix(rule, ")")
	})
}
