package jsjson

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// MaxFile is the largest file that ReadFile takes, in bytes.
const MaxFile = 8 << 20

// FileError says that a JSON file is there and can't be used. Its text names the file.
type FileError struct {
	Path   string
	Reason string // what follows the path in the text
	cause  error
}

func (e *FileError) Error() string { return e.Path + " " + e.Reason }

// Unwrap gives the *SyntaxError or the system's error, if there is one.
func (e *FileError) Unwrap() error { return e.cause }

// ReadFile decodes the file at path. When nothing has that name the error is fs.ErrNotExist; a dangling link, a folder,
// a device, an unreadable or too large file and bad JSON are each a *FileError, and none of them is fs.ErrNotExist.
func ReadFile(path string) (any, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	data, err := readRegular(path)
	if err != nil {
		return nil, err
	}
	v, err := Decode(data)
	if err != nil {
		return nil, &FileError{path, fmt.Sprintf("is not valid JSON: %v", err), err}
	}
	return v, nil
}

func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path) // before opening: opening a pipe would wait for its writer
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &FileError{path, "could not be read — broken symlink?", nil}
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	if info.IsDir() {
		return nil, &FileError{path, "could not be read: is a directory", nil}
	}
	if !info.Mode().IsRegular() {
		return nil, &FileError{path, "could not be read: not a regular file", nil}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	if len(data) > MaxFile {
		return nil, &FileError{path, fmt.Sprintf("could not be read: larger than %d MiB", MaxFile>>20), nil}
	}
	return data, nil
}

// unreadable keeps the system's reason without its path, which the text has already.
func unreadable(path string, err error) error {
	reason := err
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		reason = pathErr.Err
	}
	return &FileError{path, fmt.Sprintf("could not be read: %v", reason), err}
}
