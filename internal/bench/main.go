// Bench measures what squire costs on this machine, beside the floor of the same run: the least that pi and tmux need for the
// same thing. Ratios can be compared between machines; milliseconds can't.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"text/tabwriter"
	"time"

	"pi-cradle/internal/testenv"
)

// row is one line of the table. Ours and floor are samples in the unit; a nil floor has no counterpart.
type row struct {
	what        string
	unit        string
	ours, floor []float64
}

// measurement makes rows from n samples each.
type measurement struct {
	name string
	run  func(t testenv.T, n int) []row
}

var measurements = []measurement{
	{"helper", helperStart},
	{"startup", startup},
	{"delegate", delegation},
	{"death", death},
	{"idle", idle},
	{"stream", stream},
}

func main() {
	n := flag.Int("n", 10, "samples of each")
	only := flag.String("only", "", "regular expression of the measurements to make")
	flag.Parse()
	if err := bench(*n, *only); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func bench(n int, only string) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\tn\tours: median\tmin\tmax\tfloor: median\tmin\tmax\tratio")
	for _, m := range measurements {
		if !wanted.MatchString(m.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring %s\n", m.name)
		var rows []row
		if err := testenv.Run(m.name, func(t testenv.T) { rows = m.run(t, n) }); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		for _, r := range rows {
			printRow(table, r)
		}
	}
	return table.Flush()
}

func printRow(table *tabwriter.Writer, r row) {
	fmt.Fprintf(table, "%s (%s)\t%d\t%s\t", r.what, r.unit, len(r.ours), spread(r.ours))
	if len(r.floor) == 0 {
		fmt.Fprintln(table, "-\t-\t-\t-")
		return
	}
	fmt.Fprintf(table, "%s\t%.2f\n", spread(r.floor), median(r.ours)/median(r.floor))
}

func spread(samples []float64) string {
	return fmt.Sprintf("%.1f\t%.1f\t%.1f", median(samples), slices.Min(samples), slices.Max(samples))
}

func median(samples []float64) float64 {
	s := slices.Sorted(slices.Values(samples))
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}

// ms is the time between two moments in milliseconds.
func ms(from, to time.Time) float64 { return float64(to.Sub(from).Microseconds()) / 1000 }
