package which

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	write(t, root+"/a/pi", 0o755)
	write(t, root+"/b/pi", 0o755)
	write(t, root+"/plain/pi", 0o644)
	write(t, root+"/dir/pi/x", 0o755)
	write(t, root+"/home/.local/share/mise/shims/pi", 0o644)
	if err := os.MkdirAll(root+"/dangling/.local/share/mise/shims", 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		root + "/link": root + "/b",
		root + "/dangling/.local/share/mise/shims/pi": "nowhere",
	} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	shim := root + "/home/.local/share/mise/shims/pi"
	for _, c := range []struct{ name, path, home, want string }{
		{"first entry wins", root + "/a:" + root + "/b", root, root + "/a/pi"},
		{"not executable is skipped", root + "/plain:" + root + "/b", root, root + "/b/pi"},
		{"a directory is skipped", root + "/dir:" + root + "/b", root, root + "/b/pi"},
		{"links stay", root + "/link", root, root + "/link/pi"},
		{"trailing slash", root + "/a/", root, root + "/a/pi"},
		{"relative entry", ".:b", root, root + "/b/pi"},
		{"empty entries mean nothing", ":", root, ""},
		{"mise shim, executable or not", "/nowhere", root + "/home", shim},
		{"PATH before the shim", root + "/a", root + "/home", root + "/a/pi"},
		{"dangling shim", "/nowhere", root + "/dangling", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := Search{Path: c.path, Home: c.home, Cwd: root}.Find("pi")
			if got != c.want || ok != (c.want != "") {
				t.Errorf("got %q, %v; want %q", got, ok, c.want)
			}
		})
	}
	if got, _ := (Search{Path: ".", Cwd: root + "/a"}).Find("pi"); got != root+"/a/./pi" {
		t.Errorf("a dot entry gave %q", got)
	}
}

func TestRequire(t *testing.T) {
	_, err := Search{Path: "/nowhere", Home: t.TempDir()}.Require("nono")
	if err == nil || !strings.Contains(err.Error(), "Required executable \"nono\" not found on PATH — install it, then run `cradle doctor` to verify") {
		t.Fatalf("got %v", err)
	}
}
