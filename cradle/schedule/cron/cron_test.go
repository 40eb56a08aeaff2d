package cron

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestParseFields(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want Expr
	}{
		{"* * * * *", Expr{}},
		{"5 * * * *", Expr{Minute: Field{5}}},
		{"007 * * * *", Expr{Minute: Field{7}}},
		{"1-5 * * * *", Expr{Minute: Field{1, 2, 3, 4, 5}}},
		{"*/15 * * * *", Expr{Minute: Field{0, 15, 30, 45}}},
		{"10-20/5 * * * *", Expr{Minute: Field{10, 15, 20}}},
		{"30,0,15,15 * * * *", Expr{Minute: Field{0, 15, 30}}},
		{"0-59 * * * *", Expr{}},
		{"*/99 * * * *", Expr{Minute: Field{0}}},
		{"* * 1-31 * *", Expr{}},
		{"0 9 1-31 * 1", Expr{Minute: Field{0}, Hour: Field{9}, Weekday: Field{1}}},
		{"* * */2 * *", Expr{Day: Field{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31}}},
		{"* * * * 0", Expr{Weekday: Field{0}}},
		{"* * * * 7", Expr{Weekday: Field{0}}},
		{"* * * * 0,7", Expr{Weekday: Field{0}}},
		{"* * * * 5-7", Expr{Weekday: Field{0, 5, 6}}},
		{"* * * * 2-7", Expr{Weekday: Field{0, 2, 3, 4, 5, 6}}},
		{"* * * * 0-7", Expr{}},
		{"* * * * 1-7", Expr{}},
		{"* * * * */2", Expr{Weekday: Field{0, 2, 4, 6}}},
		{"* * * * */7", Expr{Weekday: Field{0}}},
		{"* * * * 1-7/2", Expr{Weekday: Field{0, 1, 3, 5}}},
		{"* * * * mon-fri", Expr{Weekday: Field{1, 2, 3, 4, 5}}},
		{"* * * * mon-5,SUN", Expr{Weekday: Field{0, 1, 2, 3, 4, 5}}},
		{"* * * jan *", Expr{Month: Field{1}}},
		{"* * * JAN-MAR *", Expr{Month: Field{1, 2, 3}}},
		{" \t0  9\ufeff* * 1-5 ", Expr{Minute: Field{0}, Hour: Field{9}, Weekday: Field{1, 2, 3, 4, 5}}},
		{"@hourly", Expr{Minute: Field{0}}},
		{" @Daily ", Expr{Minute: Field{0}, Hour: Field{0}}},
		{"@midnight", Expr{Minute: Field{0}, Hour: Field{0}}},
		{"@weekly", Expr{Minute: Field{0}, Hour: Field{0}, Weekday: Field{0}}},
		{"@monthly", Expr{Minute: Field{0}, Hour: Field{0}, Day: Field{1}}},
		{"@yearly", Expr{Minute: Field{0}, Hour: Field{0}, Day: Field{1}, Month: Field{1}}},
		{"@annually", Expr{Minute: Field{0}, Hour: Field{0}, Day: Field{1}, Month: Field{1}}},
	} {
		got, err := Parse(c.raw)
		if err != nil {
			t.Errorf("%q: %v", c.raw, err)
			continue
		}
		for i, pair := range [][2]Field{{got.Minute, c.want.Minute}, {got.Hour, c.want.Hour}, {got.Day, c.want.Day}, {got.Month, c.want.Month}, {got.Weekday, c.want.Weekday}} {
			if !slices.Equal(pair[0], pair[1]) || (pair[0] == nil) != (pair[1] == nil) {
				t.Errorf("%q: field %d is %v, want %v", c.raw, i, pair[0], pair[1])
			}
		}
	}
}

func TestParseRefusals(t *testing.T) {
	const conflict = "day-of-month and day-of-week cannot both be restricted (cron ORs them; launchd/systemd AND them, so there is no faithful encoding)"
	for _, c := range []struct{ raw, reason, hint string }{
		{"@fortnightly", `unknown macro "@fortnightly"`, "@weekly"},
		{"@daily 5", `unknown macro "@daily 5"`, "@weekly"},
		{"0 0 1 * 1", conflict, `"0 0 1 * *" and "0 0 * * 1"`},
		{"0 0 1-5 * mon-fri", conflict, `"0 0 1-5 * *" and "0 0 * * mon-fri"`},
		{"0 0 */2 * 1", conflict, `"0 0 */2 * *"`},
		{"60 0 1 * 1", conflict, "two tasks"},
		{"", "expected 5 space-separated fields, got 0", "0 9 * * 1-5"},
		{"* * * *", "expected 5 space-separated fields, got 4", "0 9 * * 1-5"},
		{"0 0 9 * * *", "expected 5 space-separated fields, got 6", "no field for seconds"},
		{"60 * * * *", `minute field: token "60" is out of range (0-59)`, ""},
		{"* 24 * * *", `hour field: token "24" is out of range (0-23)`, ""},
		{"* * 0 * *", `day-of-month field: token "0" is out of range (1-31)`, ""},
		{"* * * 13 *", `month field: token "13" is out of range (1-12)`, ""},
		{"* * * * 8", `day-of-week field: token "8" is out of range (0-7)`, ""},
		{"abc * * * *", `minute field: token "abc" is out of range (0-59)`, ""},
		{"mon * * * *", `minute field: token "mon" is out of range (0-59)`, ""},
		{"1,,2 * * * *", `minute field: token "" is out of range (0-59)`, ""},
		{"-5 * * * *", `minute field: token "" is out of range (0-59)`, ""},
		{"99999999999999999999 * * * *", `minute field: token "99999999999999999999" is out of range (0-59)`, ""},
		{"1-2-3 * * * *", `minute field: could not parse token "1-2-3"`, ""},
		{"*/2/3 * * * *", `minute field: could not parse token "*/2/3"`, ""},
		{"5-1 * * * *", `minute field: reversed range "5-1" (start greater than end)`, "write 5-59,0-1"},
		{"* * * * fri-sun", `day-of-week field: reversed range "fri-sun" (start greater than end)`, "write 5-6,0"},
		{"* * * * 6-1", `day-of-week field: reversed range "6-1" (start greater than end)`, "write 6,0-1"},
		{"*/0 * * * *", `minute field: step must be a positive integer, got "0"`, ""},
		{"*/-1 * * * *", `minute field: step must be a positive integer, got "-1"`, ""},
		{"*/ * * * *", `minute field: step must be a positive integer, got ""`, ""},
		{"*/0x10 * * * *", `minute field: step must be a positive integer, got "0x10"`, ""},
		{"*/1e2 * * * *", `minute field: step must be a positive integer, got "1e2"`, ""},
		{"*/+3 * * * *", `minute field: step must be a positive integer, got "+3"`, ""},
		{"*/2.0 * * * *", `minute field: step must be a positive integer, got "2.0"`, ""},
		{"5/15 * * * *", `minute field: a step is only valid with "*" or a range, not "5"`, "write 5-59/15"},
	} {
		_, err := Parse(c.raw)
		var refusal *Error
		if !errors.As(err, &refusal) {
			t.Errorf("%q: got %v, want a refusal", c.raw, err)
			continue
		}
		if want := `Invalid cron expression "` + c.raw + `": ` + c.reason; err.Error() != want {
			t.Errorf("%q:\n got %s\nwant %s", c.raw, err, want)
		}
		if !strings.Contains(refusal.Hint, c.hint) {
			t.Errorf("%q: hint %q lacks %q", c.raw, refusal.Hint, c.hint)
		}
	}
}

// What a refusal suggests must itself be accepted, and mean the same values.
func TestSuggestionsParse(t *testing.T) {
	for raw, suggestion := range map[string]string{
		"22-2 * * * *":    "22-59,0-2 * * * *",
		"* * * * fri-sun": "* * * * 5-6,0",
		"5/15 * * * *":    "5-59/15 * * * *",
	} {
		_, err := Parse(raw)
		var refusal *Error
		if !errors.As(err, &refusal) {
			t.Fatalf("%q: %v", raw, err)
		}
		if word := strings.TrimPrefix(refusal.Hint, "write "); !strings.Contains(suggestion, word) {
			t.Errorf("%q suggests %q, want a part of %q", raw, word, suggestion)
		}
		if _, err := Parse(suggestion); err != nil {
			t.Errorf("suggestion %q: %v", suggestion, err)
		}
	}
}

func TestRefusalStaysOnOneLine(t *testing.T) {
	for _, raw := range []string{"0 9\n* * 99", "@a\nb", "\x1b[31m"} {
		if _, err := Parse(raw); err == nil || strings.ContainsAny(err.Error(), "\n\r\x1b") {
			t.Errorf("%q: %q", raw, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"* * * * *", "*/15 9-17 * jan mon-fri", "@daily", "0 0 1 * 1", "5/15 * * * *", "1-2-3", "\ufeff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		e, err := Parse(raw)
		if err != nil {
			var refusal *Error
			if !errors.As(err, &refusal) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		for i, c := range []struct {
			f        Field
			min, max int
		}{{e.Minute, 0, 59}, {e.Hour, 0, 23}, {e.Day, 1, 31}, {e.Month, 1, 12}, {e.Weekday, 0, 6}} {
			if c.f == nil {
				continue
			}
			if len(c.f) == 0 || len(c.f) > c.max-c.min || !slices.IsSorted(c.f) || len(slices.Compact(slices.Clone(c.f))) != len(c.f) || c.f[0] < c.min || c.f[len(c.f)-1] > c.max {
				t.Fatalf("%q: field %d is %v", raw, i, c.f)
			}
		}
		if e.Day != nil && e.Weekday != nil {
			t.Fatalf("%q: both days are restricted", raw)
		}
	})
}
