package main

import (
	"fmt"
	"path/filepath"
	"time"

	"pi-cradle/internal/testenv"
)

// startup is pi's start to its first model request, with and without our extension, and with a mail root full of old mailboxes.
func startup(t testenv.T, n int) []row {
	bare := testenv.New(t, testenv.Options{Bare: true})
	ours := testenv.New(t, testenv.Options{})
	full := testenv.New(t, testenv.Options{})
	ours.Scout()
	full.Scout()
	oldMailboxes(full, 2000)
	plain := row{what: "pi -p: exec to first request, beside bare pi", unit: "ms"}
	crowded := row{what: "the same with 2000 old mailboxes, beside none", unit: "ms"}
	for i := range n + 1 {
		floor, with, with2000 := request(bare, i), request(ours, i), request(full, i)
		if i == 0 {
			continue // fills the caches of compiled code
		}
		plain.floor = append(plain.floor, floor)
		plain.ours = append(plain.ours, with)
		crowded.floor = append(crowded.floor, with)
		crowded.ours = append(crowded.ours, with2000)
	}
	return []row{plain, crowded}
}

func request(e *testenv.Env, i int) float64 {
	text := fmt.Sprintf("start %d", i)
	begin := time.Now()
	e.Print(text)
	return ms(begin, e.Model.Await(e.T, text, said(text)).At)
}

func said(text string) func(testenv.Request) bool {
	return func(r testenv.Request) bool { return r.Last().Role == "user" && r.Said("user", text) }
}

func oldMailboxes(e *testenv.Env, n int) {
	for i := range n {
		box := filepath.Join(e.MailRoot, fmt.Sprintf("old-%04d", i))
		for _, dir := range []string{"tmp", "new", "sent"} {
			e.Dir(mustRel(e, filepath.Join(box, dir)))
		}
		e.Write(filepath.Join(box, "cur", fmt.Sprintf("%015d-x.json", i)), "{}\n")
	}
}

func mustRel(e *testenv.Env, path string) string {
	rel, err := filepath.Rel(e.Root, path)
	if err != nil {
		e.T.Fatalf("%v", err)
	}
	return rel
}
