package main

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"pi-cradle/internal/testenv"
	"pi-cradle/internal/version"
)

// helperStart is a start of the helper to its first answer, beside a start of cat to its first echo.
func helperStart(t testenv.T, n int) []row {
	bin := testenv.Build(t)
	start := row{what: "helper: start to initialize answered, beside cat to its echo", unit: "ms"}
	for range n {
		start.ours = append(start.ours, firstAnswer(t, bin.Helper, "serve"))
		start.floor = append(start.floor, firstAnswer(t, "cat"))
	}
	return []row{start}
}

func firstAnswer(t testenv.T, path string, args ...string) float64 {
	cmd := exec.Command(path, args...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatalf("%v", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("%v", err)
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v", err)
	}
	if _, err := fmt.Fprintf(stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"version":%q}}`+"\n", version.Version); err != nil {
		t.Fatalf("%v", err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	took := ms(begin, time.Now())
	if err != nil || !strings.Contains(line, version.Version) {
		t.Fatalf("%s answered %q (%v)", path, line, err)
	}
	_ = stdin.Close()
	_, _ = io.Copy(io.Discard, stdout)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return took
}
