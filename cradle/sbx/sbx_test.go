package sbx

import (
	"slices"
	"strings"
	"testing"

	"pi-cradle/cradle/folder"
	"pi-cradle/internal/jsjson"
)

func ptr[T any](v T) *T { return &v }

const bin = "/shims/sbx"

func render(mounts []Mount) string {
	var out []string
	for _, m := range mounts {
		out = append(out, m.Path+":"+m.Access())
	}
	return strings.Join(out, " ")
}

func TestMounts(t *testing.T) {
	in := Input{Home: "/home/u", CWD: "/work/project", Agent: "/agents/helper", State: "/s/helper"}
	if got, want := render(Mounts(in)), "/work/project:rw /agents/helper:ro /s/helper:rw /home/u/.pi/agent:rw"; got != want {
		t.Errorf("got %s", got)
	}
	in.GitDir = "/src/.git"
	in.Folder = folder.Grants{Read: []string{"~/data", "/twice", "/agents/helper", "/ro", "/ro"}, Write: []string{"$HOME/out"}, Allow: []string{"/twice", "~/x/../y/"}, UnixSocketDirBind: []string{"/never"}}
	want := "/work/project:rw /agents/helper:ro /s/helper:rw /home/u/.pi/agent:rw /src/.git:rw /home/u/data:ro /twice:rw /ro:ro /home/u/out:rw /home/u/x/../y/:rw"
	if got := render(Mounts(in)); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	in = Input{Home: "/h", CWD: "/agents/helper", Agent: "/agents/helper", State: "/s"}
	if got := render(Mounts(in)); got != "/agents/helper:rw /s:rw /h/.pi/agent:rw" {
		t.Errorf("a folder that is also the working directory: %s", got)
	}
}

func TestName(t *testing.T) {
	two := []Mount{{Path: "/work/project"}, {Path: "/agents/helper", ReadOnly: true}}
	four := append(slices.Clone(two), Mount{Path: "/home/u/.cradle/agents/helper-1a2b3c4d"}, Mount{Path: "/home/u/.pi/agent"})
	reversed := slices.Clone(four)
	slices.Reverse(reversed)
	for want, mounts := range map[string][]Mount{"e2da818f": two, "26c1efb4": four} {
		if got := Name("helper-1a2b3c4d", mounts); got != "cradle-helper-1a2b3c4d-"+want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if Name("x", four) != Name("x", reversed) {
		t.Error("the order of the mounts counts")
	}
	writable := slices.Clone(two)
	writable[1].ReadOnly = false
	if Name("x", two) == Name("x", writable) || Name("x", two) == Name("x", four) {
		t.Error("another set of mounts has the same name")
	}
}

func TestOrderOfCodeUnits(t *testing.T) {
	got := []string{"\uff00", "b", "\U0001f600", "a", "\ue000", "", "\ud7ff", "ab"}
	slices.SortFunc(got, compareUTF16)
	if want := []string{"", "a", "ab", "b", "\ud7ff", "\U0001f600", "\ue000", "\uff00"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestSteps(t *testing.T) {
	mounts := []Mount{{Path: "/w p"}, {Path: "/a", ReadOnly: true}}
	const unpinned = "command -v pi >/dev/null 2>&1 || npm i -g @earendil-works/pi-coding-agent"
	const pinned = `command -v pi >/dev/null 2>&1 && [ "$(pi --version 2>/dev/null)" = "9.9.9" ] || npm i -g @earendil-works/pi-coding-agent@9.9.9`
	create := "create|/shims/sbx|create|shell|/w p|/a:ro|--name|n|-q"
	for name, c := range map[string]struct {
		network *folder.Network
		version string
		want    []string
	}{
		"open":    {nil, "", []string{create, "provision|/shims/sbx|exec|n|bash|-lc|" + unpinned}},
		"pinned":  {&folder.Network{OpenPort: []int{1}}, "9.9.9", []string{create, "provision|/shims/sbx|exec|n|bash|-lc|" + pinned}},
		"blocked": {&folder.Network{Block: ptr(true), AllowDomain: []string{"a"}}, "", []string{create, "policy|/shims/sbx|policy|deny|network|--sandbox|n|**", "provision|/shims/sbx|exec|n|bash|-lc|" + unpinned}},
		"allowed": {&folder.Network{Block: ptr(false), AllowDomain: []string{"b.com", "a.com"}}, "", []string{create, "policy|/shims/sbx|policy|allow|network|--sandbox|n|b.com,*.b.com,a.com,*.a.com", "provision|/shims/sbx|exec|n|bash|-lc|" + unpinned}},
	} {
		var got []string
		for _, s := range Steps(bin, "n", mounts, c.network, c.version) {
			got = append(got, strings.Join(append([]string{string(s.Kind)}, s.Argv...), "|"))
			if s.Reason == "" {
				t.Errorf("%s: no reason for %q", name, s.Argv)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s\n got %q\nwant %q", name, got, c.want)
		}
	}
}

func TestResources(t *testing.T) {
	for in, want := range map[string]string{
		"a.com": "a.com,*.a.com", "203.0.113.5": "203.0.113.5", "999.0.0.1": "999.0.0.1", "1.2.3": "1.2.3,*.1.2.3", "1.2.3.x": "1.2.3.x,*.1.2.3.x",
		"localhost a.com 127.0.0.1 localhost": "a.com,*.a.com,host.docker.internal", "LOCALHOST": "LOCALHOST,*.LOCALHOST", "1..2.3": "1..2.3,*.1..2.3",
	} {
		if got := resources(strings.Fields(in)); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestFailures(t *testing.T) {
	steps := Steps(bin, "n", nil, &folder.Network{Block: ptr(true)}, "")
	for i, want := range []string{"Failed to create sbx sandbox n: boom", "Failed to apply sbx network policy (n): boom", "Failed to provision pi in sbx sandbox n: boom"} {
		if err := steps[i].Failure(" boom\n"); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if err := steps[i].Failure("Sandbox ALREADY Exists"); (err == nil) != (i == 0) {
			t.Errorf("%s: %v", steps[i].Kind, err)
		}
	}
	if err := steps[0].Failure("one\ntwo"); err.Error() != "Failed to create sbx sandbox n: one\n  two" {
		t.Errorf("%q", err)
	}
}

func TestPinnedVersion(t *testing.T) {
	for _, v := range []string{"", "1.6.0", "1.6.0-rc.1+b2", "v1"} {
		if got, warning := PinnedVersion(v); got != v || warning != "" {
			t.Errorf("%q: %q, %q", v, got, warning)
		}
	}
	for _, v := range []string{`1.0" ] || evil`, "1.0$(x)", "1 0", "1;x", "ä"} {
		if got, warning := PinnedVersion(v); got != "" || warning == "" {
			t.Errorf("%q: %q, %q", v, got, warning)
		}
	}
}

func TestDisclosures(t *testing.T) {
	got := Disclosures(&folder.Network{Profile: ptr("p"), ListenPort: []int{1}, AllowDomain: []string{"a"}}, true)
	want := []string{
		"network_profile is nono-only — ignored under the sbx backend",
		"open_port/listen_port are nono-only — guest-local ports are unrestricted and host services are reachable via host.docker.internal under sbx",
		"sbx allow rules add to your global sbx policy but cannot subtract from it — run `sbx policy init deny-all` for strict allowlist semantics (nono enforces the allowlist exactly)",
		"unix_socket_dir_bind is nono-only — Unix sockets cannot cross the sbx VM boundary; grant ignored",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, n := range []*folder.Network{nil, {}, {Block: ptr(true), AllowDomain: []string{"a"}}} {
		if got := Disclosures(n, false); got != nil {
			t.Errorf("%+v: %q", n, got)
		}
	}
}

func TestURLs(t *testing.T) {
	for in, want := range map[string]string{
		"http://localhost":                    "http://host.docker.internal/",
		"http://localhost:11434/v1":           "http://host.docker.internal:11434/v1",
		"http://LOCALHOST:80/v1":              "http://host.docker.internal/v1",
		"https://127.0.0.1:443/":              "https://host.docker.internal/",
		"http://127.1/x":                      "http://host.docker.internal/x",
		"http://0x7f000001/":                  "http://host.docker.internal/",
		" http://localhost/a b?q=c d#e f ":    "http://host.docker.internal/a%20b?q=c%20d#e%20f",
		"http://user:p%40ss@localhost/é":      "http://user:p%40ss@host.docker.internal/%C3%A9",
		"http://localhost/a/../b/./c":         "http://host.docker.internal/b/c",
		`http:\\localhost\x`:                  "http://host.docker.internal/x",
		"http://[::1]:1/x":                    "",
		"http://0.0.0.0/x":                    "",
		"http://localhost./x":                 "",
		"http://127.0.0.2/x":                  "",
		"http://sub.localhost/x":              "",
		"localhost:11434/v1":                  "",
		"localhost":                           "",
		"http://":                             "",
		"http://local host/":                  "",
		"http://localhost:99999/":             "",
		"https://api.example.com/localhost a": "",
		"":                                    "",
	} {
		if want == "" {
			want = in
		}
		if got := rewriteURL(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestProvidersAreCopied(t *testing.T) {
	const in = `{"b":{"models":[{"baseUrl":"http://localhost/"}],"baseUrl":"http://localhost:1/v1","x":1},"a":7,"c":{"baseUrl":9}}`
	v, err := jsjson.Decode([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	got := jsjson.Compact(RewriteProviders(v.(*jsjson.Object)))
	if want := strings.Replace(in, "localhost:1", "host.docker.internal:1", 1); got != want {
		t.Errorf("got %s", got)
	}
	if jsjson.Compact(v) != in {
		t.Error("the original changed")
	}
}

func FuzzRewriteURL(f *testing.F) {
	for _, s := range []string{"http://localhost", "http://127.1/x", "foo://localhost/a", "http://localhost:80\\x", "file://localhost/x", "http://%6cocalhost"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := rewriteURL(s)
		if again := rewriteURL(got); again != got {
			t.Fatalf("%q became %q became %q", s, got, again)
		}
	})
}
