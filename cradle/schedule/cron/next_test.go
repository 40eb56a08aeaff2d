package cron

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

func mustParse(t testing.TB, raw string) Expr {
	t.Helper()
	e, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func mustLoad(t testing.TB, zone string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func TestNext(t *testing.T) {
	const layout = "2006-01-02 15:04:05 -0700"
	for _, c := range []struct{ zone, raw, from, want string }{
		{"UTC", "@daily", "2026-01-01 05:00:00 +0000", "2026-01-02 00:00:00 +0000"},
		{"UTC", "0 9 * * mon-fri", "2026-01-02 10:00:00 +0000", "2026-01-05 09:00:00 +0000"},
		{"UTC", "*/15 * * * *", "2026-01-01 00:05:00 +0000", "2026-01-01 00:15:00 +0000"},
		{"UTC", "*/15 * * * *", "2026-01-01 00:00:00 +0000", "2026-01-01 00:15:00 +0000"},
		{"UTC", "* * * * *", "2026-01-01 00:00:30 +0000", "2026-01-01 00:01:00 +0000"},
		{"UTC", "@monthly", "2026-01-31 12:00:00 +0000", "2026-02-01 00:00:00 +0000"},
		{"UTC", "0 0 30 2 *", "2026-01-01 00:00:00 +0000", "never"},
		{"UTC", "0 0 29 2 *", "2026-01-01 00:00:00 +0000", "never"},
		{"UTC", "0 0 29 2 *", "2027-06-01 00:00:00 +0000", "2028-02-29 00:00:00 +0000"},
		{"UTC", "0 0 29 2 *", "2027-02-28 00:00:00 +0000", "2028-02-29 00:00:00 +0000"},
		{"UTC", "0 0 29 2 *", "2027-02-27 23:59:00 +0000", "never"},
		{"UTC", "0 0 1 1 *", "2026-01-01 00:00:00 +0000", "2027-01-01 00:00:00 +0000"},
		{"America/New_York", "0 2 * * *", "2026-03-07 23:00:00 -0500", "2026-03-09 02:00:00 -0400"},
		{"America/New_York", "30 2 * * *", "2026-03-07 23:00:00 -0500", "2026-03-09 02:30:00 -0400"},
		{"America/New_York", "0 3 * * *", "2026-03-07 23:00:00 -0500", "2026-03-08 03:00:00 -0400"},
		{"America/New_York", "0 * * * *", "2026-03-08 01:30:00 -0500", "2026-03-08 03:00:00 -0400"},
		{"America/New_York", "30 1 * * *", "2026-10-31 23:00:00 -0400", "2026-11-01 01:30:00 -0400"},
		{"America/New_York", "30 1 * * *", "2026-11-01 01:30:00 -0400", "2026-11-02 01:30:00 -0500"},
		{"America/New_York", "*/15 * * * *", "2026-11-01 01:45:00 -0400", "2026-11-01 02:00:00 -0500"},
		// Asked in the second pass of a repeated hour, the answer is still in the future.
		{"America/New_York", "* * * * *", "2026-11-01 01:10:00 -0500", "2026-11-01 02:00:00 -0500"},
		{"Australia/Lord_Howe", "15,45 2 * * *", "2026-10-04 01:00:00 +1030", "2026-10-04 02:45:00 +1100"},
		{"Africa/Cairo", "0 0 * * *", "2026-04-23 12:00:00 +0200", "2026-04-25 00:00:00 +0300"},
		{"Pacific/Apia", "0 12 30 12 *", "2011-12-01 00:00:00 -1000", "never"},
	} {
		from, err := time.ParseInLocation(layout, c.from, mustLoad(t, c.zone))
		if err != nil {
			t.Fatal(err)
		}
		got := "never"
		if at, ok := mustParse(t, c.raw).Next(from); ok {
			got = at.Format(layout)
		}
		if got != c.want {
			t.Errorf("%s %q after %s: got %s, want %s", c.zone, c.raw, c.from, got, c.want)
		}
	}
}

func TestLast(t *testing.T) {
	const layout = "2006-01-02 15:04:05"
	for _, c := range []struct{ raw, at, want string }{
		{"* * * * *", "2026-01-01 00:00:30", "2026-01-01 00:00:00"},
		{"0 9 * * *", "2026-01-02 09:00:00", "2026-01-02 09:00:00"},
		{"0 9 * * *", "2026-01-02 08:59:59", "2026-01-01 09:00:00"},
		{"0 9 * * 1", "2026-01-04 08:00:00", "2025-12-29 09:00:00"},
		{"0 0 1 1 *", "2026-12-31 23:59:00", "2026-01-01 00:00:00"},
		{"0 0 30 2 *", "2026-12-31 23:59:00", "never"},
	} {
		at, err := time.Parse(layout, c.at)
		if err != nil {
			t.Fatal(err)
		}
		got := "never"
		if last, ok := mustParse(t, c.raw).Last(at); ok {
			got = last.Format(layout)
		}
		if got != c.want {
			t.Errorf("%q at %s: got %s, want %s", c.raw, c.at, got, c.want)
		}
	}
}

// clock is a year of a zone's wall clock, minute by minute. It knows nothing of offsets: a wall-clock time that is not later
// than every one before it is a repetition.
type clock struct {
	start  time.Time // UTC
	walls  []wall
	hazard []int // minutes at which the wall clock jumped
}

type wall struct {
	minute, hour, day, month, weekday int8
	repeated                          bool
}

func newClock(loc *time.Location, year, days int) *clock {
	c := &clock{start: time.Date(year, 1, 1, 12, 0, 0, 0, time.UTC)}
	var latest, previous int64
	for i := range days * 24 * 60 {
		at := c.start.Add(time.Duration(i) * time.Minute).In(loc)
		y, m, d := at.Date()
		serial := time.Date(y, m, d, at.Hour(), at.Minute(), 0, 0, time.UTC).Unix() / 60
		if i > 0 && serial != previous+1 {
			c.hazard = append(c.hazard, i)
		}
		previous = serial
		c.walls = append(c.walls, wall{int8(at.Minute()), int8(at.Hour()), int8(d), int8(m), int8(at.Weekday()), serial <= latest})
		latest = max(latest, serial)
	}
	return c
}

func (c *clock) firings(e Expr) (at []int) {
	minutes, hours, days, months, weekdays := table(e.Minute), table(e.Hour), table(e.Day), table(e.Month), table(e.Weekday)
	for i := range c.walls {
		w := &c.walls[i]
		if !w.repeated && minutes[w.minute] && hours[w.hour] && days[w.day] && months[w.month] && weekdays[w.weekday] {
			at = append(at, i)
		}
	}
	return at
}

func table(f Field) (t [60]bool) {
	for v := range t {
		t[v] = f.Has(v)
	}
	return t
}

func randomExpr(r *rand.Rand) string {
	field := func(min, max int) string {
		value := func() int { return min + r.IntN(max-min+1) }
		switch r.IntN(6) {
		case 0, 1:
			return "*"
		case 2:
			return fmt.Sprint(value())
		case 3:
			return fmt.Sprintf("*/%d", 1+r.IntN(max-min+1))
		case 4:
			return fmt.Sprintf("%d-%d/%d", value(), max, 1+r.IntN(9))
		default:
			a, b := value(), value()
			if a > b {
				a, b = b, a
			}
			return fmt.Sprintf("%d-%d,%d", a, b, value())
		}
	}
	words := []string{field(0, 59), field(0, 23), "*", field(1, 12), "*"}
	if r.IntN(2) == 0 {
		words[2] = field(1, 31)
	} else {
		words[4] = field(0, 7)
	}
	return strings.Join(words, " ")
}

// Every answer of Next is compared with a minute-by-minute walk of the wall clock, most of them around its jumps.
func TestNextAgainstBruteForce(t *testing.T) {
	for _, c := range []struct {
		zone string
		year int
	}{
		{"America/New_York", 2026}, {"Europe/Berlin", 2027}, {"Australia/Lord_Howe", 2026}, {"Africa/Cairo", 2026}, {"America/Santiago", 2026},
		{"America/Havana", 2027}, {"Antarctica/Troll", 2026}, {"Africa/Casablanca", 2026}, {"America/Sao_Paulo", 2018}, {"Pacific/Apia", 2011},
	} {
		t.Run(fmt.Sprintf("%s/%d", c.zone, c.year), func(t *testing.T) {
			t.Parallel()
			loc := mustLoad(t, c.zone)
			seed := uint64(time.Now().UnixNano())
			r := rand.New(rand.NewPCG(seed, 1))
			clock := newClock(loc, c.year, 365)
			if len(clock.hazard) == 0 {
				t.Fatal("the clock never jumps: no hazard is tested")
			}
			exprs := []string{"* * * * *", "30 0 * * *", "0,30 1-3 * * *", "0 0 * * 0"}
			for range 5 {
				exprs = append(exprs, randomExpr(r))
			}
			for _, raw := range exprs {
				e := mustParse(t, raw)
				firings := clock.firings(e)
				for range 60 {
					from := r.IntN(len(clock.walls))
					if r.IntN(4) > 0 {
						from = clock.hazard[r.IntN(len(clock.hazard))] + r.IntN(400) - 200
					}
					from = min(max(from, 0), len(clock.walls)-1)
					i := sort.SearchInts(firings, from+1)
					if i == len(firings) {
						continue // beyond the walk
					}
					after := clock.start.Add(time.Duration(from)*time.Minute + time.Duration(r.IntN(60))*time.Second).In(loc)
					want := clock.start.Add(time.Duration(firings[i]) * time.Minute)
					got, ok := e.Next(after)
					if !ok || !got.Equal(want) {
						t.Fatalf("seed %d: %q after %s: got %s, %v, want %s", seed, raw, after, got, ok, want.In(loc))
					}
					if last, ok := e.Last(want.In(loc)); !ok || !last.Equal(want) {
						t.Fatalf("seed %d: %q: last at %s is %s, %v", seed, raw, want.In(loc), last, ok)
					}
				}
			}
		})
	}
}

// The oracle itself must see both kinds of jump.
func TestClockSeesJumps(t *testing.T) {
	c := newClock(mustLoad(t, "America/New_York"), 2026, 365)
	if len(c.hazard) != 2 || !slices.ContainsFunc(c.walls, func(w wall) bool { return w.repeated }) {
		t.Fatalf("hazards %v", c.hazard)
	}
}
