package history

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func record(task string, n int) Record {
	start := time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC)
	end, code := start.Add(time.Second), n
	return Record{Task: task, Trigger: Timer, Planned: &start, Start: start, End: &end, Outcome: Failed, ExitCode: &code, Session: "/s/é.jsonl", Reason: "größer"}
}

func read(t *testing.T, d Dir, task string) []Record {
	t.Helper()
	records, err := d.Read(task)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func appendRecord(t *testing.T, d Dir, r Record) {
	t.Helper()
	if err := d.Append(r); err != nil {
		t.Fatal(err)
	}
}

func TestAppendAndRead(t *testing.T) {
	d := Dir{filepath.Join(t.TempDir(), "agents", "a")}
	if got := read(t, d, "x"); got != nil {
		t.Fatalf("before anything: %v", got)
	}
	for n := range 3 {
		appendRecord(t, d, record("x", n))
	}
	appendRecord(t, d, record("y", 9))
	got := read(t, d, "x")
	if len(got) != 3 || *got[2].ExitCode != 2 || got[0].Duration() != time.Second || got[1].Reason != "größer" {
		t.Fatalf("read %+v", got)
	}
	tasks, err := d.Tasks()
	if err != nil || fmt.Sprint(tasks) != "[x y]" {
		t.Fatalf("tasks %v, %v", tasks, err)
	}
}

// A crash may cut the last line at any byte, inside a character too, or leave zeros behind.
func TestTornLastLine(t *testing.T) {
	d := Dir{t.TempDir()}
	appendRecord(t, d, record("x", 0))
	appendRecord(t, d, record("x", 1))
	whole, err := os.ReadFile(filepath.Join(d.State, historyName("x")))
	if err != nil {
		t.Fatal(err)
	}
	first := bytes.IndexByte(whole, '\n') + 1
	for cut := first; cut <= len(whole); cut++ {
		for _, padding := range []string{"", "\x00\x00\x00"} {
			if err := os.WriteFile(filepath.Join(d.State, historyName("x")), append(whole[:cut:cut], padding...), 0o600); err != nil {
				t.Fatal(err)
			}
			appendRecord(t, d, record("x", 2))
			got := read(t, d, "x")
			last := len(got) - 1
			if last < 1 || *got[0].ExitCode != 0 || *got[last].ExitCode != 2 || cut == len(whole) && len(got) != 3 {
				t.Fatalf("cut at %d of %d, padding %q: %d records", cut, len(whole), padding, len(got))
			}
		}
	}
}

func TestConcurrentAppends(t *testing.T) {
	d := Dir{t.TempDir()}
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() {
			if err := d.Append(record("x", n)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := read(t, d, "x"); len(got) != 50 {
		t.Fatalf("%d records", len(got))
	}
}

// A run writes into the folder as well, and must not lead us out of it.
func TestLinksLeadNowhere(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(outside, []byte("precious\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := Dir{t.TempDir()}
	if err := d.Make(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(d.State, historyName("x")), d.LogPath("x")} {
		if err := os.Symlink(outside, path); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Append(record("x", 1)); err == nil {
		t.Error("appended through a link")
	}
	if lines, err := d.LogTail("x", 5); err == nil && len(lines) > 0 {
		t.Errorf("read through a link: %q", lines)
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "precious\n" {
		t.Errorf("the file outside holds %q, %v", data, err)
	}
}

func TestRotateLog(t *testing.T) {
	d := Dir{t.TempDir()}
	if err := d.Rotate("x"); err != nil {
		t.Fatalf("with nothing there: %v", err)
	}
	if err := d.Make(); err != nil {
		t.Fatal(err)
	}
	// As a service manager has it: opened once, for appending.
	log, err := os.OpenFile(d.LogPath("x"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	line := strings.Repeat("x", 99) + "\n"
	for round := range 5 {
		fmt.Fprintf(log, "round %d\n", round)
		if _, err := log.WriteString(strings.Repeat(line, maxLog/len(line)+1)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(log, "end of %d\n", round)
		if err := d.Rotate("x"); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintln(log, "after")
	if lines, err := d.LogTail("x", 20); err != nil || fmt.Sprint(lines) != "[after]" {
		t.Errorf("the log goes on with %q, %v", lines, err)
	}
	total := int64(0)
	for n, want := range map[string]string{".1": "end of 4\n", ".2": "end of 3\n"} {
		data, err := os.ReadFile(d.LogPath("x") + n)
		if err != nil || !bytes.HasSuffix(data, []byte(want)) || !bytes.HasPrefix(data, []byte("x")) {
			t.Errorf("%s ends otherwise than with %q: %v", n, want, err)
		}
		total += int64(len(data))
	}
	entries, err := os.ReadDir(filepath.Join(d.State, folder))
	if err != nil || len(entries) != 3 || total > 2*maxLog {
		t.Errorf("%d files, %d bytes, %v", len(entries), total, err)
	}
}

func TestRotateHistory(t *testing.T) {
	d := Dir{t.TempDir()}
	r := record("x", 1)
	r.Reason = strings.Repeat("r", 10_000)
	for range 3 * maxHistory / 10_000 {
		if err := d.Rotate("x"); err != nil {
			t.Fatal(err)
		}
		appendRecord(t, d, r)
	}
	got := read(t, d, "x")
	if len(got) < maxHistory/11_000 || len(got) > 3*maxHistory/10_000 {
		t.Errorf("%d records are left", len(got))
	}
	entries, err := os.ReadDir(filepath.Join(d.State, folder))
	if err != nil || len(entries) != 2 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":1,"task":"x","start":"2026-01-01T00:00:00Z","outcome":"ok"}` + "\n{\"task\":\n\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, r := range parse(data, "x") {
			if r.Task != "x" || r.Start.IsZero() || r.Outcome == "" {
				t.Fatalf("%+v", r)
			}
		}
	})
}
