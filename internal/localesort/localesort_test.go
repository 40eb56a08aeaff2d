package localesort

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestOrderIsLocaleCompares(t *testing.T) {
	for _, want := range [][]string{
		strings.Fields("0 10-am 9-am a_b a-b a.b a1 a10 a2 ab b B daily Daily daily_report daily-report daily.report zeta Zeta"),
		strings.Fields("@a-b/c @a/z @ab/c @b/a ~x 1st a a_b a-b a.b ab abc zed"),
		{"_a.ts", "-a.ts", "1.ts", "10.ts", "2.ts", "a b.ts", "a_b.ts", "a-b.ts", "a.b.ts", "a.ts", "A.ts", "ä.ts", "ab.ts", "index.ts", "Index.ts", "z.ts", "Z.ts"},
	} {
		for seed := range uint64(20) {
			got := slices.Clone(want)
			rand.New(rand.NewPCG(seed, 1)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
			Strings(got)
			if !slices.Equal(got, want) {
				t.Fatalf("\n got %q\nwant %q", got, want)
			}
		}
	}
}
