// Package cron understands five-field cron expressions and says when they fire. It is pure: it reads no clock.
package cron

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"pi-cradle/internal/printable"
)

// Expr is a parsed expression. A nil Field is unrestricted; any other holds its values ascending and without repeats.
type Expr struct {
	Minute, Hour, Day, Month, Weekday Field // Weekday: 0 is Sunday, 7 never occurs
}

// Field is the set of values at which one field of an expression matches; nil matches all.
type Field []int

// Has tells whether the field matches v.
func (f Field) Has(v int) bool {
	if f == nil {
		return true
	}
	_, ok := slices.BinarySearch(f, v)
	return ok
}

// Error is a refused expression. Its text is what the user sees; Hint, when not empty, is what to write instead.
type Error struct {
	Raw    string
	Reason string
	Hint   string
}

func (e *Error) Error() string {
	return fmt.Sprintf(`Invalid cron expression "%s": %s`, printable.Line(e.Raw), e.Reason)
}

// field describes one of the five. Written values run from min to max; one above top is a second spelling of min.
type field struct {
	name          string
	min, max, top int
	names         []string // names[i] stands for min+i
}

var (
	minuteField  = field{name: "minute", max: 59, top: 59}
	hourField    = field{name: "hour", max: 23, top: 23}
	dayField     = field{name: "day-of-month", min: 1, max: 31, top: 31}
	monthField   = field{name: "month", min: 1, max: 12, top: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}}
	weekdayField = field{name: "day-of-week", max: 7, top: 6, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}}
)

var macros = map[string]string{
	"@hourly":   "0 * * * *",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@weekly":   "0 0 * * 0",
	"@monthly":  "0 0 1 * *",
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
}

// Parse reads an expression or a macro. A refusal is an *Error.
func Parse(raw string) (Expr, error) {
	e, reason := parse(raw)
	if reason != nil {
		return Expr{}, &Error{Raw: raw, Reason: reason.text, Hint: reason.hint}
	}
	return e, nil
}

type reason struct{ text, hint string }

func refuse(hint, format string, args ...any) *reason {
	return &reason{fmt.Sprintf(format, args...), hint}
}

func parse(raw string) (Expr, *reason) {
	words := strings.FieldsFunc(raw, isSpace)
	if len(words) > 0 && strings.HasPrefix(words[0], "@") {
		macro := strings.TrimFunc(raw, isSpace)
		expansion, ok := macros[strings.ToLower(macro)]
		if !ok {
			return Expr{}, refuse("use @hourly, @daily, @weekly, @monthly or @yearly, or five fields", `unknown macro "%s"`, printable.Line(macro))
		}
		words = strings.Fields(expansion)
	}
	if len(words) != 5 {
		hint := "write minute, hour, day-of-month, month and day-of-week, such as 0 9 * * 1-5"
		if len(words) == 6 {
			hint = "there is no field for seconds; " + hint
		}
		return Expr{}, refuse(hint, "expected 5 space-separated fields, got %d", len(words))
	}
	var e Expr
	// The two day fields come first: a conflict between them is reported even when another field is wrong as well.
	for _, step := range []struct {
		field field
		word  string
		to    *Field
	}{
		{dayField, words[2], &e.Day}, {weekdayField, words[4], &e.Weekday},
		{minuteField, words[0], &e.Minute}, {hourField, words[1], &e.Hour}, {monthField, words[3], &e.Month},
	} {
		values, why := step.field.parse(step.word)
		if why != nil {
			return Expr{}, why
		}
		*step.to = values
		if e.Day != nil && e.Weekday != nil {
			return Expr{}, conflict(words)
		}
	}
	return e, nil
}

func conflict(words []string) *reason {
	byDay := strings.Join([]string{words[0], words[1], words[2], words[3], "*"}, " ")
	byWeekday := strings.Join([]string{words[0], words[1], "*", words[3], words[4]}, " ")
	return refuse(fmt.Sprintf("for either of them write two tasks, %q and %q; for both at once write one of these and let the prompt check the date", byDay, byWeekday),
		"day-of-month and day-of-week cannot both be restricted (cron ORs them; launchd/systemd AND them, so there is no faithful encoding)")
}

// parse gives the sorted values of one field, nil when they cover its whole range.
func (f field) parse(word string) (Field, *reason) {
	var set [60]bool
	for term := range strings.SplitSeq(word, ",") {
		first, last, step, why := f.term(term)
		if why != nil {
			return nil, why
		}
		for v := first; v <= last; v += step {
			set[f.fold(v)] = true
		}
	}
	var values Field
	for v := f.min; v <= f.top; v++ {
		if set[v] {
			values = append(values, v)
		}
	}
	if len(values) == f.top-f.min+1 {
		return nil, nil
	}
	return values, nil
}

func (f field) fold(v int) int {
	if v > f.top {
		return f.min
	}
	return v
}

func (f field) term(term string) (first, last, step int, why *reason) {
	body, stepText, hasStep := strings.Cut(term, "/")
	if strings.Contains(stepText, "/") || strings.Count(body, "-") > 1 {
		return 0, 0, 0, refuse("", `%s field: could not parse token "%s"`, f.name, printable.Line(term))
	}
	step = 1
	if hasStep {
		if step, why = f.step(stepText); why != nil {
			return 0, 0, 0, why
		}
	}
	if body == "*" {
		return f.min, f.max, step, nil
	}
	from, to, isRange := strings.Cut(body, "-")
	if first, why = f.value(from); why != nil {
		return 0, 0, 0, why
	}
	if !isRange {
		if hasStep {
			return 0, 0, 0, refuse(fmt.Sprintf("write %s-%d/%s", body, f.top, stepText), `%s field: a step is only valid with "*" or a range, not "%s"`, f.name, printable.Line(body))
		}
		return first, first, 1, nil
	}
	if last, why = f.value(to); why != nil {
		return 0, 0, 0, why
	}
	if first > last {
		return 0, 0, 0, refuse(fmt.Sprintf("write %s,%s", span(first, f.top), span(f.min, last)), `%s field: reversed range "%s" (start greater than end)`, f.name, printable.Line(body))
	}
	return first, last, step, nil
}

func span(first, last int) string {
	if first == last {
		return strconv.Itoa(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

func (f field) step(text string) (int, *reason) {
	n, ok := digits(text)
	if !ok || n < 1 {
		return 0, refuse("", `%s field: step must be a positive integer, got "%s"`, f.name, printable.Line(text))
	}
	return n, nil
}

func (f field) value(token string) (int, *reason) {
	if i := slices.Index(f.names, strings.ToLower(token)); i >= 0 {
		return f.min + i, nil
	}
	n, ok := digits(token)
	if !ok || n < f.min || n > f.max {
		return 0, refuse("", `%s field: token "%s" is out of range (%d-%d)`, f.name, printable.Line(token), f.min, f.max)
	}
	return n, nil
}

// digits reads a number made of ASCII digits only. A number too large for any field is cut to one that is still too large.
func digits(text string) (int, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > 1<<20 {
		n = 1 << 20
	}
	return n, true
}

// isSpace is the white space that separates fields in the timers this has to agree with: JavaScript's, which counts the byte
// order mark and not the next-line character.
func isSpace(r rune) bool { return r == '\ufeff' || r != '\u0085' && unicode.IsSpace(r) }
