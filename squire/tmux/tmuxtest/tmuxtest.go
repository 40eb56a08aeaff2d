// Package tmuxtest runs the real tmux on a private socket, with nothing of the user's configuration.
package tmuxtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pi-cradle/internal/run"
)

// Patience is how long anything is awaited before it counts as missing.
const Patience = 30 * time.Second

// Hostile is a configuration in which each setting has broken some program that opens windows.
const Hostile = `
set -g remain-on-exit on
set -g automatic-rename on
set -g allow-rename on
set -g base-index 7
set -g pane-base-index 3
set -g renumber-windows on
set -g set-titles on
set -g history-limit 0
set -g default-shell SHELL
set -g default-command "SHELL -l"
set -g update-environment "PATH HOME TERM"
set -s command-alias[50] 'new-window=new-window -c "#{pane_current_path}"'
set-hook -g after-new-window 'display-message -p "squire-window|1|2" ; rename-window -t : hooked'
set-hook -g window-linked 'set -g @linked 1'
`

// Server is a running server with one session, "main", whose only window does nothing.
type Server struct {
	Socket string
	Dir    string // for the test's own files
	t      testing.TB
	env    []string
}

// Start starts a server named socket in a folder of its own; conf is the text of its tmux.conf. SHELL in it stands for a login
// shell that refuses -c and swallows its input. The server ends with the test.
func Start(t testing.TB, socket, conf string) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "tt") // short: the length of a socket's path is limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &Server{Socket: filepath.Join(dir, socket), Dir: dir, t: t}
	s.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "SHELL=/bin/sh", "TERM=xterm-256color"}
	shell := filepath.Join(dir, "odd-shell")
	s.Write("odd-shell", "#!/bin/sh\n[ \"$1\" = -c ] && exit 9\nexec cat >/dev/null\n", 0o755)
	s.Write("tmux.conf", strings.ReplaceAll(conf, "SHELL", shell), 0o600)
	s.Run("-f", filepath.Join(dir, "tmux.conf"), "new-session", "-d", "-s", "main", "-n", "user", "-x", "100", "-y", "30", "--", "env", "cat")
	t.Cleanup(func() { _, _ = s.Try("kill-server") })
	return s
}

// Write makes an file in Dir and returns its path.
func (s *Server) Write(name, text string, mode os.FileMode) string {
	s.t.Helper()
	path := filepath.Join(s.Dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// Run runs one tmux command and returns what it printed, without the last newline.
func (s *Server) Run(args ...string) string {
	s.t.Helper()
	out, err := s.Try(args...)
	if err != nil {
		s.t.Fatalf("tmux %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// Try is Run for commands that may fail.
func (s *Server) Try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	res, err := run.Output(ctx, run.Cmd{Path: "tmux", Args: append([]string{"-u", "-S", s.Socket}, args...), Env: s.env})
	return strings.TrimSuffix(string(res.Stdout), "\n"), err
}

// Getenv is the environment of a program in the session's first pane.
func (s *Server) Getenv(name string) string {
	switch name {
	case "TMUX":
		pid, session, _ := strings.Cut(s.Run("display-message", "-p", "-t", "=main:", "#{pid} #{session_id}"), " ")
		return s.Socket + "," + pid + "," + strings.TrimPrefix(session, "$")
	case "TMUX_PANE":
		return s.Run("list-panes", "-t", "=main:", "-F", "#{pane_id}")
	}
	return ""
}

// Await returns when cond holds, and fails the test when that takes longer than Patience.
func Await(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(Patience); !cond(); {
		select {
		case <-deadline:
			t.Fatalf("waited %v for %s", Patience, what)
		case <-tick.C:
		}
	}
}

// Attach shows a session to a client of a size, in tmux's control mode, and returns the client's name. The client leaves with the
// test.
func (s *Server) Attach(session string, width, height int) string {
	s.t.Helper()
	before := strings.Fields(s.Run("list-clients", "-F", "#{client_name}"))
	cmd := exec.Command("tmux", "-u", "-S", s.Socket, "-C", "attach-session", "-t", session)
	cmd.Env = s.env
	stdin, err := cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = stdin.Close() // which is how a control client leaves
		_ = cmd.Wait()
	})
	var name string
	Await(s.t, "the client", func() bool {
		for _, client := range strings.Fields(s.Run("list-clients", "-F", "#{client_name}")) {
			if !slices.Contains(before, client) {
				name = client
			}
		}
		return name != ""
	})
	s.Run("refresh-client", "-t", name, "-C", fmt.Sprintf("%d,%d", width, height))
	return name
}
