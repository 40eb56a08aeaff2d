package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pi-cradle/internal/testenv"
)

// BenchmarkCommands runs whole processes in turn, so that a busy moment of the machine hits all of them alike, and reports the
// median of each in milliseconds. The first two are the floor: a process that does nothing, and a Node that does.
//
//	go test -run='^$' -bench=Commands -benchtime=30x ./cradle
func BenchmarkCommands(b *testing.B) {
	cradle := testenv.Build(b).Cradle
	root := b.TempDir()
	env := append(os.Environ(), "HOME="+root, "CRADLE_STATE_DIR="+root+"/state", "PATH="+root+"/bin:"+systemPath)
	hello := filepath.Join(testenv.Repo(), "examples", "hello")
	work := b.TempDir() // the home, above nono's own state, can't be sandboxed
	large := filepath.Join(root, "large")
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	write(large+"/SYSTEM.md", "x")
	for i := range 200 {
		write(fmt.Sprintf("%s/extensions/tool-%03d.ts", large, i), "export default function () {}\n")
		write(fmt.Sprintf("%s/skills/skill-%03d/SKILL.md", large, i), "---\nname: x\ndescription: x\n---\n")
	}
	write(root+"/bin/.keep", "")
	// A pi or nono that ends at once leaves what cradle adds to it.
	for _, name := range []string{"pi", "nono"} {
		if err := os.Symlink("/bin/true", root+"/bin/"+name); err != nil {
			b.Fatal(err)
		}
	}
	commands := []struct {
		name string
		argv []string
	}{
		{"true", []string{"/bin/true"}},
		{"node", []string{filepath.Join(testenv.NodeDir(), "node"), "-e", "0"}},
		{"dry-run", []string{cradle, "run", hello, "--dry-run"}},
		{"explain", []string{cradle, "run", hello, "--explain"}},
		{"doctor", []string{cradle, "doctor"}},
		{"run", []string{cradle, "run", hello, "--no-sandbox"}},
		{"run-nono", []string{cradle, "run", hello, "--sandbox", "--verbose"}},
		{"dry-run-400", []string{cradle, "run", large, "--dry-run"}},
		{"run-400", []string{cradle, "run", large, "--no-sandbox"}},
	}
	times := make([][]time.Duration, len(commands))
	for b.Loop() {
		for i, c := range commands {
			cmd := exec.Command(c.argv[0], c.argv[1:]...)
			cmd.Env, cmd.Dir = env, work
			start := time.Now()
			if err := cmd.Run(); err != nil {
				b.Fatalf("%s: %v", c.name, err)
			}
			times[i] = append(times[i], time.Since(start))
		}
	}
	for i, c := range commands {
		slices.Sort(times[i])
		b.ReportMetric(float64(times[i][len(times[i])/2].Microseconds())/1000, c.name+"-ms")
	}
	b.ReportMetric(0, "ns/op") // says nothing here
}
