package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pi-cradle/cradle/nono"
	"pi-cradle/internal/durable"
	"pi-cradle/internal/run"
)

// nowhere stands for the folders that differ from run to run. nono skips what is not there.
const nowhere = "/nonexistent/cradle-doctor"

// inside finds out whether nono lets pi read itself with no more than what every sandboxed run grants. When it does not, nono,
// told to be silent, ends with 127 and no word. The second result is false when there is nothing to find out.
func inside(ctx context.Context, host Host) (Finding, bool) {
	f := Finding{Name: "pi in nono", Status: OK}
	nonoPath, ok := host.Find("nono")
	if !ok {
		return f, false
	}
	pi, ok := host.Find("pi")
	if !ok {
		return f, false
	}
	dir, err := os.MkdirTemp("", "cradle-doctor-")
	if err != nil {
		return f, false
	}
	defer os.RemoveAll(dir)
	profile := filepath.Join(dir, "profile.json")
	text := nono.Profile(nono.Input{Name: "doctor", Home: host.Home, CWD: nowhere, Agent: nowhere, State: nowhere})
	if err := durable.Write(profile, []byte(text)); err != nil {
		return f, false
	}
	f.Path = pi
	var hidden []string
	for _, path := range programFiles(pi, host.Find) {
		allowed, known := readable(ctx, nonoPath, profile, path)
		if !known {
			return f, false
		}
		if parent := filepath.Dir(path); !allowed && !slices.Contains(hidden, parent) {
			hidden = append(hidden, parent)
		}
	}
	if hidden != nil {
		f.Status = Hidden
		f.Hint = fmt.Sprintf("nono hides it from pi: in sandbox/nono.json, grant filesystem.read on %s", strings.Join(hidden, " and "))
	}
	return f, true
}

// programFiles are the files that have to be readable for pi to start: the name on PATH, what it links to, and the same for the
// Node that runs a script.
func programFiles(pi string, find Find) []string {
	var files []string
	add := func(path string) string {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			real = path
		}
		for _, p := range []string{path, real} {
			if !slices.Contains(files, p) {
				files = append(files, p)
			}
		}
		return real
	}
	if filepath.Ext(add(pi)) == ".js" {
		if node, ok := find("node"); ok {
			add(node)
		}
	}
	return files
}

// readable asks nono. known is false when it gives no answer that can be understood.
func readable(ctx context.Context, nonoPath, profile, path string) (allowed, known bool) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	res, err := run.Output(ctx, run.Cmd{Path: nonoPath, Args: []string{"why", "--json", "--path", path, "--op", "read", "--profile", profile}})
	var answer struct{ Status string }
	if err != nil || json.Unmarshal(res.Stdout, &answer) != nil {
		return false, false
	}
	return answer.Status == "allowed", answer.Status == "allowed" || answer.Status == "denied"
}
