package worktree

import (
	"strconv"
	"strings"
)

// parseLsof reads `lsof -d cwd -F 0pcn`: fields that end in NUL, each led by its letter, in sets that end in a line break. A p
// begins a process, c is its name, n a path.
func parseLsof(out []byte, dir string) []Process {
	var found []Process
	var p Process
	for _, field := range strings.Split(string(out), "\x00") {
		field = strings.TrimPrefix(field, "\n")
		if field == "" {
			continue
		}
		switch value := field[1:]; field[0] {
		case 'p':
			pid, err := strconv.Atoi(value)
			if err != nil {
				pid = 0
			}
			p = Process{PID: pid}
		case 'c':
			p.Name = value
		case 'n':
			if p.PID > 0 && within(value, dir) {
				found = append(found, p)
			}
		}
	}
	return found
}
