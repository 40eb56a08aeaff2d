package folder

import (
	"reflect"
	"testing"
)

func ptr[T any](v T) *T { return &v }

func TestStances(t *testing.T) {
	for content, want := range map[string]Stance{`{"sandbox":false}`: Disabled, `{"sandbox":true}`: Enabled, `{}`: Enabled, `{"sandbox":"no"}`: Enabled, `{"sandbox":null}`: Enabled} {
		f := load(t, files{"sandbox/nono.json": content})
		if f.Nono.Stance != want || f.Sbx.Stance != Unconfigured {
			t.Errorf("nono %s: %+v", content, f)
		}
		if f = load(t, files{"sandbox/sbx.json": content}); f.Sbx.Stance != want || f.Nono.Stance != Unconfigured {
			t.Errorf("sbx %s: %+v", content, f)
		}
	}
	wantWarnings(t, load(t, files{"sandbox/nono.json": `{"sandbox":"no"}`}), "sandbox/nono.json: sandbox must be true or false — ignored")
	wantWarnings(t, load(t, files{"sandbox/": ""}), "sandbox/ has no nono.json or sbx.json — sandboxing stays off unless --sandbox is passed")
	f := load(t, files{"sandbox/nono.json": `{"sandbox":false,"filesystem":{"read":["/n"]}}`, "sandbox/sbx.json": `{"filesystem":{"read":["/s"]}}`})
	if f.Nono.Grants.Read[0] != "/n" || f.Sbx.Grants.Read[0] != "/s" || f.Nono.Stance != Disabled || f.Sbx.Stance != Enabled {
		t.Errorf("%+v", f)
	}
}

func TestNonoNetwork(t *testing.T) {
	full := `{"network":{"block":false,"network_profile":"dev","allow_domain":[" a.com ","b.com"],"open_port":[11434,0,8080.0,1e3],"listen_port":[65535]}}`
	for content, c := range map[string]struct {
		want     *Network
		warnings []string
	}{
		full:                  {&Network{ptr(false), ptr("dev"), []string{"a.com", "b.com"}, []int{11434, 0, 8080, 1000}, []int{65535}}, nil},
		`{"network":{}}`:      {nil, nil},
		`{"network":"block"}`: {nil, []string{"F: network must be an object — ignored"}},
		`{"network":null}`:    {nil, []string{"F: network must be an object — ignored"}},
		`{"network":{"allow_domain":[],"open_port":[],"listen_port":[]}}`: {nil, nil},
		`{"network":{"listen_port":null,"open_port":[11434,70000,"x",-1,1.5,null,[1],{"a":1}],"allow_domain":[7,"ok.com"],"network_profile":[],"block":"yes","bogus":1}}`: {&Network{OpenPort: []int{11434}}, []string{
			"F network: unsupported keys ignored: bogus",
			"F network: block must be true or false — ignored",
			"F network: network_profile must be a string — ignored",
			"F network: allow_domain must be an array of strings — ignored",
			`F network: open_port entries must be integers 0–65535 — ignored: 70000, x, -1, 1.5, null, [1], {"a":1}`,
			"F network: listen_port must be an array of port numbers — ignored",
		}},
		`{"network":{"allow_domain":[" ","","a"]}}`: {&Network{AllowDomain: []string{"a"}}, []string{"F network: allow_domain entries must be non-empty — blanks ignored"}},
	} {
		f := load(t, files{"sandbox/nono.json": content})
		if !reflect.DeepEqual(f.Nono.Network, c.want) {
			t.Errorf("%s: got %+v", content, f.Nono.Network)
		}
		wantWarnings(t, f, spell(c.warnings, "sandbox/nono.json")...)
	}
}

// spell puts the file's name for a leading F.
func spell(warnings []string, name string) []string {
	var out []string
	for _, w := range warnings {
		out = append(out, name+w[1:])
	}
	return out
}

func TestNonoFile(t *testing.T) {
	f := load(t, files{"sandbox/nono.json": `{"unsafe_macos_seatbelt_rules":[" (a) ","--danger","allow mach-register","(b"],"exec":1,"filesystem":{"allow":["/ok","~/ok","$HOME/ok","~","$HOME","--danger","relative/x"],"unix_socket_dir_bind":["/s"],"write":7,"read":["/r/../x/"],"exec":1},"net":null,"network":1,"sandbox":0}`})
	wantWarnings(t, f, spell([]string{
		"F: sandbox must be true or false — ignored",
		"F: network must be an object — ignored",
		`F: "net" was removed — use "network" instead (see ARCHITECTURE.md) — ignored`,
		"F: unsupported keys ignored: exec",
		"F filesystem: unsupported keys ignored: exec",
		"F: write must be an array of strings — ignored",
		"F: allow entries must be absolute, ~/, or $HOME/ paths — ignored: --danger, relative/x",
		"F: unsafe_macos_seatbelt_rules entries must be parenthesized s-expressions — ignored: --danger, allow mach-register, (b",
	}, "sandbox/nono.json")...)
	want := Posture{Stance: Enabled, Rules: []string{"(a)"}, Grants: Grants{
		Read: []string{"/r/../x/"}, Allow: []string{"/ok", "~/ok", "$HOME/ok", "~", "$HOME"}, UnixSocketDirBind: []string{"/s"},
	}}
	if !reflect.DeepEqual(f.Nono, want) {
		t.Errorf("%+v", f.Nono)
	}
	wantWarnings(t, load(t, files{"sandbox/nono.json": `{"unsafe_macos_seatbelt_rules":"(a)","filesystem":"nope"}`}),
		"sandbox/nono.json: filesystem must be an object — ignored",
		"sandbox/nono.json: unsafe_macos_seatbelt_rules must be an array of strings — ignored")
}

func TestSbxFile(t *testing.T) {
	f := load(t, files{"sandbox/sbx.json": `{"net":1,"filesystem":{"x":1,"unix_socket_dir_bind":[],"read":["/r"],"write":["w"],"allow":[1]},"unsafe_macos_seatbelt_rules":null,"network":{"listen_port":null,"open_port":1,"network_profile":"p","y":1,"block":0,"allow_domain":["a",""]},"sandbox":false}`})
	wantWarnings(t, f, spell([]string{
		"F: network_profile is nono-only — ignored",
		"F: open_port is nono-only — ignored",
		"F: listen_port is nono-only — ignored",
		"F network: unsupported keys ignored: y",
		"F network: block must be true or false — ignored",
		"F network: allow_domain entries must be non-empty — blanks ignored",
		"F: unsafe_macos_seatbelt_rules is nono-only — the sbx VM boundary replaces Seatbelt; ignored",
		"F: unsupported keys ignored: net",
		"F: unix_socket_dir_bind is nono-only — Unix sockets cannot cross the sbx VM boundary; ignored",
		"F filesystem: unsupported keys ignored: x",
		"F: write entries must be absolute, ~/, or $HOME/ paths — ignored: w",
		"F: allow must be an array of strings — ignored",
	}, "sandbox/sbx.json")...)
	want := Posture{Stance: Disabled, Network: &Network{AllowDomain: []string{"a"}}, Grants: Grants{Read: []string{"/r"}}}
	if !reflect.DeepEqual(f.Sbx, want) {
		t.Errorf("%+v", f.Sbx)
	}
}

func TestRestricts(t *testing.T) {
	for _, c := range []struct {
		n    *Network
		want bool
	}{{nil, false}, {&Network{Block: ptr(true)}, true}, {&Network{Block: ptr(false)}, false}, {&Network{AllowDomain: []string{"a"}}, true}, {&Network{OpenPort: []int{1}, Profile: ptr("p")}, false}} {
		if got := c.n.Restricts(); got != c.want {
			t.Errorf("%+v: %v", c.n, got)
		}
	}
}
