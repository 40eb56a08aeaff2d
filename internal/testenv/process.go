package testenv

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// process is a living process: a zombie is none. Where nothing reaps orphans, zombies stay.
type process struct {
	pid, parent int
	command     string
}

// processes lists the living processes, from /proc where there is one, else from ps.
func processes() []process {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return psProcesses()
	}
	var all []process
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		// pid (name) state ppid …: the name may hold blanks and parentheses.
		i := bytes.LastIndexByte(stat, ')')
		f := strings.Fields(string(stat[i+1:]))
		if len(f) < 2 || f[0] == "Z" || f[0] == "X" {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(f[1])
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		all = append(all, process{pid, parent, strings.TrimSpace(string(bytes.ReplaceAll(command, []byte{0}, []byte{' '})))})
	}
	return all
}

func psProcesses() []process {
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=,command=").Output()
	if err != nil {
		return nil
	}
	var all []process
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 4 || strings.HasPrefix(f[2], "Z") {
			continue
		}
		pid, _ := strconv.Atoi(f[0])
		parent, _ := strconv.Atoi(f[1])
		all = append(all, process{pid, parent, strings.Join(f[3:], " ")})
	}
	return all
}

// descendants lists the processes below pid.
func descendants(pid int) []process {
	children := map[int][]process{}
	for _, p := range processes() {
		children[p.parent] = append(children[p.parent], p)
	}
	var all []process
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		all = append(all, children[queue[0]]...)
		for _, p := range children[queue[0]] {
			queue = append(queue, p.pid)
		}
	}
	return all
}

// Below lists the process ids below pid whose command line holds text.
func Below(pid int, text string) []int {
	var found []int
	for _, p := range descendants(pid) {
		if strings.Contains(p.command, text) {
			found = append(found, p.pid)
		}
	}
	return found
}

// Child returns the one child of pid, such as the pi that a launcher has started, when it is there.
func Child(t T, pid int) int {
	t.Helper()
	var found []process
	Await(t, fmt.Sprintf("the child of process %d", pid), func() bool {
		found = slices.DeleteFunc(processes(), func(p process) bool { return p.parent != pid })
		return len(found) > 0
	})
	if len(found) > 1 {
		t.Fatalf("process %d has several children: %v", pid, found)
	}
	return found[0].pid
}

// Kill sends SIGKILL to a process and waits until it is gone.
func Kill(t T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %d: %v", pid, err)
	}
	Await(t, fmt.Sprintf("the end of process %d", pid), func() bool { return !Running(pid) })
}

// Running reports whether pid is a living process.
func Running(pid int) bool {
	for _, p := range processes() {
		if p.pid == pid {
			return true
		}
	}
	return false
}
