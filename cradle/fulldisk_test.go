package main

import (
	"os/exec"
	"strings"
	"testing"
)

// fillDisk runs cradle on a small disk of its own with more and more room left, page by page, and says of each run how it ended
// and which of its files differ from those of a run with room for all.
const fillDisk = `
disk=$1 reference=$2; shift 2
mount -t tmpfs -o size=64k none "$disk" || exit 99
"$@" >/dev/null 2>&1 || exit 98
cp -R "$disk"/state/agents/*/extensions "$disk"/state/agents/*/nono-profile.json "$reference"
for free in 0 1 2 3 4 5 6 7 8; do
	rm -rf "$disk"/*
	head -c $((65536 - free * 4096)) /dev/zero >"$disk/fill" || exit 97
	"$@" >"$reference/out" 2>"$reference/err"
	echo "$free code $?"
	head -n 1 "$reference/err"
	for file in extensions/providers.ts extensions/agent-browser-nono-fallback.ts nono-profile.json; do
		for found in "$disk"/state/agents/*/"$file"; do
			[ ! -e "$found" ] || cmp "$found" "$reference/$file"
		done
	done
	find "$disk/state" -name '*.tmp-*'
done
`

// Whatever the moment at which the disk is full, it is said, pi is not started, and nothing is left that is not whole.
func TestFullDisk(t *testing.T) {
	if out, err := exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "none", t.TempDir()).CombinedOutput(); err != nil {
		t.Skipf("NOT CHECKED: what happens on a full disk needs Linux's user namespaces to make one: %v %s", err, out)
	}
	w := newWorld(t, map[string]string{
		"agent/models.json":       `{"providers":{"local":{"baseUrl":"http://localhost:1"}}}`,
		"agent/sandbox/nono.json": `{}`,
		"disk/.keep":              "",
		"reference/.keep":         "",
	}, "pi", "nono")
	cradle := w.cradle("run", w.agent)
	cmd := exec.Command("unshare", append([]string{"-rm", "sh", "-c", fillDisk, "sh", w.root + "/disk", w.root + "/reference"}, cradle.Args...)...)
	cmd.Env, cmd.Dir = append(w.env, "CRADLE_STATE_DIR="+w.root+"/disk/state"), cradle.Dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	failures, successes := 0, 0
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		switch {
		case strings.HasSuffix(lines[i], " code 0") && failures > 0:
			successes++
		case strings.HasSuffix(lines[i], " code 1") && successes == 0 && i+1 < len(lines):
			failures++
			if i++; !strings.Contains(strings.ToLower(lines[i]), "failed to ") || !strings.Contains(lines[i], "no space left on device") {
				t.Errorf("the error is %q", lines[i])
			}
		default:
			t.Errorf("unexpected %q", lines[i])
		}
	}
	if failures+successes != 9 || successes == 0 || w.logged("pi") != successes+1 {
		t.Errorf("%d runs failed, %d succeeded, pi was started %d times:\n%s", failures, successes, w.logged("pi"), out)
	}
}
