package gitws

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func ptr(s string) *string { return &s }

func TestWorkspaceText(t *testing.T) {
	at := func(main, checkout string, pos Position, base *string) Git {
		return Git{Kind: Checkout, State: &State{Identity: Identity{main, main + "/.git", checkout}, Position: pos, Head: base, Baseline: base}}
	}
	for _, c := range []struct {
		w    Workspace
		want string
	}{
		{Workspace{Existing, "/r", at("/r", "/w", OnBranch("topic/x"), ptr("abc"))}, "existing directory; Git checkout /r (linked worktree /w), branch topic/x, launch commit abc"},
		{Workspace{Inherited, "/r", at("/r", "/r", Detached(), ptr("abc"))}, "parent's directory; Git checkout /r, detached HEAD, launch commit abc"},
		{Workspace{Managed, "/r", at("/a b/r\n", "/a b/r\n", OnBranch("x"), nil)}, `managed worktree; Git checkout "/a b/r\n", branch x, no commits at launch`},
		{Workspace{Existing, "/r", Outside()}, "existing directory; not a Git checkout"},
		{Workspace{Existing, "/r", Unsure("git was not found")}, "existing directory; Git state unknown (git was not found)"},
	} {
		if got := c.w.Text(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
		data, err := json.Marshal(c.w)
		var back Workspace
		if err != nil || json.Unmarshal(data, &back) != nil || !reflect.DeepEqual(back, c.w) {
			t.Errorf("%s came back as %+v (%v)", data, back, err)
		}
	}
}

func TestSnapshotBlocks(t *testing.T) {
	w := &Workspace{Existing, "/r", Git{Kind: Checkout, State: &State{Identity: Identity{"/r", "/r/.git", "/w"}, Position: OnBranch("b"), Head: ptr("aaa"), Baseline: ptr("aaa")}}}
	s := Snapshot{Kind: Checkout, Tree: &Tree{
		Position: OnBranch("b"), Head: ptr("bbb"), Baseline: ptr("aaa"), Ahead: 1, WorkingState: Dirty, Committed: ListOf([]string{"src/a.ts"}),
		Pending: Pending{ListOf(nil), ListOf([]string{"README.md"}), ListOf(nil), ListOf(nil)},
	}}
	want := `  workspace: existing directory; Git checkout /r (linked worktree /w), branch b, launch commit aaa
  checkout now: branch b, head bbb, launch commit aaa, 1 commit since launch, working tree dirty
    committed since launch: 1 path: "src/a.ts"
    staged: none
    unstaged: 1 path: "README.md"
    untracked: none
    conflicted: none`
	if got := strings.Join(StatusLines(w, s), "\n"); got != want {
		t.Errorf("status:\n%s", got)
	}
	want = `Workspace: existing directory; Git checkout /r (linked worktree /w), branch b, launch commit aaa
Checkout when the result arrived: branch b, head bbb, launch commit aaa, 1 commit since launch, working tree dirty
  committed since launch: 1 path: "src/a.ts"
  staged: none
  unstaged: 1 path: "README.md"
  untracked: none
  conflicted: none`
	if got := strings.Join(ResultLines(w, &s), "\n"); got != want {
		t.Errorf("result:\n%s", got)
	}
	if got := ResultLines(w, nil); len(got) != 1 {
		t.Errorf("gone: %q", got)
	}
	old := StatusLines(nil, UnsureNow(NoWorkspace))
	if len(old) != 1 || old[0] != "  checkout now: Git state unknown (this delegation was recorded before its launch checkout was kept)" {
		t.Errorf("old record: %q", old)
	}
	none := Snapshot{Kind: NonGit}
	if got := ResultLines(nil, &none); len(got) != 1 || got[0] != "Checkout when the result arrived: not a Git checkout" {
		t.Errorf("outside: %q", got)
	}
	if data, _ := json.Marshal(none); string(data) != `{"kind":"non-git"}` {
		t.Errorf("%s", data)
	}
	s.Tree = &Tree{Position: Detached(), Ahead: 2, WorkingState: Clean}
	if got := s.Text(); got != "detached HEAD, no commits yet, no commits at launch, 2 commits since launch, working tree clean" {
		t.Errorf("%s", got)
	}
}

func TestPathListText(t *testing.T) {
	many := make([]string, 101)
	for i := range many {
		many[i] = "p"
	}
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{nil, "none"},
		{[]string{"a b", "c\nd\"<\xff"}, `2 paths: "a b", "c\nd\"<` + "\ufffd" + `"`},
		{many, `101 paths, the first 100: ` + strings.Repeat(`"p", `, 99) + `"p"`},
		{[]string{strings.Repeat("x", 17<<10)}, "1 path, too long to show"},
		{[]string{"\x1b[31m\u2028"}, `1 path: "\u001b[31m\u2028"`},
	} {
		if got := ListOf(c.paths).Text(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestProjectNames(t *testing.T) {
	for in, want := range map[string]string{
		"/x/Client API": "Client-API", "/x/a__b-C9": "a__b-C9", "/x/..é..": "project", "/": "project", "": "project", "/x/-a: .b-": "a-b",
	} {
		if got := ProjectName(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestPlacement(t *testing.T) {
	plain := func(s string) string { return s }
	main := "/Users/me/src/special-project"
	base := Placement{Home: "/Users/me", Dir: "/Users/me/.pi/agent/squire"}
	with := func(root string, repos ...string) Placement {
		p := base
		p.Root = root
		if len(repos) > 0 {
			p.ByRepo = map[string]string{}
			for i := 0; i < len(repos); i += 2 {
				p.ByRepo[repos[i]] = repos[i+1]
			}
		}
		return p
	}
	for _, c := range []struct {
		p    Placement
		want string
	}{
		{base, "/Users/me/src/special-project-worktrees/feature-topic"},
		{with("~/worktrees/{repo}/{branch}"), "/Users/me/worktrees/special-project/feature-topic"},
		{with("~/w/{branch}", main, "../special-checkouts/{branch}"), "/Users/me/.pi/agent/special-checkouts/feature-topic"},
		{with("~/w/{branch}", "~/src/special-project", "here"), "/Users/me/.pi/agent/squire/here"},
		{with("~/w/{branch}", "/other", "here"), "/Users/me/w/feature-topic"},
	} {
		if got, err := c.p.Path(main, "feature/topic", plain); err != nil || got != c.want {
			t.Errorf("%s, %v: want %s", got, err, c.want)
		}
	}
	if got, err := with("/w/{repo}/{branch}").Path("/x/{branch}", "b", plain); err != nil || got != "/w/{branch}/b" {
		t.Errorf("a folder with braces: %s, %v", got, err)
	}
	if got, err := with("{repo}/{branch}").Path("/x/~", "b", plain); err != nil || got != base.Dir+"/~/b" {
		t.Errorf("a folder called ~: %s, %v", got, err)
	}
	for name, p := range map[string]Placement{
		"unknown": with("/w/{name}"), "open": with("/w/{branch"), "close": with("/w/branch}"), "blank": with("  "), "nul": with("/w/\x00"),
		"user": with("~bob/{branch}"), "empty": with("", "/other", ""), "unused": with("", "/other", "{x}"), "key": with("", "{repo}", "/w"),
		"twice": with("", main, "/a", "~/src/special-project", "/b"), "default": with("{x}", main, "/a"),
	} {
		if got, err := p.Path(main, "b", plain); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestParseStatus(t *testing.T) {
	out := "# branch.oid (initial)\x00# branch.head b\x001 AM N... 0 1 2 a b with space\x002 R. N... 0 1 2 a b R100 new\x00old\n\x00" +
		"u UU N... 1 2 3 4 a b c conflict\x00? new file\x00! ignored/\x00"
	s, err := ParseStatus([]byte(out))
	want := Status{Branch: "b", Staged: []string{"with space", "new", "old\n"}, Unstaged: []string{"with space"}, Untracked: []string{"new file"},
		Conflicted: []string{"conflict"}, Ignored: []string{"ignored/"}}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"? x", "\x00", "? \x00", "1 M. N... 0 1 2 a b\x00", "2 R. N... 0 1 2 a b R100 new\x00", "1 M N... 0 1 2 a b x\x00", "x y\x00", "#\x00"} {
		if s, err := ParseStatus([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, s)
		}
	}
}

func TestParseLists(t *testing.T) {
	assumed, skipped, err := Flagged([]byte("H a\x00h b c\x00S d\x00"))
	if err != nil || !reflect.DeepEqual(assumed, []string{"b c"}) || !reflect.DeepEqual(skipped, []string{"d"}) {
		t.Errorf("%q, %q, %v", assumed, skipped, err)
	}
	subs, err := Submodules([]byte("100644 a 0\tx\x00160000 b 1\tm\x00160000 c 2\tm\x00"))
	if err != nil || !reflect.DeepEqual(subs, []string{"m"}) {
		t.Errorf("%q, %v", subs, err)
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte("# branch.oid (initial)\x00# branch.head b\x001 AM N... 0 1 2 a b c\x002 R. N... 0 1 2 a b R100 new\x00old\x00? x\x00"))
	f.Fuzz(func(t *testing.T, out []byte) {
		s, err := ParseStatus(out)
		if err != nil {
			return
		}
		entries, _ := SplitNUL(out)
		total := 0
		for _, list := range [][]string{s.Staged, s.Unstaged, s.Untracked, s.Conflicted, s.Ignored} {
			total += len(list)
		}
		if total > 2*len(entries) {
			t.Fatalf("%d paths of %d entries", total, len(entries))
		}
		pending := s.Pending()
		for _, list := range []PathList{pending.Staged, pending.Unstaged, pending.Untracked, pending.Conflicted} {
			if text := list.Text(); strings.ContainsAny(text, "\n\r\x00") || !utf8.ValidString(text) {
				t.Fatalf("not one line: %q", text)
			}
		}
	})
}

func FuzzParseLists(f *testing.F) {
	f.Add([]byte("H a\x00h b c\x00"))
	f.Add([]byte("160000 b 1\tm\x00"))
	f.Fuzz(func(t *testing.T, out []byte) {
		assumed, skipped, err := Flagged(out)
		if items, _ := SplitNUL(out); err == nil && len(assumed)+len(skipped) > len(items) {
			t.Fatal("more paths than entries")
		}
		subs, err := Submodules(out)
		for _, path := range subs {
			if err == nil && path == "" {
				t.Fatal("an empty path")
			}
		}
		if lines, ok := Lines(out, 4); ok != (len(lines) == 4) {
			t.Fatal("wrong count")
		}
	})
}

func FuzzPlacement(f *testing.F) {
	f.Add("~/w/{repo}/{branch}", "/src/r", "a/b")
	f.Fuzz(func(t *testing.T, template, main, branch string) {
		p := Placement{Root: template, Home: "/home", Dir: "/settings"}
		if path, err := p.Path("/"+main, branch, func(s string) string { return s }); err == nil && !strings.HasPrefix(path, "/") {
			t.Fatalf("%q is not absolute", path)
		}
	})
}
