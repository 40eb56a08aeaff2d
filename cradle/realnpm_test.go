package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// registry serves packages that the real npm packed, as the public registry would.
func registry(t *testing.T, w *world, packages ...string) *httptest.Server {
	t.Helper()
	var mu sync.Mutex
	documents, tarballs := map[string]any{}, map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		name := strings.TrimPrefix(r.URL.Path, "/")
		if path, ok := tarballs[name]; ok {
			http.ServeFile(rw, r, path)
		} else if doc, ok := documents[name]; ok {
			_ = json.NewEncoder(rw).Encode(doc)
		} else {
			http.Error(rw, `{"error":"not found"}`, http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	for _, name := range packages {
		dir := filepath.Join(w.root, "packages", name)
		pack := exec.Command("/usr/bin/env", "npm", "pack", "--json", "--ignore-scripts", "--pack-destination", w.root)
		pack.Dir, pack.Env = dir, w.env
		out, err := pack.Output()
		if err != nil {
			t.Fatalf("npm pack: %v", err)
		}
		var packed []struct{ Filename, Shasum, Integrity string }
		if err := json.Unmarshal(out, &packed); err != nil || len(packed) != 1 {
			t.Fatalf("npm pack printed %q", out)
		}
		data, err := os.ReadFile(filepath.Join(dir, "package.json"))
		if err != nil {
			t.Fatal(err)
		}
		var manifest map[string]any
		if err := json.Unmarshal(data, &manifest); err != nil {
			t.Fatal(err)
		}
		version := manifest["version"].(string)
		mu.Lock()
		tarballs[packed[0].Filename] = filepath.Join(w.root, packed[0].Filename)
		manifest["dist"] = map[string]string{
			"tarball": server.URL + "/" + packed[0].Filename, "shasum": packed[0].Shasum, "integrity": packed[0].Integrity,
		}
		documents[name] = map[string]any{
			"name": name, "dist-tags": map[string]string{"latest": version}, "versions": map[string]any{version: manifest},
		}
		mu.Unlock()
	}
	return server
}

func TestRealNpm(t *testing.T) {
	w := newWorld(t, map[string]string{
		"agent/settings.json":             `{"packages":["npm:tool@^1",{"source":"npm:kit","extensions":["!extensions/legacy.ts"]}]}`,
		"packages/tool/package.json":      `{"name":"tool","version":"1.2.3","pi":{"extensions":["src/*.ts"]},"dependencies":{"dep":"*"},"scripts":{"preinstall":"touch \"$MARK\"","install":"touch \"$MARK\"","postinstall":"touch \"$MARK\""}}`,
		"packages/tool/src/b.ts":          "",
		"packages/tool/src/a.ts":          "",
		"packages/dep/package.json":       `{"name":"dep","version":"0.0.1","scripts":{"postinstall":"touch \"$MARK\""}}`,
		"packages/kit/package.json":       `{"name":"kit","version":"3.0.0"}`,
		"packages/kit/extensions/main.ts": "", "packages/kit/extensions/legacy.ts": "",
	}, "pi")
	mark := filepath.Join(w.root, "scripts-ran")
	w.env = append(w.env, "MARK="+mark, "npm_config_update_notifier=false", "npm_config_audit=false", "npm_config_fetch_retries=0")
	server := registry(t, w, "tool", "dep", "kit")
	w.env = append(w.env, "npm_config_registry="+server.URL)

	npm := filepath.Join(w.state().NPM(), "node_modules")
	want := ""
	for _, path := range []string{"tool/src/a.ts", "tool/src/b.ts", "kit/extensions/main.ts"} {
		want += "arg -e\narg " + filepath.Join(npm, path) + "\n"
	}
	run := func() (stdout, stderr string, code int) {
		t.Helper()
		var out, errs bytes.Buffer
		cmd := w.cradle("run", w.agent, "--no-sandbox")
		cmd.Stdout, cmd.Stderr = &out, &errs
		code = exitCode(t, cmd.Run())
		return out.String(), errs.String(), code
	}
	stdout, stderr, code := run()
	if code != 0 || stderr != "" || !strings.Contains(stdout, "added 3 packages") || !strings.Contains(stdout, want) {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(npm, "dep", "package.json")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("life-cycle scripts ran")
	}
	server.Close()
	if stdout, stderr, code = run(); code != 0 || stderr != "" || !strings.HasPrefix(stdout, "cwd ") || !strings.Contains(stdout, want) {
		t.Fatalf("again, without a registry: exit code %d\n%s%s", code, stdout, stderr)
	}

	// One that does not exist: npm's own words, ours, and another try next time.
	w.env = append(w.env, "npm_config_registry="+registry(t, w, "tool", "dep", "kit").URL)
	w.write("agent/settings.json", `{"packages":["npm:tool","npm:nowhere"]}`)
	stdout, stderr, code = run()
	if code != 1 || strings.Contains(stdout, "cwd ") || !strings.HasSuffix(stderr, "\nPackage install failed (npm install --ignore-scripts exited 1)\n") {
		t.Fatalf("missing: exit code %d\n%s%s", code, stdout, stderr)
	}
	w.write("agent/settings.json", `{"packages":["npm:tool"]}`)
	if stdout, stderr, code = run(); code != 0 || stderr != "" || !strings.Contains(stdout, filepath.Join(npm, "tool/src/a.ts")) {
		t.Fatalf("mended: exit code %d\n%s%s", code, stdout, stderr)
	}
}
