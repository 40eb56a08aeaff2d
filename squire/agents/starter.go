package agents

import (
	"embed"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

//go:embed starter/*.md
var starter embed.FS

// WriteStarter writes a first set of agents into dir and lists the files that it wrote. A file that is there already stays as it is.
func WriteStarter(dir string) (written []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	names, err := fs.Glob(starter, "starter/*.md")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := starter.ReadFile(name)
		if err != nil {
			return written, err
		}
		to := filepath.Join(dir, path.Base(name))
		if err := writeNew(to, data); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			return written, err
		}
		written = append(written, to)
	}
	return written, nil
}

func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		return f.Close()
	}
	_ = f.Close()
	_ = os.Remove(path)
	return err
}
