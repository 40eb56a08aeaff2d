package view

import (
	"testing"
	"time"

	"pi-cradle/cradle/schedule/history"
)

func at(text string) *time.Time {
	t, err := time.Parse(time.DateTime, text)
	if err != nil {
		panic(err)
	}
	return &t
}

func TestList(t *testing.T) {
	code := 2
	rows := []Row{
		{Slug: "nightly", Name: "Nightly report", Cron: "0 9 * * *", Cwd: "/work", OnFailure: []string{"notify", "it failed"}, Timer: Installed, Next: at("2026-08-03 09:00:00")},
		{Slug: "old", Name: "old", Description: "What it\ndoes", Cron: "0 21 * * *", Timezone: "Europe/Berlin", Cwd: "/w", Timer: Stale, Next: at("2026-12-31 21:05:09"),
			Last: &history.Record{Start: *at("2026-01-02 00:00:00"), End: at("2026-01-02 00:00:41"), Outcome: history.Failed, ExitCode: &code}},
		{Slug: "half", Name: "half", Cron: "@daily", Cwd: "/w", Timer: Incomplete, Running: at("2026-01-02 12:30:00")},
		{Slug: "bad", Name: "bad", Cron: "x", Cwd: "/w", Timer: NotInstalled, Error: "no good", Hints: []string{"write y"},
			Last: &history.Record{Start: *at("2026-01-02 00:00:00"), Outcome: history.Skipped, Reason: "busy"}},
		{Slug: "lost", Name: "lost", Cron: "@daily", Cwd: "/w", Timer: Installed, Next: at("2026-01-03 00:00:00"), Missed: at("2026-01-02 00:00:00"), Inspect: []string{"ask", "it"}},
		{Slug: "never", Name: "\x1b[31mred", Cron: "0 0 30 2 *", Cwd: "/w", Timer: NotInstalled},
		{Slug: "gone", Timer: Orphaned, Last: &history.Record{Start: *at("2026-01-02 00:00:00"), Outcome: history.Interrupted, Reason: "killed"}},
	}
	const want = `nightly — Nightly report
  cron:  0 9 * * *  (next: 8/3/2026, 9:00:00 AM)
  cwd:   /work
  fail:  notify "it failed"
  timer: installed

old — old
  about: What it does
  cron:  0 21 * * *  Europe/Berlin  (next after install: 12/31/2026, 9:05:09 PM)
  cwd:   /w
  timer: stale — the installed timer predates this file; run ` + "`cradle schedule install`" + ` to update it
  last:  1/2/2026, 12:00:00 AM, failed (exit 2) after 41s

half — half
  cron:  @daily  (next: never (cannot fire within the next year))
  cwd:   /w
  timer: incomplete — an install was cut short; run ` + "`cradle schedule install`" + ` to finish it
  last:  running since 1/2/2026, 12:30:00 PM

bad — bad
  cron:  x  (INVALID: no good)
  hint:  write y
  cwd:   /w
  timer: not installed
  last:  1/2/2026, 12:00:00 AM, skipped: busy

lost — lost
  cron:  @daily  (next: 1/3/2026, 12:00:00 AM)
  cwd:   /w
  timer: installed
  missed: 1/2/2026, 12:00:00 AM — no run is on record for it; ask ` + "`ask it`" + `

never — \x1b[31mred
  cron:  0 0 30 2 *  (next: never (cannot fire within the next year))
  cwd:   /w
  timer: not installed

gone
  timer: orphaned — it has no usable task file; run ` + "`cradle schedule remove`" + ` to remove it
  last:  1/2/2026, 12:00:00 AM, interrupted: killed
`
	if got := List(rows, time.UTC, 0); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := List(nil, time.UTC, 0); got != "No schedules found.\n" {
		t.Errorf("empty: %q", got)
	}
}

func TestLogs(t *testing.T) {
	code := 0
	logs := []Log{
		{Slug: "a", Path: "/s/a.log", Lines: []string{"one", "two\x1b[2J\r"}, Running: at("2026-01-03 09:00:00"), Records: []history.Record{
			{Trigger: history.Timer, Planned: at("2026-01-01 09:00:00"), Start: *at("2026-01-02 08:00:00"), End: at("2026-01-02 09:30:00"), Outcome: history.OK, ExitCode: &code, Session: "/s/1.jsonl"},
			{Trigger: history.Manual, Start: *at("2026-01-02 10:00:00"), End: at("2026-01-02 10:00:01"), Outcome: history.OK, ExitCode: &code},
			{Trigger: history.Manual, Start: *at("2026-01-02 11:00:00"), End: at("2026-01-02 11:00:00"), Outcome: history.Failed, Reason: "no pi"},
		}},
		{Slug: "b", Path: "/s/b.log"},
	}
	const want = `a
  1/2/2026, 8:00:00 AM  ok after 1h30m, planned for 1/1/2026, 9:00:00 AM
    session: /s/1.jsonl
  1/2/2026, 10:00:00 AM  ok after 1s, by hand
  1/2/2026, 11:00:00 AM  failed after 0s, by hand: no pi
  1/3/2026, 9:00:00 AM  running
  log: /s/a.log
    one
    two\x1b[2J

b
  no run yet
  log: /s/b.log (empty)
`
	if got := Logs(logs, time.UTC, 0); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1234 * time.Millisecond: "1.2s", 41400 * time.Millisecond: "41s", 90 * time.Second: "1m30s", 3*time.Hour + 29*time.Second: "3h0m", 26 * time.Hour: "26h0m",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestNarrow(t *testing.T) {
	failed := history.Record{Trigger: history.Manual, Start: *at("2026-01-02 11:00:00"), Outcome: history.Failed, Reason: "there is no directory to run in"}
	const list = `bad — bad
  cron:  x  (INVALID: no good at
         all)
  cwd:   /a/path/that/is/longer/than/that
  timer: not installed
  last:  1/2/2026, 11:00:00 AM,
         failed: there is no
         directory to run in
`
	if got := List([]Row{{Slug: "bad", Name: "bad", Cron: "x", Cwd: "/a/path/that/is/longer/than/that", Timer: NotInstalled, Error: "no good at all", Last: &failed}}, time.UTC, 32); got != list {
		t.Errorf("got\n%s", got)
	}
	const log = `bad
  1/2/2026, 11:00:00 AM  failed, by hand: there
                         is no directory to run
                         in
  log: /s/bad.log
    a line that stays as long as it is, whatever the width
`
	if got := Logs([]Log{{Slug: "bad", Path: "/s/bad.log", Records: []history.Record{failed}, Lines: []string{"a line that stays as long as it is, whatever the width"}}}, time.UTC, 48); got != log {
		t.Errorf("got\n%s", got)
	}
}
