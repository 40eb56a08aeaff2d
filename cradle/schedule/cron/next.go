package cron

import "time"

// horizonDays is how far Next looks: calendar days, the last one included up to the same wall-clock minute.
const horizonDays = 366

// Next gives the first firing strictly after a moment, in that moment's location, or false when there is none within 366
// calendar days. A wall-clock time that a daylight-saving change skips does not fire, and one that occurs twice fires at its
// first occurrence only; systemd's timers do the same.
func (e Expr) Next(after time.Time) (time.Time, bool) {
	loc := after.Location()
	year, month, day := after.Date()
	// First occurrences keep the order of wall-clock times, so nothing before this wall-clock minute can be the answer.
	from := after.Hour()*60 + after.Minute()
	until := from
	for d := 0; d <= horizonDays; d++ {
		date := time.Date(year, month, day+d, 0, 0, 0, 0, time.UTC)
		if !e.matchesDate(date) {
			continue
		}
		first, last := 0, 24*60-1
		if d == 0 {
			first = from
		}
		if d == horizonDays {
			last = until
		}
		for minute := first; minute <= last; minute++ {
			if !e.Hour.Has(minute / 60) {
				minute += 59 - minute%60
				continue
			}
			if !e.Minute.Has(minute % 60) {
				continue
			}
			if at, ok := firstOccurrence(date.Add(time.Duration(minute)*time.Minute), loc); ok && at.After(after) {
				return at, true
			}
		}
	}
	return time.Time{}, false
}

// Last gives the latest firing at or before a moment, or false when there is none within a year before it.
func (e Expr) Last(at time.Time) (time.Time, bool) {
	// Firing times can only be walked forwards; widening windows keep a frequent task from being walked for a year.
	for _, back := range []time.Duration{time.Hour, 25 * time.Hour, 8 * 24 * time.Hour, 32 * 24 * time.Hour, horizonDays * 24 * time.Hour} {
		var last time.Time
		for t, ok := e.Next(at.Add(-back)); ok && !t.After(at); t, ok = e.Next(t) {
			last = t
		}
		if !last.IsZero() {
			return last, true
		}
	}
	return time.Time{}, false
}

func (e Expr) matchesDate(date time.Time) bool {
	return e.Month.Has(int(date.Month())) && e.Day.Has(date.Day()) && e.Weekday.Has(int(date.Weekday()))
}

// firstOccurrence finds the earliest moment at which clocks in loc show the wall-clock time that wall shows in UTC; false when
// they never do.
func firstOccurrence(wall time.Time, loc *time.Location) (time.Time, bool) {
	year, month, day := wall.Date()
	at := time.Date(year, month, day, wall.Hour(), wall.Minute(), 0, 0, loc)
	if !shows(at, wall) {
		return time.Time{}, false
	}
	// Date may return either of two occurrences. If it gave the later one, the offset in force before the change gives the
	// earlier.
	if start, _ := at.ZoneBounds(); !start.IsZero() {
		_, offset := start.Add(-1).Zone()
		earlier := wall.Add(-time.Duration(offset) * time.Second).In(loc)
		if earlier.Before(at) && shows(earlier, wall) {
			at = earlier
		}
	}
	return at, true
}

func shows(at, wall time.Time) bool {
	y, m, d := at.Date()
	wy, wm, wd := wall.Date()
	return y == wy && m == wm && d == wd && at.Hour() == wall.Hour() && at.Minute() == wall.Minute()
}
