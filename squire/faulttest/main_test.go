package faulttest

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pi-cradle/helper/serve"
	"pi-cradle/internal/durable"
)

// The test binary plays the helper, the launcher, and the program in the delegate's pane.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "serve", "exec":
			arm()
			os.Exit(serve.Main(os.Args[1:]))
		case "pane":
			os.Exit(pane(os.Args[2:]))
		}
	}
	// Most of a test here is waiting for other processes, so many can wait at once.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

const (
	logVar = "FAULTTEST_LOG" // a file that gets the name of every step
	dieVar = "FAULTTEST_DIE" // the name of the step at which to die, once
	oneVar = "FAULTTEST_ONE" // a file that says that the one death has been died
)

var (
	uuids  = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	stamps = regexp.MustCompile(`[0-9][0-9TZ-]{8,}`)
)

// arm sets what the environment says. Steps have names that are the same in every run: the step, the kind of file, and how many
// of the kind there were before.
func arm() {
	log, die, one := os.Getenv(logVar), os.Getenv(dieVar), os.Getenv(oneVar)
	if log == "" && die == "" {
		return
	}
	var mu sync.Mutex
	seen := map[string]int{}
	durable.SetFault(func(step, path string) error {
		kind := filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
		kind = stamps.ReplaceAllString(uuids.ReplaceAllString(kind, "ID"), "N")
		mu.Lock()
		defer mu.Unlock()
		seen[step+kind]++
		name := fmt.Sprintf("%s %s %d", step, kind, seen[step+kind])
		if log != "" {
			file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			defer file.Close()
			_, err = fmt.Fprintln(file, name)
			return err
		}
		if name != die {
			return nil
		}
		file, err := os.OpenFile(one, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil // died before
		}
		_ = file.Close()
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	})
}

// arrival is a delegate's pi that has started in its pane.
type arrival struct {
	ID   string `json:"id"`
	File string `json:"file"`
	Cwd  string `json:"cwd"`
	conn net.Conn
}

// pane is the delegate's pi as far as its terminal is concerned: it says hello on the socket and ends with the code that it is told
// there. The rest of that pi is played by the test.
func pane(args []string) int {
	i := slices.Index(args, "--session")
	if i < 0 || i+1 == len(args) {
		return 64
	}
	file := args[i+1]
	header, err := os.ReadFile(file)
	if err != nil {
		return 65
	}
	hello := arrival{File: file}
	if err := json.Unmarshal([]byte(strings.SplitN(string(header), "\n", 2)[0]), &hello); err != nil {
		return 66
	}
	conn, err := net.Dial("unix", args[0])
	if err != nil {
		return 67
	}
	if err := json.NewEncoder(conn).Encode(hello); err != nil {
		return 68
	}
	code, err := bufio.NewReader(conn).ReadByte()
	if err != nil {
		return 0 // the test is over
	}
	return int(code)
}
