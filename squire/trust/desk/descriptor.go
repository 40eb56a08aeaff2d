package desk

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"pi-cradle/internal/durable"
)

const descriptorVersion = 1

// descriptor tells the delegates below a root how to reach it. Its token is a secret of the user's.
type descriptor struct {
	Version int    `json:"version"`
	Port    int    `json:"port"`
	Token   string `json:"token"` // tokenSize bytes in hexadecimal, new for every server
}

// Dir is the folder of the descriptors of one agent directory.
func Dir(agentDir string) string { return filepath.Join(agentDir, "squire", "trust") }

func descriptorPath(dir, root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(dir, hex.EncodeToString(sum[:])+".json")
}

func (d descriptor) write(path string) error {
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	if err := privateFolder(filepath.Dir(path)); err != nil {
		return err
	}
	return durable.WriteJSON(path, d)
}

// readDescriptor reads a descriptor and its token. One that anybody else could have written or read is refused.
func readDescriptor(path string) (descriptor, []byte, error) {
	var d descriptor
	if err := privateFolder(filepath.Dir(path)); err != nil {
		return d, nil, err
	}
	// Not blocking, for the case that somebody put a pipe there.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return d, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return d, nil, err
	}
	if !info.Mode().IsRegular() {
		return d, nil, fmt.Errorf("%q is no ordinary file", path)
	}
	if err := private(path, info, 0o077); err != nil {
		return d, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFrame))
	if err != nil {
		return d, nil, err
	}
	d, token, err := parseDescriptor(data)
	if err != nil {
		err = fmt.Errorf("%q can't be read: %w", path, err)
	}
	return d, token, err
}

func parseDescriptor(data []byte) (descriptor, []byte, error) {
	var d descriptor
	if err := json.Unmarshal(data, &d); err != nil {
		return d, nil, err
	}
	token, err := hex.DecodeString(d.Token)
	switch {
	case err != nil:
		return d, nil, errors.New("its token is malformed")
	case d.Version != descriptorVersion:
		return d, nil, fmt.Errorf("its version is %d, not %d", d.Version, descriptorVersion)
	case d.Port < 1 || d.Port > 65535 || len(token) != tokenSize:
		return d, nil, errors.New("its port or token is out of range")
	}
	return d, token, nil
}

// privateFolder refuses a folder in which others could put a descriptor.
func privateFolder(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%q is no folder", dir)
	}
	return private(dir, info, 0o022)
}

// private refuses what belongs to somebody else or has any of the forbidden permissions.
func private(path string, info fs.FileInfo, forbidden fs.FileMode) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%q belongs to another user", path)
	}
	if open := info.Mode().Perm() & forbidden; open != 0 {
		return fmt.Errorf("%q is open to other users (mode %#o)", path, info.Mode().Perm())
	}
	return nil
}
