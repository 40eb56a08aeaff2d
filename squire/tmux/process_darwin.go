package tmux

import (
	"errors"

	"golang.org/x/sys/unix"
)

// gone says whether no tmux server runs as process pid any more. A number reused by another program counts as gone; a process
// that can't be looked at does not.
func gone(pid int) bool {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		// The call gives EIO for a process that does not exist.
		return errors.Is(err, unix.EIO) && errors.Is(unix.Kill(pid, 0), unix.ESRCH)
	}
	const zombie = 5 // SZOMB
	return info.Proc.P_stat == zombie || !isTmux(unix.ByteSliceToString(info.Proc.P_comm[:]))
}
