package tmux

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"pi-cradle/internal/lockfile"
)

// Session is a session of a server.
type Session struct {
	ServerPID int
	Server    Version
	ID        string // such as "$3"
	Name      string
	Companion bool // it carries CompanionOption
}

// CompanionOption marks the sessions that were made for delegates' windows. A session without it is never touched.
const CompanionOption = "@squire-companion"

// A name can hold anything but a colon and a dot, so it stands last.
const (
	sessionFormat = mark + "|#{pid}|#{version}|#{session_id}|#{?" + CompanionOption + ",1,0}|#{session_name}"
	sessionFields = 6
)

func parseSession(line string) (Session, bool) {
	f := strings.SplitN(line, "|", sessionFields)
	if len(f) != sessionFields || f[0] != mark || !number(f[1]) || !validID(f[3], '$') {
		return Session{}, false
	}
	pid, _ := strconv.Atoi(f[1]) // number has limited its length
	return Session{ServerPID: pid, Server: ParseVersion(f[2]), ID: f[3], Companion: f[4] == "1", Name: f[5]}, true
}

// Sessions lists the sessions of a server. Its errors are those of Windows.
func (s Server) Sessions(ctx context.Context) ([]Session, error) {
	res, err := s.ask(ctx, "list-sessions", "-F", sessionFormat)
	if err != nil {
		return nil, err
	}
	var sessions []Session
	for line := range strings.Lines(string(res.Stdout)) {
		if session, ok := parseSession(strings.TrimSuffix(line, "\n")); ok {
			sessions = append(sessions, session)
		}
	}
	return sessions, nil
}

// Companion is the session that the delegates of one project share.
type Companion struct {
	Name  string // as it is preferred; letters, digits, "_" and "-" only. Where a session of the user's has it: Name-2, Name-3 …
	Home  string // working directory of windows that its user opens in it
	Locks string // folder of the locks that keep two launches from making two sessions
}

// numberOf is which of the alternatives a session's name is: 1 for the preferred one, 0 for none.
func (c Companion) numberOf(session string) int {
	if session == c.Name {
		return 1
	}
	rest, ok := strings.CutPrefix(session, c.Name)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimPrefix(rest, "-"))
	if err != nil || n < 2 || rest != "-"+strconv.Itoa(n) {
		return 0
	}
	return n
}

// choose gives the companion that exists, the first if there are several, or else the first name that nobody has.
func (c Companion) choose(sessions []Session) (existing Session, free string) {
	taken, best := map[int]bool{}, 0
	for _, session := range sessions {
		n := c.numberOf(session.Name)
		if n == 0 {
			continue
		}
		taken[n] = true
		if session.Companion && (best == 0 || n < best) {
			existing, best = session, n
		}
	}
	n := 1
	for taken[n] {
		n++
	}
	if n == 1 {
		return existing, c.Name
	}
	return existing, fmt.Sprintf("%s-%d", c.Name, n)
}

// How often a companion is looked for again after tmux refused to open a window in it, and how long another launch may take.
const (
	companionTries = 3
	companionLimit = 5 * time.Second
)

// NewCompanionWindow is NewWindow in a companion session, which is made together with the window when there is none, and a server
// when that is needed. known is what Sessions has said lately; it saves a question in the ordinary case. n.Session plays no part.
func (s Server) NewCompanionWindow(ctx context.Context, c Companion, n NewWindow, known []Session) (Window, error) {
	if !safeName(c.Name) {
		return Window{}, &RefusedError{fmt.Sprintf("%q is no safe session name", c.Name)}
	}
	var refused *RefusedError
	var none *NoServerError
	if session, _ := c.choose(known); session.ID != "" {
		n.Session = session.ID
		w, err := s.NewWindow(ctx, n)
		if !errors.As(err, &refused) && !errors.As(err, &none) {
			return w, err
		}
		known = nil // it may have ended with its last window meanwhile
	}
	limited, cancel := context.WithTimeout(ctx, companionLimit)
	unlock, err := lockfile.Lock(limited, filepath.Join(c.Locks, lockName(s.Socket, c.Name)), "opening a delegate's window")
	cancel()
	if err != nil {
		return Window{}, err
	}
	defer unlock()
	if known != nil {
		_, free := c.choose(known)
		if w, err := s.newSession(ctx, c, free, n); !errors.As(err, &refused) && !errors.As(err, &none) {
			return w, err
		}
	}
	for try := 1; ; try++ {
		w, err := s.inCompanion(ctx, c, n)
		// Others may make and end sessions of these names at any time: tmux decides, and then we look again.
		if again := errors.As(err, &refused) || errors.As(err, &none); !again || try == companionTries {
			return w, err
		}
	}
}

func (s Server) inCompanion(ctx context.Context, c Companion, n NewWindow) (Window, error) {
	sessions, err := s.Sessions(ctx)
	var none *NoServerError
	if err != nil && !errors.As(err, &none) {
		return Window{}, err
	}
	session, free := c.choose(sessions)
	if session.ID != "" {
		n.Session = session.ID
		return s.NewWindow(ctx, n)
	}
	if err != nil {
		_ = os.Mkdir(filepath.Dir(s.Socket), 0o700) // tmux makes this folder itself only for a socket it has found itself
	}
	return s.newSession(ctx, c, free, n)
}

// newSession makes a session whose only window is the delegate's, so that no shell stands about in it. Nobody can look at it
// between its making and its options: they are one command.
func (s Server) newSession(ctx context.Context, c Companion, name string, n NewWindow) (Window, error) {
	s.dir = c.Home
	options := func(target string) (args []string) {
		for _, option := range [][2]string{
			{CompanionOption, "1"},
			// Whoever looks at the last delegate when it ends stays in tmux.
			{"detach-on-destroy", "off"},
			// A user who has this on would lose the delegates with the next client that leaves.
			{"destroy-unattached", "off"},
		} {
			args = append(args, ";", "set-option", "-t", target, option[0], option[1])
		}
		return args
	}
	w, after, err := s.open(ctx, n, []string{"new-session", "-d", "-P", "-F", format, "-s", name, "-n", n.Name}, options("="+name+":")...)
	if err == nil && after != nil {
		// A hook of the user's can have failed, or have given the session another name.
		_, _ = s.ask(ctx, options(w.Session + ":")[1:]...)
	}
	return w, err
}

// lockName is one file name for each name on each server.
func lockName(socket, name string) string {
	sum := sha256.Sum256([]byte(socket))
	return name + "-" + hex.EncodeToString(sum[:8]) + ".lock"
}
