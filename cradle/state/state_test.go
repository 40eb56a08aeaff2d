package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pi-cradle/internal/lockfile"
)

func TestIDs(t *testing.T) {
	for dir, want := range map[string]string{
		"/home/u/agents/reviewer": "reviewer-06d1506e", "/home/u/a/reviewer": "reviewer-a6fd673f", "/home/u/b/reviewer": "reviewer-45e49f29",
		"/x/My Agent!": "my-agent-a2ccbc74", "/x/日本語": "agent-c3d9c9fe", "/x/a__b--C": "a-b-c-fff87d2e", "/x/.hidden": "hidden-ec1df0d6",
		"/srv/agents/Daily_Report v2": "daily-report-v2-fe5246dd", "/": "agent-8a5edab2",
	} {
		if got := ID(dir); got != want {
			t.Errorf("%s: got %s, want %s", dir, got, want)
		}
	}
	if got := ID("/x/İstanbul"); !strings.HasPrefix(got, "i-stanbul-") {
		t.Errorf("İstanbul: %s", got)
	}
}

func TestRoot(t *testing.T) {
	for root, want := range map[string]string{
		"": "/home/u/.cradle", "/s": "/s", "/s/": "/s", "./rel": "rel", "rel/../other//": "other",
	} {
		d := ForFolder("/home/u/agents/reviewer", "/home/u", root)
		if got := d.Path(); got != filepath.Join(want, "agents", "reviewer-06d1506e") {
			t.Errorf("%q: %s", root, got)
		}
	}
}

func newDir(t *testing.T) Dir { return ForFolder("/a/hello", "/nowhere", t.TempDir()) }

// tree reads the files in dir, recursively.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func write(t *testing.T, d Dir, files ...File) {
	t.Helper()
	if err := d.WriteExtensions(files, true); err != nil {
		t.Fatal(err)
	}
}

var twoFiles = []File{{"providers.ts", "p"}, {"fallback.ts", "f"}}

func TestWhatAnotherRunMayNeedStays(t *testing.T) {
	d := newDir(t)
	leaveFirst, alone, err := d.Use()
	if err != nil || !alone {
		t.Fatalf("the first user: alone %v, %v", alone, err)
	}
	write(t, d, twoFiles...)
	leaveSecond, alone, err := d.Use()
	if err != nil || alone {
		t.Fatalf("the second user: alone %v, %v", alone, err)
	}
	for _, files := range [][]File{{{"providers.ts", "new"}}, nil} {
		if err := d.WriteExtensions(files, alone); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := tree(t, d.Extensions()), map[string]string{"providers.ts": "new", "fallback.ts": "f"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	leaveFirst()
	leaveSecond()
	leave, alone, err := d.Use()
	if err != nil || !alone {
		t.Fatalf("the last user: alone %v, %v", alone, err)
	}
	leave()
	write(t, d)
	if _, err := os.Lstat(d.Extensions()); err == nil {
		t.Error("what nobody needs is still there")
	}
}

func TestExtensionsHoldExactlyTheFiles(t *testing.T) {
	d := newDir(t)
	write(t, d)
	if _, err := os.Lstat(d.Path()); err == nil {
		t.Error("nothing to write made a directory")
	}
	write(t, d, twoFiles...)
	want := map[string]string{"providers.ts": "p", "fallback.ts": "f"}
	if got := tree(t, d.Extensions()); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}

	before, err := os.Stat(filepath.Join(d.Extensions(), "providers.ts"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, d, twoFiles...)
	after, err := os.Stat(filepath.Join(d.Extensions(), "providers.ts"))
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Error("an unchanged directory was rewritten")
	}

	if err := d.MakeSessions(); err != nil {
		t.Fatal(err)
	}
	session := filepath.Join(d.Sessions(), "s.jsonl")
	if err := os.WriteFile(session, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, d, File{"providers.ts", "new"})
	if got := tree(t, d.Extensions()); !reflect.DeepEqual(got, map[string]string{"providers.ts": "new"}) {
		t.Errorf("got %v", got)
	}
	write(t, d)
	if _, err := os.Lstat(d.Extensions()); err == nil {
		t.Error("the directory stayed with nothing to hold")
	}
	if _, err := os.Stat(session); err != nil {
		t.Error(err)
	}
}

// TestDamageIsRepaired puts something else at each place; none of it may survive, and nothing outside be touched.
func TestDamageIsRepaired(t *testing.T) {
	for name, damage := range map[string]func(dir, outside string) error{
		"content":        func(dir, _ string) error { return os.WriteFile(dir+"/providers.ts", []byte("x"), 0o600) },
		"cut short":      func(dir, _ string) error { return os.Truncate(dir+"/providers.ts", 0) },
		"missing":        func(dir, _ string) error { return os.Remove(dir + "/fallback.ts") },
		"stranger":       func(dir, _ string) error { return os.WriteFile(dir+"/evil.ts", nil, 0o600) },
		"stranger below": func(dir, _ string) error { return os.MkdirAll(dir+"/evil/deep", 0o700) },
		"directory for file": func(dir, _ string) error {
			return errors.Join(os.Remove(dir+"/providers.ts"), os.MkdirAll(dir+"/providers.ts/x", 0o700))
		},
		"link for file": func(dir, outside string) error {
			return errors.Join(os.Remove(dir+"/providers.ts"), os.Symlink(outside+"/precious", dir+"/providers.ts"))
		},
		"link for directory": func(dir, outside string) error { return errors.Join(os.RemoveAll(dir), os.Symlink(outside, dir)) },
		"read-only":          func(dir, _ string) error { return errors.Join(os.Remove(dir+"/fallback.ts"), os.Chmod(dir, 0o500)) },
		"unreadable file":    func(dir, _ string) error { return os.Chmod(dir+"/providers.ts", 0) },
		"read-only below": func(dir, _ string) error {
			return errors.Join(os.MkdirAll(dir+"/evil/deep", 0o700), os.WriteFile(dir+"/evil/deep/f", nil, 0o600), os.Chmod(dir+"/evil/deep", 0o500))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDir(t)
			outside := t.TempDir()
			if err := os.WriteFile(outside+"/precious", []byte("p"), 0o600); err != nil {
				t.Fatal(err)
			}
			write(t, d, twoFiles...)
			if err := damage(d.Extensions(), outside); err != nil {
				t.Fatal(err)
			}
			write(t, d, twoFiles...)
			if got := tree(t, d.Extensions()); !reflect.DeepEqual(got, map[string]string{"providers.ts": "p", "fallback.ts": "f"}) {
				t.Errorf("got %v", got)
			}
			if info, err := os.Lstat(d.Extensions()); err != nil || !info.IsDir() {
				t.Errorf("%v, %v", info, err)
			}
			if got := tree(t, outside); !reflect.DeepEqual(got, map[string]string{"precious": "p"}) {
				t.Errorf("outside: %v", got)
			}
		})
	}
}

func TestUnwritableState(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := ForFolder("/a/hello", "/nowhere", file)
	const prefix = "Failed to write agent extensions: extensions: "
	if err := d.WriteExtensions(twoFiles, true); err == nil || !strings.HasPrefix(err.Error(), prefix) {
		t.Errorf("extensions: %v", err)
	}
	if _, err := d.Lock(t.Context()); err == nil || !strings.HasPrefix(err.Error(), prefix) || !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("lock: %v", err)
	}
	if err := d.MakeSessions(); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("sessions: %v", err)
	}
	if err := d.WriteProfile("{}"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("profile: %v", err)
	}
}

// TestFullDiskLeavesNothingToTrust lets no file grow past a few bytes, which is how a full disk looks to a writer.
func TestFullDiskLeavesNothingToTrust(t *testing.T) {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	d := newDir(t)
	write(t, d, File{"providers.ts", "old"})
	if err := d.WriteProfile("old"); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 4096)
	limited := old
	limited.Cur = 8
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limited); err != nil {
		t.Fatal(err)
	}
	errExtensions, errProfile := d.WriteExtensions([]File{{"providers.ts", long}}, true), d.WriteProfile(long)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if errExtensions == nil || errProfile == nil {
		t.Fatalf("no error: %v, %v", errExtensions, errProfile)
	}
	want := map[string]string{"extensions/providers.ts": "old", "nono-profile.json": "old"}
	if got := tree(t, d.Path()); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestProfileReplacesALink(t *testing.T) {
	d := newDir(t)
	target := filepath.Join(t.TempDir(), "target")
	if err := errors.Join(os.WriteFile(target, []byte("t"), 0o600), os.MkdirAll(d.Path(), 0o700), os.Symlink(target, d.Profile())); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteProfile("{}"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(target)
	if got := tree(t, d.Path()); err != nil || string(data) != "t" || got["nono-profile.json"] != "{}" {
		t.Errorf("target %q, %v; state %v", data, err, got)
	}
}

func TestLockExcludesAndNamesTheHolder(t *testing.T) {
	d := newDir(t)
	unlock, err := d.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var held *lockfile.HeldError
	if _, err := d.Lock(ctx); !errors.As(err, &held) || held.Holder.PID != os.Getpid() {
		t.Errorf("got %v", err)
	}
	if strings.HasPrefix(held.Path, d.Path()) {
		t.Errorf("the agent can write its own lock %s", held.Path)
	}
	unlock()
	if unlock, err = d.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	unlock()
}

// TestRunsAtOnce lets many runs write under the lock while readers look: none may ever see half a file or miss one.
func TestRunsAtOnce(t *testing.T) {
	d := newDir(t)
	contents := []string{strings.Repeat("a", 20000), strings.Repeat("b", 30000)}
	files := func(i int) []File { return []File{{"providers.ts", contents[i%2]}, {"fallback.ts", "f"}} }
	write(t, d, files(0)...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var writers sync.WaitGroup
	done := make(chan struct{})
	for i := range 8 {
		writers.Go(func() {
			unlock, err := d.Lock(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			if err := errors.Join(d.WriteExtensions(files(i), true), d.MakeSessions(), d.WriteProfile(contents[i%2])); err != nil {
				t.Error(err)
			}
		})
	}
	go func() { writers.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		data, err := os.ReadFile(filepath.Join(d.Extensions(), "providers.ts"))
		if err != nil || !slices.Contains(contents, string(data)) {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
	}
}
