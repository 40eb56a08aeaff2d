package compose

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pi-cradle/cradle/folder"
	"pi-cradle/cradle/sbx"
)

const (
	notFound    = "sandbox/nono.json or sbx.json not found"
	offNono     = "sandbox disabled by sandbox/nono.json"
	offSbx      = "sandbox disabled by sandbox/sbx.json"
	bare        = " — agent is running without OS isolation (--sandbox to force enable)"
	forcedOn    = " — sandbox forced on to enforce the requested network policy (--no-sandbox to override)"
	tie         = "both sandbox/nono.json and sandbox/sbx.json declare a sandbox — using nono (pass --sandbox-backend sbx to override)"
	ineffective = "network policy has no effect without the sandbox — pi runs with no network isolation (--sandbox to enforce it)"
	blanks      = "--allow-host entries must be non-empty — blanks ignored"
)

func TestBackend(t *testing.T) {
	const none, off, on = folder.Unconfigured, folder.Disabled, folder.Enabled
	yes, no := Flags{Sandbox: ptr(true)}, Flags{Sandbox: ptr(false)}
	offline, host := Flags{Offline: true}, Flags{AllowHost: []string{" "}}
	for _, c := range []struct {
		nono, sbx folder.Stance
		flags     Flags
		want      Backend
		warnings  []string
	}{
		{none, none, Flags{}, None, []string{notFound + bare}},
		{off, none, Flags{}, None, []string{offNono + bare}},
		{none, off, Flags{}, None, []string{offSbx + bare}},
		{off, off, Flags{}, None, []string{offNono + bare}},
		{on, none, Flags{}, Nono, nil},
		{none, on, Flags{}, Sbx, nil},
		{off, on, Flags{}, Sbx, nil},
		{on, off, Flags{}, Nono, nil},
		{on, on, Flags{}, Nono, []string{tie}},
		{none, none, yes, Nono, nil},
		{off, none, yes, Nono, nil},
		{none, on, yes, Sbx, nil},
		{none, off, yes, Nono, nil},
		{on, on, yes, Nono, []string{tie}},
		{on, on, no, None, nil},
		{off, none, no, None, nil},
		{on, on, Flags{Backend: Sbx}, Sbx, nil},
		{on, none, Flags{Backend: Sbx}, Sbx, nil},
		{none, off, Flags{Backend: Nono}, Nono, nil},
		{on, on, Flags{Backend: Sbx, Sandbox: ptr(false)}, None, nil},
		{none, on, Flags{Backend: Nono, Sandbox: ptr(true)}, Nono, nil},
		{none, none, offline, Nono, []string{notFound + forcedOn}},
		{off, none, offline, Nono, []string{offNono + forcedOn}},
		{none, on, offline, Sbx, nil},
		{none, none, host, Nono, []string{notFound + forcedOn, blanks}},
		{none, none, Flags{Offline: true, Sandbox: ptr(false)}, None, []string{ineffective}},
		{none, none, Flags{AllowHost: []string{"a"}, Sandbox: ptr(false)}, None, []string{ineffective}},
	} {
		d := decide(&folder.Folder{Nono: folder.Posture{Stance: c.nono}, Sbx: folder.Posture{Stance: c.sbx}}, c.flags)
		if d.backend != c.want || !slices.Equal(d.warnings, c.warnings) || d.why == "" {
			t.Errorf("nono %d, sbx %d, %+v: got %q because %q, %q", c.nono, c.sbx, c.flags, d.backend, d.why, d.warnings)
		}
	}
}

func TestNetworkPolicyIsReplacedNotMerged(t *testing.T) {
	own, vm := &folder.Network{OpenPort: []int{1}, AllowDomain: []string{"own"}}, &folder.Network{AllowDomain: []string{"vm"}}
	f := &folder.Folder{Nono: folder.Posture{Stance: folder.Enabled, Network: own}, Sbx: folder.Posture{Network: vm, Grants: folder.Grants{Read: []string{"/vm"}}}}
	for _, c := range []struct {
		flags    Flags
		want     *folder.Network
		warnings []string
	}{
		{Flags{}, own, nil},
		{Flags{AllowHost: []string{" a ", "", "b"}}, &folder.Network{AllowDomain: []string{"a", "b"}}, []string{blanks}},
		{Flags{AllowHost: []string{" ", ""}}, own, []string{blanks}},
		{Flags{AllowHost: []string{"a"}, Offline: true}, &folder.Network{Block: ptr(true)}, nil},
		{Flags{Backend: Sbx}, vm, nil},
		{Flags{Sandbox: ptr(false)}, own, []string{ineffective}},
	} {
		d := decide(f, c.flags)
		if !reflect.DeepEqual(d.network, c.want) || !slices.Equal(d.warnings, c.warnings) {
			t.Errorf("%+v: %+v, %q", c.flags, d.network, d.warnings)
		}
	}
	if d := decide(f, Flags{Backend: Sbx}); !reflect.DeepEqual(d.grants, f.Sbx.Grants) {
		t.Errorf("grants of the other file: %+v", d.grants)
	}
	f.Nono.Network = &folder.Network{OpenPort: []int{1}, Profile: ptr("p")}
	if d := decide(f, Flags{Sandbox: ptr(false)}); d.warnings != nil {
		t.Errorf("ports alone: %q", d.warnings)
	}
}

func TestOrderOfWarnings(t *testing.T) {
	f := fullAgent(t)
	in := input(f)
	in.Warnings = []string{"of the alias", "of the schedule"}
	in.Flags = Flags{Backend: Sbx, AllowHost: []string{"a", " "}}
	in.Scheduled = &Scheduled{Slug: "s", Name: "s", CWD: "/nowhere/at/all", Prompt: "p"}
	got := plan(t, in).Warnings
	if len(got) != 6 || !slices.Equal(got[:5], []string{"of the alias", "of the schedule", `schedule "s" cwd does not exist: /nowhere/at/all`, f.Warnings[0], blanks}) ||
		!strings.Contains(got[5], "cannot subtract") {
		t.Errorf("%q", got)
	}
}

func TestWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	in := input(fullAgent(t))
	in.Alias, in.AliasCWD = "a", dir
	p := plan(t, in)
	if p.CWD != dir || !strings.Contains(p.Profile.Content, `"`+dir+`"`) || strings.Contains(p.Profile.Content, "/work/project") {
		t.Errorf("%s: %s", p.CWD, p.Profile.Content)
	}
	in.Flags.Backend = Sbx
	if p = plan(t, in); p.Mounts[0].Path != dir {
		t.Errorf("%+v", p.Mounts)
	}
	for _, bad := range []string{file, dir + "/none"} {
		in.AliasCWD = bad
		if _, err := Run(in); err == nil || err.Error() != `Alias "a" cwd is not a directory: `+bad {
			t.Error(err)
		}
	}
	in.Scheduled = &Scheduled{Slug: "s", CWD: dir}
	if p = plan(t, in); p.CWD != dir {
		t.Error("the alias beats the schedule")
	}
}

func TestDegenerateWorkingDirectory(t *testing.T) {
	for _, cwd := range []string{"/home/u", "/home", "/home/u/.local"} {
		in := input(fullAgent(t))
		in.CWD = cwd
		if p, err := Run(in); err == nil || !strings.HasPrefix(err.Error(), "cannot sandbox from "+cwd+" ") || len(p.Warnings) != 2 {
			t.Errorf("%v, %q", err, p.Warnings)
		}
		in.Flags.Backend = Sbx
		plan(t, in)
		in.Flags = Flags{Sandbox: ptr(false)}
		plan(t, in)
	}
}

func TestLinkedWorktreeIsGranted(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: /src/modules/m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := input(fullAgent(t))
	in.CWD = dir
	if p := plan(t, in); !strings.Contains(p.Profile.Content, `"/src/modules/m"`) {
		t.Error(p.Profile.Content)
	}
	in.Flags.Backend = Sbx
	if p := plan(t, in); !slices.ContainsFunc(p.Mounts, func(m sbx.Mount) bool { return m.Path == "/src/modules/m" && !m.ReadOnly }) {
		t.Errorf("%+v", p.Mounts)
	}
}

// TestOverridesKeepGrants: a file that opts out still says what a forced sandbox may reach.
func TestOverridesKeepGrants(t *testing.T) {
	f := fullAgent(t)
	f.Nono.Stance = folder.Disabled
	in := input(f)
	in.Flags.Sandbox = ptr(true)
	f.Sbx.Stance = folder.Disabled
	if p := plan(t, in); !strings.Contains(p.Profile.Content, `"/home/u/data"`) || !strings.Contains(p.Profile.Content, "mach-register") {
		t.Error(p.Profile.Content)
	}
}

// TestPersonalFilesThatShapeTheAgentAreNamed: without a prompt file of its own the folder leaves the personal one in force.
func TestPersonalFilesThatShapeTheAgentAreNamed(t *testing.T) {
	named := func(f *folder.Folder, name string) bool {
		return slices.ContainsFunc(plan(t, input(f)).AlsoRead, func(s Source) bool { return s.Path == "/home/u/.pi/agent/"+name })
	}
	f := agent()
	if !named(f, "SYSTEM.md") || named(f, "APPEND_SYSTEM.md") || !named(f, "settings.json") {
		t.Error("append only")
	}
	f.HasSystem = true
	if named(f, "SYSTEM.md") {
		t.Error("both")
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"AZaz09_./:@%+=,-": "AZaz09_./:@%+=,-", "": "''", "has space": "'has space'", "it's": `'it'\''s'`, "é": "'é'", "~": "'~'", "a\nb": "'a\nb'", "*": "'*'", "$x": "'$x'",
	} {
		if got := quote(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}
