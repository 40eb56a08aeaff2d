package settings

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaults(t *testing.T) {
	s := Load(filepath.Join(t.TempDir(), "none"))
	want := Settings{MaxDepth: 1, MaxConcurrent: 8, MaxPerRoot: 64, WindowPlacement: "companion", CompanionSuffix: "delegates", WidgetMaxEntries: 3, Mail: "auto", path: s.path}
	if !reflect.DeepEqual(s, want) || s.Launch() != nil || s.Worktree() != nil || s.Warnings() != nil {
		t.Errorf("%+v", s)
	}
}

func TestEverything(t *testing.T) {
	s := Load(write(t, "\ufeff"+`{"maxDepth":2,"maxConcurrentDelegates":0,"maxDelegatesPerRoot":1e2,"windowPlacement":"current","companionSuffix":"play-pen",
		"worktreeRoot":"~/w/{branch}","worktreeRootByRepo":{"/src":"../x"},"worktreeSetup":["npm","ci",""],"delegateTools":["mail_*"],"toolBundles":{"ro":["read","mcp__*"],"none":[]},
		"delegateWidgetPlacement":"below","delegateWidgetMaxEntries":0,"mail":"hooks","inheritEnv":["X_KEY","AWS_*","*_TOKEN"]}`))
	if err := s.Worktree(); err != nil || s.Warnings() != nil {
		t.Fatal(err, s.Warnings())
	}
	if s.MaxDepth != 2 || s.MaxConcurrent != 0 || s.MaxPerRoot != 100 || s.WindowPlacement != "current" || s.CompanionSuffix != "play-pen" || s.WorktreeRoot != "~/w/{branch}" ||
		s.WorktreeRootByRepo["/src"] != "../x" || !slices.Equal(s.WorktreeSetup, []string{"npm", "ci", ""}) || !slices.Equal(s.DelegateTools, []string{"mail_*"}) || len(s.Bundles.Lists) != 2 || !s.WidgetBelow || s.WidgetMaxEntries != 0 ||
		s.Mail != "hooks" || len(s.InheritEnv) != 3 {
		t.Errorf("%+v", s)
	}
}

// Each bad value stands in the way of what depends on it and of nothing else.
func TestBadValues(t *testing.T) {
	const launch, worktree, bundle, none = "launch", "worktree", "bundle", "none"
	for _, c := range []struct{ text, refuses, says string }{
		{`[]`, launch, "does not hold a JSON object"},
		{`null`, launch, "does not hold a JSON object"},
		{`{`, launch, "does not hold a JSON object"},
		{``, launch, "does not hold a JSON object"},
		{`{"maxDepth":0}`, launch, "it is 0, not a whole number of at least 1"},
		{`{"maxDepth":1.5}`, launch, "1.5"},
		{`{"maxDepth":"2"}`, launch, `"2"`},
		{`{"maxDepth":null}`, launch, "null"},
		{`{"maxDepth":9007199254740992}`, launch, "9007199254740992"},
		{`{"maxConcurrentDelegates":-1}`, launch, "-1"},
		{`{"maxDelegatesPerRoot":true}`, launch, "true"},
		{`{"windowPlacement":"left"}`, launch, `"companion" or "current"`},
		{`{"companionSuffix":""}`, launch, "1 to 32"},
		{`{"companionSuffix":"-a"}`, launch, "1 to 32"},
		{`{"companionSuffix":"a b"}`, launch, "1 to 32"},
		{`{"companionSuffix":"` + strings.Repeat("a", 33) + `"}`, launch, "1 to 32"},
		{`{"companionSuffix":"2"}`, launch, "number"},
		{`{"companionSuffix":"x-10"}`, launch, "number"},
		{`{"companionSuffix":"x10"}`, none, ""},
		{`{"worktreeRoot":3}`, worktree, "not a path"},
		{`{"worktreeRoot":" "}`, worktree, "not a path"},
		{`{"worktreeRootByRepo":{"/a":1}}`, worktree, `"/a"`},
		{`{"worktreeRootByRepo":[]}`, worktree, "not an object"},
		{`{"worktreeSetup":"npm ci"}`, worktree, `such as ["npm", "ci"]`},
		{`{"worktreeSetup":[]}`, worktree, "not a list of a program"},
		{`{"worktreeSetup":[""]}`, worktree, "not a list of a program"},
		{`{"worktreeSetup":null}`, worktree, "not a list of a program"},
		{`{"worktreeSetup":[7]}`, worktree, "not a list of a program"},
		{`{"worktreeSetup":["a\u0000"]}`, worktree, "not a list of a program"},
		{`{"delegateTools":"read"}`, launch, "not a list"},
		{`{"delegateTools":["a,b"]}`, launch, "comma"},
		{`{"delegateTools":["-a"]}`, launch, `"-a"`},
		{`{"delegateTools":["+a"]}`, launch, `"+a"`},
		{`{"delegateTools":[null]}`, launch, "not a list"},
		{`{"toolBundles":[]}`, bundle, "not an object"},
		{`{"toolBundles":{"a":"read"}}`, bundle, `bundle "a"`},
		{`{"toolBundles":{"a":["$b"]}}`, bundle, `"$b"`},
		{`{"toolBundles":{"a b":["read"]}}`, bundle, `"a b"`},
		{`{"delegateWidgetPlacement":"left"}`, none, `"above" or "below"`},
		{`{"delegateWidgetMaxEntries":-1}`, none, "-1"},
		{`{"mail":"post"}`, launch, `"auto" or "hooks" or "embedded"`},
		{`{"mail":null}`, launch, "null"},
		{`{"inheritEnv":"HOME"}`, launch, "not a list"},
		{`{"inheritEnv":["A=b"]}`, launch, `"A=b"`},
		{`{"inheritEnv":[""]}`, launch, `""`},
		{`{"maxDeph":2}`, none, `unknown key "maxDeph"; did you mean "maxDepth"?`},
		{`{"colour":"red"}`, none, `unknown key "colour"`},
	} {
		path := write(t, c.text)
		s := Load(path)
		refuses := none
		switch {
		case s.Launch() != nil:
			refuses = launch
		case s.Worktree() != nil:
			refuses = worktree
		case s.Bundles.Err != nil:
			refuses = bundle
		}
		if refuses != c.refuses {
			t.Errorf("%s: refuses %s, not %s", c.text, refuses, c.refuses)
		}
		for _, err := range []error{s.Launch(), s.Worktree(), s.Bundles.Err} {
			if err != nil && (!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path)) {
				t.Errorf("%s: %v", c.text, err)
			}
		}
		if warnings := strings.Join(s.Warnings(), "\n"); !strings.Contains(warnings, c.says) || (c.says == "") != (warnings == "") {
			t.Errorf("%s: warnings %q", c.text, warnings)
		}
		if s.MaxDepth != 1 || s.Mail != "auto" || s.WidgetMaxEntries != 3 || s.WidgetBelow {
			t.Errorf("%s: a bad value counts: %+v", c.text, s)
		}
	}
}

func TestOneBadKeyLeavesTheOthers(t *testing.T) {
	s := Load(write(t, `{"delegateWidgetMaxEntries":"x","maxDepth":3,"worktreeRoot":1}`))
	if s.Launch() != nil || s.Worktree() == nil || s.MaxDepth != 3 || len(s.Warnings()) != 2 {
		t.Errorf("%+v", s)
	}
}

func TestFolderIsNoFile(t *testing.T) {
	if s := Load(t.TempDir()); s.Launch() == nil || s.Bundles.Err == nil || len(s.Warnings()) != 1 {
		t.Errorf("%+v", s)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(`{"maxDepth":2,"toolBundles":{"a":["read"]},"companionSuffix":"x"}`)
	f.Add(`{"maxDepth":1e400,"delegateTools":[[]]}`)
	f.Fuzz(func(t *testing.T, text string) {
		s := Settings{MaxDepth: 1, Mail: "auto"}
		s.parse([]byte(text))
		if s.MaxDepth < 1 || s.MaxConcurrent < 0 || !slices.Contains([]string{"auto", "hooks", "embedded"}, s.Mail) {
			t.Errorf("%s: %+v", text, s)
		}
	})
}
