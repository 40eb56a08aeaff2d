package task

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pi-cradle/internal/localesort"
)

// maxFile is far beyond any prompt: a larger file is a mistake.
const maxFile = 1 << 20

// NoDirError says that an agent folder has no schedule/ directory.
type NoDirError struct {
	Folder string
	Plural bool // there is a schedules/ instead
}

func (e *NoDirError) Error() string {
	text := "No schedule/ directory in " + e.Folder
	if e.Plural {
		text += " — found schedules/, rename it to schedule/ (singular)"
	}
	return text
}

// Load reads every task of the agent folder, an absolute path, sorted by slug as people sort names. Without a schedule/
// directory it returns a *NoDirError.
func Load(folder, home string) ([]Task, []string, error) {
	dir := filepath.Join(folder, "schedule")
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		_, plural := os.Lstat(filepath.Join(folder, "schedules"))
		return nil, nil, &NoDirError{Folder: folder, Plural: plural == nil}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	var (
		tasks    []Task
		warnings []string
	)
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		content, why := read(path, entry)
		if why != "" {
			warnings = append(warnings, path+": "+why+" — ignored")
			continue
		}
		t, more, ok := Parse(path, content, home)
		warnings = append(warnings, more...)
		if ok {
			tasks = append(tasks, t)
		}
	}
	localesort.Func(tasks, func(t Task) string { return t.Slug })
	return tasks, warnings, nil
}

// read returns the content of an entry, or why it is none of a task.
func read(path string, entry fs.DirEntry) ([]byte, string) {
	kind := entry.Type()
	slug, isMarkdown := strings.CutSuffix(entry.Name(), ".md")
	switch {
	case kind.IsDir():
		return nil, "subdirectories are not supported in schedule/"
	case !kind.IsRegular() && kind&fs.ModeSymlink == 0:
		return nil, "only files are read from schedule/"
	case !isMarkdown || slug == "": // ".md" is a hidden file without an extension
		return nil, "only .md files are read from schedule/"
	case !ValidSlug(slug):
		return nil, "filename must match ^[A-Za-z0-9][A-Za-z0-9._-]*$ — a schedule slug becomes a launchd label and a systemd unit name"
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() { // a link to a pipe would hang the read
		return nil, "could not be read — broken symlink?"
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, "could not be read: " + reason(err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, "could not be read: " + reason(err)
	}
	if len(content) > maxFile {
		return nil, fmt.Sprintf("is larger than %d KiB", maxFile>>10)
	}
	return content, ""
}

// reason is the system's own words, without the path that the warning names itself.
func reason(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}
