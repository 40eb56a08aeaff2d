package gitws

import (
	"path/filepath"
	"regexp"
	"strings"
)

var outsideName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// Project is the name under which the delegates of a session in w share a tmux session: that of the main checkout's folder, or of
// the directory itself outside of git. notice is set when git could not tell, and says why; the name is then the directory's.
func (w Workspace) Project() (name, notice string) {
	switch {
	case w.Git.Kind == Checkout && w.Git.State != nil:
		return ProjectName(w.Git.Identity.MainRoot), ""
	case w.Git.Kind == NonGit:
		return ProjectName(w.Cwd), ""
	}
	return ProjectName(w.Cwd), "the project is named after the working directory, for its Git checkout is not known: " + w.Git.Reason
}

// ProjectName makes a name for tmux of a project's folder: runs of anything but ASCII letters, digits, - and _ become one
// hyphen, hyphens at the edges go, and "project" stands for nothing at all.
func ProjectName(folder string) string {
	name := strings.Trim(outsideName.ReplaceAllString(filepath.Base(folder), "-"), "-")
	if name == "" {
		return "project"
	}
	return name
}
