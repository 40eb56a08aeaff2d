package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

// repository makes the working directory of e one with a commit, and gives a function that runs git in it.
func repository(t *testing.T, e *testenv.Env) func(args ...string) string {
	t.Helper()
	e.Write(filepath.Join(e.Home, ".gitconfig"), "[user]\n\tname = Tester\n\temail = tester@example.invalid\n[init]\n\tdefaultBranch = main\n")
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = e.Work, e.Environ()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	e.Write(filepath.Join(e.Work, "README"), "hello\n")
	git("add", "README")
	git("commit", "-q", "-m", "first")
	return git
}

func TestADelegateInAWorktreeCommits(t *testing.T) {
	t.Parallel()
	e := testenv.New(t, testenv.Options{})
	e.Scout()
	git := repository(t, e)
	parent := e.Start(testenv.PiOptions{})
	path := filepath.Join(e.Root, "work-worktrees", "topic-x")
	parent.Submit("/delegate scout --worktree topic/x improve it\n" +
		call("bash", map[string]any{"command": "pwd -P; echo more >>README; git commit -qam improved"}) + "\nTHEN\nSAY committed")
	work := e.Model.Await(t, "the work", func(r testenv.Request) bool { return r.Model == "child" && r.Last().Role == "tool" })
	if !strings.Contains(work.Last().Text, path) {
		t.Errorf("it works in %s", work.Last().Text)
	}
	if !strings.Contains(work.System(), path) || strings.Contains(work.System(), e.Work+"\n") || strings.Contains(work.System(), e.Work+" ") {
		t.Errorf("the delegate is told\n%s", work.System())
	}
	got := e.Model.AwaitAnswered(t, "the result", told("committed")).Last().Text
	for _, text := range []string{
		"Working directory: " + path + "\n", "managed worktree", "branch topic/x", "1 commit since launch", `committed since launch: 1 path: "README"`,
	} {
		if !strings.Contains(got, text) {
			t.Errorf("no %q in\n%s", text, got)
		}
	}
	if strings.Contains(got, "Warning") {
		t.Errorf("a warning without a reason:\n%s", got)
	}
	if subject := git("log", "-1", "--format=%s", "topic/x"); subject != "improved" {
		t.Errorf("the branch ends with %q", subject)
	}
	if subject := git("log", "-1", "--format=%s"); subject != "first" || git("status", "--porcelain") != "" {
		t.Errorf("the main checkout is at %q, and %q has changed", subject, git("status", "--porcelain"))
	}
	e.Tmux.AwaitNoWindow("scout-")

	// Its branch stays when its worktree goes.
	parent.Submit("/delegate-worktrees")
	parent.AwaitText("1 commit ahead")
	parent.Keys("Enter")
	parent.AwaitText("its branch topic/x stays")
	if list := git("worktree", "list"); strings.Contains(list, "topic") || git("log", "-1", "--format=%s", "topic/x") != "improved" {
		t.Errorf("worktrees: %s", list)
	}
	exactlyOnce(t, parent, "committed")
}

func TestADelegateInAnOddDirectory(t *testing.T) {
	for _, name := range []string{"with space", `quo'te"s`, "#{session_name}", "semi;", "-dash", "ünïcode-日本"} {
		t.Run(name, func(t *testing.T) {
			e, parent := world(t, testenv.Options{})
			dir := e.Dir("elsewhere/" + name)
			quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace("../elsewhere/"+name) + `"`
			parent.Submit("/delegate scout --cwd " + quoted + " where?\n" + call("bash", map[string]any{"command": "pwd -P; echo end"}))
			r := e.Model.Await(t, "the place", func(r testenv.Request) bool { return r.Model == "child" && r.Last().Role == "tool" })
			if !strings.Contains(r.Last().Text, dir+"\nend") {
				t.Errorf("the delegate works in %q, not in %q", r.Last().Text, dir)
			}
			got := e.Model.Await(t, "the result", told("Status: done")).Last().Text
			if !strings.Contains(got, "Working directory: "+dir+"\n") || !strings.Contains(got, "existing directory; not a Git checkout") {
				t.Errorf("the result says\n%s", got)
			}
		})
	}
}

// The delegate of a pi in no tmux runs on the user's own server, which is started for it.
func TestParentOutsideOfTmux(t *testing.T) {
	t.Parallel()
	e := testenv.New(t, testenv.Options{})
	e.Scout()
	parent := e.Start(testenv.PiOptions{Environ: map[string]string{"TMUX": "", "TMUX_PANE": ""}})
	tmux := func(args ...string) string {
		cmd := exec.Command("tmux", args...)
		for _, kv := range e.Environ() {
			if !strings.HasPrefix(kv, "TMUX=") {
				cmd.Env = append(cmd.Env, kv)
			}
		}
		out, _ := cmd.CombinedOutput() // fails while there is no server
		return strings.TrimSpace(string(out))
	}
	t.Cleanup(func() { tmux("kill-server") })
	held(t, e, parent)
	parent.AwaitText("tmux attach -t work-delegates")
	if got := tmux("list-windows", "-a", "-F", "#{session_name} #{window_name}"); !strings.HasPrefix(got, "work-delegates scout-") {
		t.Errorf("windows of the default server: %s", got)
	}
	arrive(t, e, parent)
	exactlyOnce(t, parent, "the answer")
	testenv.Await(t, "the end of the default server", func() bool { return strings.Contains(tmux("list-sessions"), "no server running") })
}

func TestFocusOfAnAttachedClient(t *testing.T) {
	e, parent := world(t, testenv.Options{})
	control := exec.Command("tmux", "-S", e.Tmux.Socket, "-C", "attach-session", "-t", "=main")
	stdin, err := control.StdinPipe()
	if err == nil {
		err = control.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = control.Wait()
	})
	testenv.Await(t, "the client", func() bool { return e.Tmux.Run("list-clients") != "" })
	client := e.Tmux.Run("list-clients", "-F", "#{client_name}")
	e.Tmux.Run("refresh-client", "-t", client, "-C", "123,37")
	seen := func() string {
		return e.Tmux.Run("list-clients", "-F", "#{client_name} #{session_name} #{window_id} #{pane_id} #{window_width}x#{window_height}")
	}
	before := seen()
	held(t, e, parent)
	if now := seen(); now != before {
		t.Errorf("the client sees %s, and saw %s", now, before)
	}
	arrive(t, e, parent)
	e.Tmux.AwaitNoWindow("scout-")
	if now := seen(); now != before {
		t.Errorf("the client sees %s, and saw %s", now, before)
	}
	exactlyOnce(t, parent, "the answer")
}
