package tmux

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// gone says whether no tmux server runs as process pid any more. A number reused by another program counts as gone; a process
// that can't be looked at does not.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) {
		_, proc := os.Stat("/proc/self/stat")
		return proc == nil
	}
	// "<pid> (<name>) <state> …"; the name may hold anything, so the last parenthesis ends it.
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if err != nil || open < 0 || end < open || end+2 >= len(stat) {
		return false
	}
	name, state := stat[open+1:end], stat[end+2]
	return state == 'Z' || state == 'X' || !isTmux(string(name))
}
