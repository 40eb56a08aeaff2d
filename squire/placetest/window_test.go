package placetest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pi-cradle/internal/run"
	"pi-cradle/rpc/rpctest"
	"pi-cradle/squire/tmux/tmuxtest"
)

func TestWindowsOpenInTheCompanion(t *testing.T) {
	w := newWorld(t).start()
	before := w.tmux.Run("list-windows", "-t", "=main:", "-F", "#{window_id} #{window_active} #{pane_id}")
	res, d, a := w.started(args{"label": "one"})
	expect(t, "session", d.WindowSession, "repo-delegates")
	contains(t, "answer", res.Text, "scout-one in tmux session repo-delegates")
	expect(t, "windows", w.windows(), "repo-delegates scout-one")
	expect(t, "cwd", a.Cwd, w.repo.Dir)
	expect(t, "PWD", a.PWD, w.repo.Dir)
	w.started(args{"label": "two"})
	expect(t, "windows", w.windows(), "repo-delegates scout-one, repo-delegates scout-two")
	if err := w.pi.Command("delegate", "scout --label three look"); err != nil {
		t.Fatal(err)
	}
	w.pi.Await(rpctest.Notified("info", "scout started in window scout-three of tmux session repo-delegates: "))
	expect(t, "the user's session", w.tmux.Run("list-windows", "-t", "=main:", "-F", "#{window_id} #{window_active} #{pane_id}"), before)

	// A window that its user moves is followed.
	w.tmux.Run("move-window", "-d", "-s", "=repo-delegates:scout-one", "-t", "=main:")
	var status struct{ Delegations []details }
	found := w.pi.Tool("delegation_status", args{"id": d.Delegation})
	if err := json.Unmarshal(found.Details, &status); err != nil || len(status.Delegations) != 1 {
		t.Fatalf("%s, %v", found.Details, err)
	}
	expect(t, "session in the status", status.Delegations[0].WindowSession, "main")
	contains(t, "status", found.Text, "in tmux session main", "state: running")

	var birth struct {
		Data struct {
			RootPlacement string
			Identity      map[string]any
		}
	}
	data, err := os.ReadFile(filepath.Join(w.agentDir, "squire", "identity", d.Delegation+".json"))
	if err != nil || json.Unmarshal(data, &birth) != nil {
		t.Fatal(err)
	}
	expect(t, "saved placement", birth.Data.RootPlacement, "repo-delegates")
	if _, there := birth.Data.Identity["rootPlacement"]; there {
		t.Error("the placement is part of the identity that others are told")
	}
}

func TestWindowSettings(t *testing.T) {
	w := newWorld(t)
	w.settings(`{"windowPlacement": "current"}`)
	w.start()
	_, d, _ := w.started(args{"label": "one"})
	expect(t, "session", d.WindowSession, "main")
	w.settings(`{"companionSuffix": "playpen"}`)
	_, d, _ = w.started(args{"label": "two"})
	expect(t, "session", d.WindowSession, "repo-playpen")
	expect(t, "windows", w.windows(), "main scout-one, repo-playpen scout-two")

	w.session = w.newSession(w.repo.Dir)
	w.start()
	w.settings(`{"companionSuffix": "x-10"}`)
	w.refused(nil, "settings.json", "companionSuffix", "x-10")
	w.settings(`{"windowPlacement": "elsewhere"}`)
	w.refused(nil, "settings.json", "windowPlacement", "elsewhere")
}

// The project's main checkout gives the name, wherever in it or in its worktrees a root works.
func TestRootsOfOneProjectShareACompanion(t *testing.T) {
	w := newWorld(t)
	w.repo.Git("worktree", "add", "-q", "../linked")
	w.repo.Write("sub/x", "")
	var group sync.WaitGroup
	for _, dir := range []string{w.repo.Dir, w.repo.Path("../linked"), w.repo.Path("sub"), w.repo.Dir} {
		pi := w.open(w.newSession(dir), w.inTmux, "noted")
		group.Go(func() {
			if res, err := pi.TryTool("delegate", args{"agent": "scout", "task": "look", "label": "x"}); err != nil || res.IsError {
				t.Errorf("%s: %v, %s", dir, err, res.Text)
			}
		})
	}
	group.Wait()
	expect(t, "windows", w.windows(), strings.Repeat("repo-delegates scout-x, ", 3)+"repo-delegates scout-x")
}

func TestGitThatFailsGivesANotice(t *testing.T) {
	w := newWorld(t)
	w.fake("git", "echo 'fatal: out of order' >&2; exit 3")
	w.repo.Write("sub/x", "")
	w.session = w.newSession(w.repo.Path("sub"))
	w.start()
	res, d, _ := w.started(nil)
	expect(t, "session", d.WindowSession, "sub-delegates")
	contains(t, "notice", res.Text, "not known", "out of order")
}

func TestParentOutsideOfTmux(t *testing.T) {
	w := newWorld(t)
	base, err := os.MkdirTemp("/tmp", "tt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	tmux := func(argv ...string) string {
		res, err := run.Output(context.Background(), run.Cmd{Path: "tmux", Args: argv, Env: []string{"TMUX_TMPDIR=" + base, "PATH=" + os.Getenv("PATH"), "HOME=" + w.home}})
		if err != nil {
			t.Errorf("tmux %v: %v", argv, err)
		}
		return strings.TrimSpace(string(res.Stdout))
	}
	w.settings(`{"windowPlacement": "current"}`) // which there is none of
	w.session.Start.Mode, w.session.Start.HasUI = "rpc", false
	w.start("TMUX_TMPDIR=" + base)
	res, d, _ := w.started(args{"label": "one"})
	t.Cleanup(func() { tmux("kill-server") })
	expect(t, "session", d.WindowSession, "repo-delegates")
	contains(t, "answer", res.Text, "tmux attach -t repo-delegates")
	w.started(args{"label": "two"})
	expect(t, "windows", tmux("list-windows", "-a", "-F", "#{session_name} #{window_name}"), "repo-delegates scout-one\nrepo-delegates scout-two")
	if err := w.pi.Command("delegate", "scout --label three look"); err != nil {
		t.Fatal(err)
	}
	w.pi.Await(rpctest.Notified("info", "scout-three of tmux session repo-delegates", "tmux attach -t repo-delegates"))
	closed := w.pi.Tool("delegation_close", args{"id": d.Delegation})
	contains(t, "close", closed.Text, "ended")
}

func TestTmuxThatCannotBeUsed(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		environ []string
		says    string
	}{
		"no tmux":        {[]string{"PATH=" + w.bin}, "install tmux"},
		"dead server":    {[]string{"TMUX=/nonexistent/sock,1,0"}, "/nonexistent/sock"},
		"another server": {[]string{"TMUX=" + w.tmux.Socket + ",1,0"}, "gone"},
		"nonsense":       {[]string{"TMUX=nonsense"}, "nonsense"},
	} {
		w.pi = w.open(w.session, c.environ, "noted")
		text := w.refused(nil, c.says)
		if strings.Count(text, "\n") > 1 {
			t.Errorf("%s: %s", name, text)
		}
		w.pi.Close()
	}
	w.fake("tmux", `[ "$4" = -V ] && { echo tmux 3.1c; exit; }; exit 1`)
	w.pi = w.open(w.session, []string{"TMUX_TMPDIR=" + w.home}, "noted")
	w.refused(nil, "3.1c", "3.2")
}

// A pane that is gone is no reason not to find the server. A popup has none.
func TestPaneThatIsGone(t *testing.T) {
	w := newWorld(t)
	for i, environ := range [][]string{{w.inTmux[0], "TMUX_PANE=%99"}, {w.inTmux[0]}} {
		w.session = w.newSession(w.repo.Dir)
		w.start(environ...)
		_, d, _ := w.started(args{"label": string(rune('a' + i))})
		expect(t, "session", d.WindowSession, "repo-delegates")
	}
}

// Clients of other sizes, in this session and in another, keep what they see.
func TestLaunchesLeaveClientsAlone(t *testing.T) {
	w := newWorld(t)
	w.tmux.Run("new-session", "-d", "-s", "other", "--", "env", "cat")
	w.tmux.Attach("=main", 131, 41)
	w.tmux.Attach("=other", 67, 23)
	seen := func() string {
		return w.tmux.Run("list-clients", "-F", "#{client_name} #{session_name} #{window_id} #{pane_id} #{client_width}x#{client_height} #{window_width}x#{window_height}")
	}
	before := seen()
	w.start()
	var all []details
	for range 5 {
		_, d, _ := w.started(nil)
		all = append(all, d)
		expect(t, "clients", seen(), before)
	}
	for _, d := range all[:3] {
		w.pi.Tool("delegation_close", args{"id": d.Delegation})
		expect(t, "clients", seen(), before)
	}
	for _, d := range all[3:] {
		w.pi.Tool("delegation_close", args{"id": d.Delegation})
	}
	tmuxtest.Await(t, "the end of the companion", func() bool { return !strings.Contains(w.tmux.Run("list-sessions"), "repo-delegates") })
	expect(t, "clients", seen(), before)
}

func TestIdentityWithoutItsPlacementIsRefused(t *testing.T) {
	w := newWorld(t).start()
	_, d, _ := w.started(nil)
	path := filepath.Join(w.agentDir, "squire", "identity", d.Delegation+".json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{`""`, `"a b"`, `"a:b"`} {
		w.write(path, strings.Replace(string(data), `"repo-delegates"`, bad, 1), 0o600)
		child := w.open(rpctest.OpenSession(w.agentDir, w.repo.Dir, d.Delegation), []string{"PI_UNATTENDED=1"}, "x")
		child.Await(rpctest.Notified("error", "does not say in which tmux session"))
		child.Close()
	}
}
