// Package view lays out what is known of an agent's schedule, for people. It is pure.
package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"pi-cradle/cradle/schedule/history"
	"pi-cradle/internal/printable"
)

// TimerState says how a task's timer stands to its file.
type TimerState string

const (
	NotInstalled TimerState = "not installed"
	Installed    TimerState = "installed"
	Stale        TimerState = "stale"
	Incomplete   TimerState = "incomplete" // an install began and did not end
	Orphaned     TimerState = "orphaned"   // there is a timer and no usable task
)

// Row is one task. Its JSON form is for scripts.
type Row struct {
	Slug        string          `json:"slug"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Cron        string          `json:"cron"`
	Timezone    string          `json:"timezone,omitempty"`
	Cwd         string          `json:"cwd"`
	OnFailure   []string        `json:"onFailure,omitempty"`
	Timer       TimerState      `json:"timer"`
	Next        *time.Time      `json:"next"`            // nil: not within a year, or Error
	Error       string          `json:"error,omitempty"` // why no timer can be made
	Hints       []string        `json:"hints,omitempty"`
	Running     *time.Time      `json:"running,omitempty"` // since when
	Last        *history.Record `json:"last,omitempty"`
	Missed      *time.Time      `json:"missed,omitempty"`  // a firing that left no record
	Inspect     []string        `json:"inspect,omitempty"` // the command that may tell why
}

var timerText = map[TimerState]string{
	Stale:      "stale — the installed timer predates this file; run `cradle schedule install` to update it",
	Incomplete: "incomplete — an install was cut short; run `cradle schedule install` to finish it",
	Orphaned:   "orphaned — it has no usable task file; run `cradle schedule remove` to remove it",
}

// List is the listing of rows, times in loc, wrapped to width columns; 0 is no limit.
func List(rows []Row, loc *time.Location, width int) string {
	if len(rows) == 0 {
		return "No schedules found.\n"
	}
	texts := make([]string, len(rows))
	for i, r := range rows {
		texts[i] = row(r, loc, width)
	}
	return strings.Join(texts, "\n")
}

func row(r Row, loc *time.Location, width int) string {
	var b strings.Builder
	line := func(key, text string) { hang(&b, fmt.Sprintf("  %-6s ", key+":"), text, width) }
	if r.Timer == Orphaned {
		b.WriteString(r.Slug + "\n")
	} else {
		b.WriteString(r.Slug + " — " + printable.Line(r.Name) + "\n")
		if r.Description != "" {
			line("about", strings.Join(strings.Fields(r.Description), " "))
		}
		line("cron", cronText(r, loc))
		for _, h := range r.Hints {
			line("hint", h)
		}
		line("cwd", r.Cwd)
		if len(r.OnFailure) > 0 {
			line("fail", words(r.OnFailure))
		}
	}
	text := timerText[r.Timer]
	if text == "" {
		text = string(r.Timer)
	}
	line("timer", text)
	switch {
	case r.Running != nil:
		line("last", "running since "+Date(r.Running.In(loc)))
	case r.Last != nil:
		line("last", Date(r.Last.Start.In(loc))+", "+outcome(*r.Last)+because(*r.Last))
	}
	if r.Missed != nil {
		line("missed", Date(r.Missed.In(loc))+" — no run is on record for it; ask `"+words(r.Inspect)+"`")
	}
	return b.String()
}

// hang writes text after head, and what has no room there below it.
func hang(b *strings.Builder, head, text string, width int) {
	for _, line := range printable.Wrap(printable.Line(text), width-len(head)) {
		b.WriteString(head + line + "\n")
		head = strings.Repeat(" ", len(head))
	}
}

// words shows a command line; it is not for a shell.
func words(argv []string) string {
	quoted := make([]string, len(argv))
	for i, word := range argv {
		quoted[i] = word
		if word == "" || strings.ContainsAny(word, " \t\n\"'") {
			quoted[i] = strconv.Quote(word)
		}
	}
	return strings.Join(quoted, " ")
}

func cronText(r Row, loc *time.Location) string {
	text := r.Cron
	if r.Timezone != "" {
		text += "  " + r.Timezone
	}
	if r.Error != "" {
		return text + "  (INVALID: " + r.Error + ")"
	}
	label, next := "next", "never (cannot fire within the next year)"
	if r.Timer == Stale {
		label = "next after install"
	}
	if r.Next != nil {
		next = Date(r.Next.In(loc))
	}
	return text + "  (" + label + ": " + next + ")"
}

// Date is a moment as the listing has always had it.
func Date(t time.Time) string { return t.Format("1/2/2006, 3:04:05 PM") }

// outcome tells in a few words how a run ended.
func outcome(r history.Record) string {
	text := string(r.Outcome)
	if r.Outcome == history.Failed && r.ExitCode != nil {
		text += fmt.Sprintf(" (exit %d)", *r.ExitCode)
	}
	if r.End != nil && r.Outcome != history.Skipped {
		text += " after " + Duration(r.Duration())
	}
	return text
}

func because(r history.Record) string {
	if r.Reason == "" {
		return ""
	}
	return ": " + r.Reason
}

// Duration keeps the two largest units.
func Duration(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// Log is what is known of one task's runs.
type Log struct {
	Slug    string
	Running *time.Time
	Records []history.Record // the latest, oldest first
	Path    string
	Lines   []string // the end of the log
}

// Logs lays out the runs of several tasks, all but the lines of their logs wrapped to width columns; 0 is no limit.
func Logs(logs []Log, loc *time.Location, width int) string {
	if len(logs) == 0 {
		return "No schedules found.\n"
	}
	texts := make([]string, len(logs))
	for i, l := range logs {
		texts[i] = logText(l, loc, width)
	}
	return strings.Join(texts, "\n")
}

func logText(l Log, loc *time.Location, width int) string {
	var b strings.Builder
	b.WriteString(printable.Line(l.Slug) + "\n")
	for _, r := range l.Records {
		text := outcome(r)
		if r.Trigger == history.Manual {
			text += ", by hand"
		} else if r.Planned != nil && r.Start.Sub(*r.Planned) >= time.Minute {
			text += ", planned for " + Date(r.Planned.In(loc))
		}
		hang(&b, "  "+Date(r.Start.In(loc))+"  ", text+because(r), width)
		if r.Session != "" {
			fmt.Fprintf(&b, "    session: %s\n", printable.Line(r.Session))
		}
	}
	switch {
	case l.Running != nil:
		fmt.Fprintf(&b, "  %s  running\n", Date(l.Running.In(loc)))
	case len(l.Records) == 0:
		b.WriteString("  no run yet\n")
	}
	path := l.Path
	if len(l.Lines) == 0 {
		path += " (empty)"
	}
	hang(&b, "  log: ", path, width)
	for _, line := range l.Lines {
		b.WriteString("    " + printable.Line(strings.TrimSuffix(line, "\r")) + "\n")
	}
	return b.String()
}
