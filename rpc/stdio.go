package rpc

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Stdio is this process's stdin and stdout as a stream for NewConn. Call it once, early: from then on os.Stdout is stderr, so that
// nothing but frames can reach the peer, and writing to a peer that is gone is an error and no longer the death of the process.
func Stdio() io.ReadWriteCloser {
	// Asked for and never read: ignoring the signal instead would be inherited by every child.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	out := os.Stdout
	os.Stdout = os.Stderr
	return &stdio{Reader: os.Stdin, Writer: out}
}

type stdio struct {
	io.Reader
	io.Writer
}

func (s *stdio) Close() error {
	return errors.Join(s.Reader.(*os.File).Close(), s.Writer.(*os.File).Close())
}
