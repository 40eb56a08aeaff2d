package squire

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pi-cradle/internal/usererr"
	"pi-cradle/rpc/wire"
)

// rosterIn is a session in root/work with the agent files named: "agent/…" global ones, "<dir>/.pi/…" those of a project.
func rosterIn(t *testing.T, cwd string, trusted bool, names ...string) (*live, *user) {
	t.Helper()
	root := t.TempDir()
	for _, name := range names {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		text := "---\ndescription: " + filepath.Base(filepath.Dir(filepath.Dir(path))) + "\n---\n"
		if strings.Contains(name, "broken") {
			text = "---\ntools: 1\n---\n"
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	u := &user{t: t}
	svc := &Service{host: host{u}, cfg: Config{Home: filepath.Join(root, "home")}}
	return &live{svc: svc, host: svc.host, start: wire.SessionStartParams{
		Cwd: filepath.Join(root, cwd), AgentDir: filepath.Join(root, "agent"), Trusted: trusted,
	}}, u
}

func TestWhichAgentsCount(t *testing.T) {
	files := []string{"agent/agents/scout.md", "work/.pi/agents/local.md", "home/.pi/agents/private.md"}
	for _, c := range []struct {
		cwd     string
		trusted bool
		want    string
	}{
		{"work", true, "local scout"},
		{"work", false, "scout"},
		{"home", true, "scout"}, // a home directory is nobody's project
		{"elsewhere", true, "scout"},
	} {
		l, _ := rosterIn(t, c.cwd, c.trusted, files...)
		if r, _ := l.roster(); strings.Join(r.Names(), " ") != c.want {
			t.Errorf("%s, trusted %v: %q", c.cwd, c.trusted, r.Names())
		}
	}
}

func TestFindAgent(t *testing.T) {
	l, _ := rosterIn(t, "work", true, "agent/agents/scout.md", "agent/agents/broken.md")
	for name, says := range map[string]string{
		"broken": `agent "broken" can't be used: tools is 1`, "scuot": `did you mean "scout"?`, "zzz": "the agents are scout", "": "unknown agent",
	} {
		r, _ := l.roster()
		if _, err := l.findAgent(r, name); err == nil || !strings.Contains(usererr.Text(err, ""), says) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for want, files := range map[string][]string{"there are no agents yet": nil, "none of the agents can be used": {"agent/agents/broken.md"}} {
		l, _ := rosterIn(t, "work", true, files...)
		r, _ := l.roster()
		if _, err := l.findAgent(r, "scout"); err == nil || !strings.Contains(usererr.Text(err, ""), want) {
			t.Errorf("%v: %v", files, err)
		}
	}
}

func TestBriefTellsOnlyNews(t *testing.T) {
	l, u := rosterIn(t, "work", true, "agent/agents/scout.md", "agent/agents/broken.md")
	said := func() string {
		text := strings.Join(u.notices, "|")
		u.notices = nil
		return text
	}
	if first := l.brief(); len(first) != 1 || first[0].Name != "delegate" || !strings.Contains(first[0].Description, "\n- scout — agent (") || !strings.Contains(said(), "broken.md") {
		t.Errorf("at first: %+v", first)
	}
	if again := l.brief(); len(again) != 0 || said() != "" {
		t.Errorf("again: %+v", again)
	}
	broken := filepath.Join(l.start.AgentDir, "agents", "broken.md")
	write := func(text string) {
		if err := os.WriteFile(broken, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("mended")
	if mended := l.brief(); len(mended) != 1 || !strings.Contains(mended[0].Description, "\n- broken (") || said() != "" {
		t.Errorf("mended: %+v", mended)
	}
	write("---\ntools: 1\n---\n")
	if worse := l.brief(); len(worse) != 1 || !strings.Contains(said(), "broken.md") {
		t.Errorf("bad once more: %+v", worse)
	}
	// A helper that takes over says nothing that its predecessor has said.
	next, u2 := &live{svc: l.svc, start: l.start}, &user{t: t}
	next.host, next.start.Again = host{u2}, true
	if updates := next.brief(); len(updates) != 1 || len(u2.notices) != 0 {
		t.Errorf("after a crash: %+v, %q", updates, u2.notices)
	}
}
