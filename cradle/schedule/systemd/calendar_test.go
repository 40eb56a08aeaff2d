package systemd

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"pi-cradle/cradle/schedule/cron"
)

// systemd has to fire when we say that it will. Every expression is asked for its next three moments from bases around the
// clock's jumps. CRADLE_CALENDARS sets the number of expressions.
func TestCalendarsAgreeWithSystemd(t *testing.T) {
	analyze := systemdAnalyze(t)
	total := 2000
	if text := os.Getenv("CRADLE_CALENDARS"); text != "" {
		var err error
		if total, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 2))
	bases := []struct{ zone, base string }{
		{"UTC", "2026-01-31 23:59:00"}, {"America/New_York", "2026-03-07 23:10:00"}, {"America/New_York", "2026-11-01 00:40:00"},
		{"Europe/Berlin", "2027-03-28 01:15:00"}, {"Europe/Berlin", "2027-10-31 01:59:00"}, {"Asia/Kathmandu", "2028-02-28 12:00:00"},
	}
	for i, base := range bases {
		t.Run(base.zone+" "+base.base, func(t *testing.T) {
			loc, err := time.LoadLocation(base.zone)
			if err != nil {
				t.Fatal(err)
			}
			from, err := time.ParseInLocation(time.DateTime, base.base, loc)
			if err != nil {
				t.Fatal(err)
			}
			var exprs, calendars []string
			for range (total + len(bases) - 1 - i) / len(bases) {
				raw := randomExpr(r)
				exprs = append(exprs, raw)
				calendars = append(calendars, OnCalendar(job(t, raw).Cron, ""))
			}
			args := append([]string{"calendar", "--iterations=3", "--base-time=" + base.base}, calendars...)
			cmd := exec.Command(analyze, args...)
			cmd.Env = []string{"TZ=" + base.zone, "LC_ALL=C"}
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, out)
			}
			theirs := parseCalendars(t, string(out))
			if len(theirs) != len(exprs) {
				t.Fatalf("seed %d: %d answers for %d expressions", seed, len(theirs), len(exprs))
			}
			for i, raw := range exprs {
				if problem := compare(job(t, raw).Cron, from, theirs[i]); problem != "" {
					t.Errorf("seed %d: %q (%s): %s", seed, raw, calendars[i], problem)
				}
			}
		})
	}
}

func compare(e cron.Expr, from time.Time, theirs []time.Time) string {
	at := from
	for n := range 3 {
		next, ok := e.Next(at)
		switch {
		case !ok && (len(theirs) <= n || theirs[n].After(at.AddDate(0, 0, 366))):
			return "" // beyond our horizon
		case !ok || len(theirs) <= n:
			return fmt.Sprintf("firing %d: we say %v %v, systemd %v", n, next, ok, theirs)
		case !next.Equal(theirs[n]):
			return fmt.Sprintf("firing %d: we say %v, systemd %v", n, next, theirs[n].In(from.Location()))
		}
		at = next
	}
	return ""
}

// parseCalendars reads the firings of each block of output, in UTC.
func parseCalendars(t *testing.T, out string) (all [][]time.Time) {
	t.Helper()
	for line := range strings.Lines(out) {
		label, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case label == "Normalized form":
			all = append(all, nil)
		case strings.HasSuffix(text, " UTC"):
			at, err := time.Parse("Mon 2006-01-02 15:04:05 MST", text)
			if err != nil {
				t.Fatal(err)
			}
			all[len(all)-1] = append(all[len(all)-1], at)
		}
	}
	return all
}

func randomExpr(r *rand.Rand) string {
	field := func(min, max int) string {
		value := func() int { return min + r.IntN(max-min+1) }
		switch a, b := value(), value(); r.IntN(6) {
		case 0, 1:
			return "*"
		case 2:
			return fmt.Sprint(a)
		case 3:
			return fmt.Sprintf("*/%d", 1+r.IntN(max-min+1))
		case 4:
			return fmt.Sprintf("%d-%d/%d", a, max, 1+r.IntN(9))
		default:
			if a > b {
				a, b = b, a
			}
			return fmt.Sprintf("%d-%d,%d", a, b, value())
		}
	}
	minute, hour, day, month, weekday := field(0, 59), field(0, 23), "*", field(1, 12), "*"
	if r.IntN(2) == 0 {
		day = field(1, 31)
	} else {
		weekday = field(0, 7)
	}
	return strings.Join([]string{minute, hour, day, month, weekday}, " ")
}
