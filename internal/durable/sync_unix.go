//go:build unix

package durable

import (
	"errors"
	"syscall"
)

// unsupported tells "this file system has no fsync here" from a real write error.
func unsupported(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS)
}
