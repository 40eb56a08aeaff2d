// Package nono composes what nono, a sandbox by operating system policy, needs for a run: the profile and the command line.
package nono

import (
	"os"
	"path/filepath"
	"strings"

	"pi-cradle/cradle/alias"
	"pi-cradle/cradle/folder"
	"pi-cradle/internal/jsjson"
	"pi-cradle/internal/usererr"
)

// Grant is one path of the profile and why the run needs it.
type Grant struct {
	Path   string
	Access Access
	Reason string
}

// Access is the key of the profile that a grant goes under.
type Access string

const (
	Read    Access = "read"
	Allow   Access = "allow" // read and write
	Write   Access = "write"
	Sockets Access = "unix_socket_dir_bind"
)

// Input is what a profile depends on.
type Input struct {
	Name                    string // of the state directory
	Home, CWD, Agent, State string
	GitDir                  string // from LinkedGitDir
	Folder                  folder.Grants
	Rules                   []string
	Network                 *folder.Network
}

// Grants lists what the profile grants, base included, each list in its final order.
func Grants(in Input) []Grant {
	var out []Grant
	add := func(access Access, reason string, paths ...string) {
		for _, p := range paths {
			out = append(out, Grant{p, access, reason})
		}
	}
	own := func(access Access, paths []string) {
		for _, p := range paths {
			add(access, "sandbox/nono.json grants it", alias.ExpandHome(p, in.Home))
		}
	}
	for _, g := range base {
		add(Read, g.reason, g.path)
	}
	add(Read, "the agent folder", in.Agent)
	own(Read, in.Folder.Read)
	add(Allow, "pi's own settings, login and trust decisions", baseAllow)
	add(Allow, "the directory pi works in", in.CWD)
	add(Allow, "this agent's state: sessions and caches", in.State)
	if in.GitDir != "" {
		add(Allow, "the git directory that this checkout shares, hooks and config included", in.GitDir)
	}
	own(Allow, in.Folder.Allow)
	own(Write, in.Folder.Write)
	own(Sockets, in.Folder.UnixSocketDirBind)
	return out
}

// Profile is the profile file, byte for byte: no final newline, keys in a fixed order.
func Profile(in Input) string {
	lists := map[Access][]string{Write: {}}
	for _, g := range Grants(in) {
		lists[g.Access] = append(lists[g.Access], g.Path)
	}
	fsys := jsjson.NewObject()
	for _, access := range []Access{Read, Allow, Write, Sockets} {
		if list, ok := lists[access]; ok {
			fsys.Set(string(access), list)
		}
	}
	profile := object("extends", "default")
	profile.Set("meta", object("name", "cradle-"+in.Name))
	profile.Set("groups", object("include", []string{"node_runtime", "git_config", "unlink_protection"}))
	profile.Set("filesystem", fsys)
	profile.Set("unsafe_macos_seatbelt_rules", append([]string{baseRule}, in.Rules...))
	if in.Network != nil {
		profile.Set("network", network(in.Network))
	}
	return jsjson.Indent(profile)
}

func object(key string, v any) *jsjson.Object {
	o := jsjson.NewObject()
	o.Set(key, v)
	return o
}

func network(n *folder.Network) *jsjson.Object {
	o := jsjson.NewObject()
	if n.Block != nil {
		o.Set("block", *n.Block)
	}
	if n.Profile != nil {
		o.Set("network_profile", *n.Profile)
	}
	if n.AllowDomain != nil {
		o.Set("allow_domain", n.AllowDomain)
	}
	if n.OpenPort != nil {
		o.Set("open_port", n.OpenPort)
	}
	if n.ListenPort != nil {
		o.Set("listen_port", n.ListenPort)
	}
	return o
}

// LinkedGitDir finds the git directory that a linked worktree or submodule at cwd shares with others and that lies outside
// cwd, or "". It reads pointers as text: nothing has to exist at their end. Where git would see nothing, neither do we.
func LinkedGitDir(cwd string) string {
	data, err := readSmall(filepath.Join(cwd, ".git"))
	if err != nil {
		return ""
	}
	pointer, ok := strings.CutPrefix(data, "gitdir:")
	if !ok {
		return ""
	}
	dir := join(cwd, jsjson.Trim(pointer))
	if common, err := readSmall(filepath.Join(dir, "commondir")); err == nil {
		dir = join(dir, jsjson.Trim(common))
	}
	if within(dir, cwd) {
		return ""
	}
	return dir
}

// readSmall reads a pointer file. Anything but a regular file, and anything longer than a path can be, is no pointer.
func readSmall(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxPointer {
		return "", os.ErrInvalid
	}
	data, err := os.ReadFile(path)
	return string(data), err
}

const maxPointer = 64 << 10

func join(dir, p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(dir, p)
}

// within says whether path is dir or lies below it, as text.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// CheckCWD refuses a working directory that nono itself would refuse to grant, with words that say what to do.
func CheckCWD(cwd, home string) error {
	root := filepath.Join(home, ".local", "state", "nono")
	if !within(root, cwd) && !within(cwd, root) {
		return nil
	}
	return usererr.New("cannot sandbox from %s — this directory is (or contains) nono's protected state root (~/.local/state/nono) and nono refuses to start with an overlapping grant; run `cradle run` from a project directory instead", cwd)
}
