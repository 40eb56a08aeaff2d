package placetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pi-cradle/rpc/rpctest"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/gitws/gittest"
	"pi-cradle/squire/tmux/tmuxtest"
)

func TestWorktree(t *testing.T) {
	w := newWorld(t)
	head := w.repo.Git("rev-parse", "HEAD")
	w.repo.Write("README", "edited\n")
	w.repo.Write("draft", "x")
	w.start()
	res, d, a := w.started(args{"worktree": "topic/one"})
	path := w.repo.Path("../repo-worktrees/topic-one")
	path = filepath.Clean(path)
	expect(t, "directory", d.Cwd, path)
	expect(t, "where it starts", a.Cwd, path)
	expect(t, "PWD", a.PWD, path)
	expect(t, "mode", d.Workspace.Mode, "managed")
	expect(t, "baseline", *d.Workspace.Git.Baseline, head)
	expect(t, "branch", *d.Workspace.Git.Position.Branch, "topic/one")
	expect(t, "window", d.WindowSession, "repo-delegates")
	contains(t, "answer", res.Text, path, "topic/one", head, "not in the worktree", "1 unstaged, 1 untracked")
	contains(t, "what the delegate is told", a.Prompt, path, "topic/one", head)
	contains(t, "arguments", strings.Join(a.Args, " "), " --approve ")
	// Nothing leads it to the main checkout.
	for _, text := range append(a.Args, a.Prompt) {
		if strings.Contains(text, w.repo.Dir+" ") || strings.Contains(text, w.repo.Dir+"/") || text == w.repo.Dir {
			t.Errorf("the delegate is told of the main checkout: %q", text)
		}
	}
	for _, none := range []any{nil, "", "null", "none"} {
		if _, d, _ := w.started(args{"worktree": none, "worktree_source": none, "worktree_base": none}); d.Cwd != w.repo.Dir {
			t.Errorf("%v: works in %s", none, d.Cwd)
		}
	}
	// The mailbox knows the rest: its result says where the work is, and that the main checkout has changed meanwhile.
	w.repo.Write("stray", "x")
	w.answer(d, "all done")
	w.pi.Await(rpctest.Sent("all done", "managed worktree", path, "topic/one", "Warning: the checkout that the worktree was made from has changed"))
}

func TestWorktreeOfAnotherCheckoutAtAnotherCommit(t *testing.T) {
	w := newWorld(t)
	other := gittest.Committed(t)
	first := other.Git("rev-parse", "HEAD")
	other.Write("later", "x")
	other.Commit("second")
	mkdir(t, other.Path("sub"))
	w.settings(`{"worktreeRoot": "~/w/{repo}/{branch}"}`)
	w.start()
	if err := w.pi.Command("delegate", fmt.Sprintf(`scout --worktree fix/a --worktree-source %q --worktree-base HEAD~1 look`, other.Path("sub"))); err != nil {
		t.Fatal(err)
	}
	d := w.record()[0]
	path := filepath.Join(w.home, "w/repo/fix-a")
	expect(t, "directory", d.Cwd, path)
	a := w.arrived(d.ID)
	contains(t, "arguments", strings.Join(a.Args, " "), " --no-approve ")
	expect(t, "commit", other.At(path).Git("rev-parse", "HEAD"), first)
	w.answer(details{Delegation: d.ID, Cwd: d.Cwd}, "all done")
	w.pi.Await(rpctest.Sent("all done"))
	if w.session.Count("Warning: ") > 0 {
		t.Error("a warning without a reason")
	}
}

// What the new checkout will hold may need trust that nobody has given to its repository.
func TestWorktreeOfAnUntrustedRepository(t *testing.T) {
	w := newWorld(t)
	other := gittest.Committed(t)
	other.Write(".pi/agents/x.md", "x")
	other.Commit("agents")
	w.start()
	w.started(args{"worktree": "a", "worktree_source": other.Dir})
	other.Write(".pi/extensions/x.ts", "x")
	other.Commit("an extension")
	w.refused(args{"worktree": "b", "worktree_source": other.Dir}, "was cancelled")
	if exists(other.Path("../repo-worktrees/b")) || other.Git("branch", "--list", "b") != "" {
		t.Error("a worktree was made before the answer")
	}
	w.started(args{"worktree": "c", "worktree_source": other.Dir, "worktree_base": "HEAD~1"})
}

func TestWorktreesThatAreRefused(t *testing.T) {
	w := newWorld(t)
	plain, empty := gittest.Dir(t), gittest.New(t)
	w.repo.Git("branch", "taken")
	mkdir(t, w.repo.Path("../repo-worktrees/there"))
	w.start()
	for _, c := range []struct {
		in   args
		says string
	}{
		{args{"worktree": "x", "cwd": "."}, "both a working directory and a worktree"},
		{args{"worktree_source": "."}, "no worktree"},
		{args{"worktree_base": "HEAD"}, "no worktree"},
		{args{"worktree": "x", "worktree_source": plain}, "not in a Git checkout"},
		{args{"worktree": "x", "worktree_source": "nowhere"}, "does not exist"},
		{args{"worktree": "x", "worktree_source": empty.Dir}, "no commits yet"},
		{args{"worktree": "x", "worktree_base": "nothing"}, `"nothing" names no commit`},
		{args{"worktree": "taken"}, "exists already"},
		{args{"worktree": "there"}, "exists already"},
		{args{"worktree": "-x"}, "not a valid branch name"},
		{args{"worktree": "a..b"}, "not a valid branch name"},
		{args{"worktree": true}, "no text"},
	} {
		w.refused(c.in, c.says)
	}
	w.settings(`{"worktreeRoot": "/w/{name}"}`)
	w.refused(args{"worktree": "x"}, "{name}")
	w.settings(`{"worktreeSetup": "npm ci"}`)
	w.refused(args{"worktree": "x"}, "worktreeSetup")
	expect(t, "branches", w.repo.Git("branch", "--list", "x"), "")
	w.started(nil) // what is wrong with worktrees concerns nobody else
}

func TestTenWorktreesAtOnce(t *testing.T) {
	w := newWorld(t).start()
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() {
			res, err := w.pi.TryTool("delegate", args{"agent": "scout", "task": "look", "worktree": fmt.Sprintf("b%d", i)})
			if err != nil || res.IsError {
				t.Errorf("%d: %v, %s", i, err, res.Text)
			}
		})
	}
	group.Wait()
	expect(t, "worktrees", strings.Count(w.repo.Git("worktree", "list"), "repo-worktrees/b"), 10)
}

func TestWorktreeIsMadeReady(t *testing.T) {
	w := newWorld(t)
	w.repo.Write(".gitignore", ".env\nbuilt\n")
	w.repo.Write(".worktreeinclude", ".env\n")
	w.repo.Commit("ignore")
	w.repo.Write(".env", "SECRET=1\n")
	w.settings(`{"worktreeSetup": ["sh", "-c", "cat .env; echo $SQUIRE_WORKTREE_BRANCH >built; [ ! -e fail ]"]}`)
	w.start()
	res, _, a := w.started(args{"worktree": "a"})
	contains(t, "answer", res.Text, "copied by .worktreeinclude: 1 file")
	built, _ := os.ReadFile(filepath.Join(a.Cwd, "built"))
	expect(t, "what the command made", string(built), "a\n")

	w.repo.Write("fail", "")
	w.repo.Commit("fail")
	text := w.refused(args{"worktree": "b"}, "worktreeSetup", "exit status 1", "SECRET=1", "kept the worktree", "branch b", "/delegate-worktrees")
	path := filepath.Clean(w.repo.Path("../repo-worktrees/b"))
	contains(t, "refusal", text, path)
	if !exists(filepath.Join(path, "built")) {
		t.Error("what the command left is gone")
	}
	logs, _ := filepath.Glob(filepath.Join(w.agentDir, "squire", "worktree-setup", "*.log"))
	expect(t, "logs", len(logs), 2)
	expect(t, "windows", w.windows(), "repo-delegates scout-"+w.record()[0].ID[:8])
}

// refusedStart is refused for a launch that fails after the task was sent.
func (w *world) refusedStart(more args, texts ...string) {
	w.t.Helper()
	records := len(w.record())
	res, _ := w.delegate(more)
	if !res.IsError {
		w.t.Fatalf("%v started: %s", more, res.Text)
	}
	contains(w.t, fmt.Sprint(more), res.Text, texts...)
	expect(w.t, "delegations on record", len(w.record()), records)
}

func TestWorktreeOfALaunchThatFails(t *testing.T) {
	w := newWorld(t).start()
	path := filepath.Clean(w.repo.Path("../repo-worktrees/a"))
	w.fake("tmux", `case "$*" in *new-*) echo no more windows >&2; exit 1;; esac; exec $REAL "$@"`)
	w.refusedStart(args{"worktree": "a"}, "no more windows")
	if exists(path) || exists(filepath.Dir(path)) || w.repo.Git("branch", "--list", "a") != "" {
		t.Error("the worktree was not taken back")
	}
	// Somebody has worked in it meanwhile.
	w.fake("tmux", `case "$*" in *new-*) echo x >`+path+`/mine; exit 1;; esac; exec $REAL "$@"`)
	w.refusedStart(args{"worktree": "a"}, "kept the worktree "+path, "branch a", w.repo.Git("rev-parse", "HEAD"), "mine")
	w.fake("tmux", `case "$*" in *new-*) kill -9 $$;; esac; exec $REAL "$@"`)
	w.refusedStart(args{"worktree": "b"}, "kept the worktree", "branch b", "not known whether a window opened")
	// Git's own failure.
	w.fake("tmux", `exec $REAL "$@"`)
	w.fake("git", `case "$*" in *"worktree add"*) echo 'fatal: disk full' >&2; exit 128;; esac; exec $REAL "$@"`)
	w.refused(args{"worktree": "c"}, "could not be made", "disk full")
	expect(t, "branches", w.repo.Git("branch", "--list", "c"), "")
}

// The helper dies around the making of a worktree. The next one takes back what was made, or says what is left.
func TestHelperDiesOverAWorktree(t *testing.T) {
	for name, c := range map[string]struct {
		git  string // what git does at the worktree's making, in place of it
		kept bool
	}{
		"before":                          {"kill -9 $PPID", false},
		"after":                           {`"$REAL" "$@"; kill -9 $PPID`, false},
		"after, and somebody works in it": {`"$REAL" "$@"; echo x >../repo-worktrees/a/mine; kill -9 $PPID`, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			path := filepath.Clean(w.repo.Path("../repo-worktrees/a"))
			once := filepath.Join(w.bin, "once")
			w.fake("git", `case "$*" in *"worktree add"*) if [ ! -e `+once+` ]; then : >`+once+`; `+c.git+`; fi;; esac; exec "$REAL" "$@"`)
			w.start()
			if res, err := w.pi.TryTool("delegate", args{"agent": "scout", "task": "look", "worktree": "a"}); err == nil {
				t.Fatalf("answered %s", res.Text)
			}
			list := w.record()
			if len(list) != 1 || len(list[0].Worktree) == 0 {
				t.Fatalf("on record: %+v", list)
			}
			w.pi.Complete("delegate", "") // brings the helper back
			told := w.pi.Await(rpctest.Sent("closed without a result", "was not started"))
			message := told.Messages[len(told.Messages)-1].Content
			expect(t, "it is there", exists(path), c.kept)
			expect(t, "its branch is there", w.repo.Git("branch", "--list", "a") != "", c.kept)
			if c.kept {
				contains(t, "message", message, "Worktree: kept the worktree "+path, "branch a", "mine")
			}
		})
	}
}

func TestWorktreeList(t *testing.T) {
	w := newWorld(t).start()
	var made []details
	for _, branch := range []string{"clean", "dirty", "used"} {
		_, d, _ := w.started(args{"worktree": branch})
		made = append(made, d)
	}
	w.repo.At(made[0].Cwd).Write("work", "x")
	w.repo.At(made[0].Cwd).Commit("work")
	w.repo.At(made[1].Cwd).Write("draft", "x")
	for _, d := range made[:2] {
		w.end(d)
	}
	// The user picks each once, says no to the loss, then yes.
	var asked []wire.DialogParams
	var mu sync.Mutex
	picks := []string{"clean", "used", "dirty", "Keep it", "dirty", "Remove it", ""}
	w.pi.On(wire.HostDialog, dialogs(&mu, &asked, &picks))
	if err := w.pi.Command("delegate-worktrees", ""); err != nil {
		t.Fatal(err)
	}
	w.pi.Await(rpctest.Notified("info", "removed the worktree", "/clean; its branch clean stays", "commits that no other branch has"))
	w.pi.Await(rpctest.Notified("error", "is not removed", "delegate scout-", "works in it"))
	w.pi.Await(rpctest.Notified("info", "removed the worktree", "/dirty and its branch dirty"))
	expect(t, "rows", strings.Join(asked[0].Options, " "), "clean dirty used")
	contains(t, "details", strings.Join(asked[0].Details, "\n"), "branch clean, 1 commit ahead, clean, not merged, in "+made[0].Cwd, "branch dirty, 0 commits ahead, dirty", "branch used")
	contains(t, "question", asked[3].Title, "/dirty", `untracked: 1 path: "draft"`)
	expect(t, "first answer", asked[3].Options[0], "Keep it")
	for i, there := range []bool{false, false, true} {
		expect(t, made[i].Cwd, exists(made[i].Cwd), there)
	}
	expect(t, "branches", strings.Join(strings.Fields(w.repo.Git("branch", "--format=%(refname:short)")), " "), "clean main used")

	// Nobody to ask: it only lists.
	s := w.newSession(w.repo.Dir)
	s.Start.HasUI = false
	other := w.open(s, w.inTmux, "noted")
	if err := other.Command("delegate-worktrees", ""); err != nil {
		t.Fatal(err)
	}
	other.Await(rpctest.Notified("info", "/used: branch used"))
	if err := w.open(w.newSession(gittest.Dir(t)), w.inTmux, "noted").Command("delegate-worktrees", ""); err == nil || !strings.Contains(err.Error(), "not in a Git checkout") {
		t.Errorf("outside of git: %v", err)
	}
}

// end closes a delegation and waits until nothing of it runs any more.
func (w *world) end(d details) {
	w.t.Helper()
	var launcher int
	for _, line := range strings.Split(w.tmux.Run("list-panes", "-a", "-F", "#{window_name} #{pane_pid}"), "\n") {
		if name, pid, _ := strings.Cut(line, " "); strings.HasSuffix(name, d.Delegation[:8]) {
			launcher, _ = strconv.Atoi(pid)
		}
	}
	if launcher == 0 {
		w.t.Fatalf("no window of %s", d.Delegation)
	}
	w.pi.Tool("delegation_close", args{"id": d.Delegation})
	tmuxtest.Await(w.t, "the end of the delegate", func() bool { return errors.Is(syscall.Kill(launcher, 0), syscall.ESRCH) })
}

// dialogs answers each by a row, "" for Escape.
func dialogs(mu *sync.Mutex, asked *[]wire.DialogParams, picks *[]string) rpctest.Responder {
	return func(_ ctx, raw json.RawMessage, _ func() (any, error)) (any, error) {
		var p wire.DialogParams
		if err := json.Unmarshal(raw, &p); err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		*asked = append(*asked, p)
		pick := (*picks)[0]
		*picks = (*picks)[1:]
		for _, option := range p.Options {
			if option == pick {
				return wire.DialogResult{OK: true, Value: option}, nil
			}
		}
		return wire.DialogResult{}, nil
	}
}
