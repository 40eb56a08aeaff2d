package faulttest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// steps plays one delegation without a fault and gives the names of all steps of one side.
func steps(t *testing.T, mail string, delegate bool) []string {
	t.Helper()
	w := newWorld(t)
	p := start(w, victim{mail: mail, delegate: delegate})
	p.finish()
	p.check()
	if p.failed != nil || w.parent.Count(answer) != 1 {
		t.Fatalf("without a fault: %v, %d answers", p.failed, w.parent.Count(answer))
	}
	data, err := os.ReadFile(filepath.Join(w.dir, "steps"))
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Split(strings.TrimSpace(string(data)), "\n")
	slices.Sort(names)
	return slices.Compact(names)
}

func TestKilledAtEveryStep(t *testing.T) {
	for _, mail := range []string{"embedded", "hooks"} {
		for _, side := range []string{"parent", "delegate"} {
			t.Run(mail+"/"+side, func(t *testing.T) {
				names := steps(t, mail, side == "delegate")
				if len(names) < 8 {
					t.Fatalf("only %d steps were seen: %v", len(names), names)
				}
				var died atomic.Int64
				// Two changes can go into one save, so that a last save of a record may not come to pass in every run.
				t.Cleanup(func() {
					if total := int64(2 * len(names)); died.Load() < total*8/10 {
						t.Errorf("only %d of %d died", died.Load(), total)
					}
				})
				for _, name := range names {
					for _, pi := range []bool{false, true} {
						v := victim{mail: mail, delegate: side == "delegate", step: name, pi: pi}
						t.Run(fmt.Sprintf("%s/pi dies %v", strings.ReplaceAll(name, "/", ":"), pi), func(t *testing.T) {
							t.Parallel()
							p := start(newWorld(t), v)
							p.finish()
							p.check()
							if _, err := os.Stat(p.marker); err == nil {
								died.Add(1)
							}
						})
					}
				}
			})
		}
	}
}
