// Package mail carries tasks and answers between sessions. Two transports share one mail root on disk: Hooks asks a provider in
// the same pi process over the message:* channels, Embedded reads and writes the root itself, and Auto takes whichever there is.
// Either way mail arrives at one Sink, each envelope at least once.
package mail

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"path/filepath"

	"pi-cradle/internal/usererr"
	"pi-cradle/rpc/wire"
)

// Outgoing is a task for the session whose address is To.
type Outgoing struct{ To, Body string }

// Reply answers requests. More than MaxInReplyTo of them are answered by several envelopes.
type Reply struct {
	To        string
	InReplyTo []string
	Body      string
	Status    string // StatusDone or StatusFailed
}

// Received is an envelope that this session takes over. Path is its file in this session's cur/, where it stands as soon as the
// sink has returned. Requests are this session's own copies of what a reply answers, as far as they were found.
type Received struct {
	Envelope Envelope
	Path     string
	Requests []Copy
}

// Copy is a sent envelope and its file.
type Copy struct {
	Envelope Envelope
	Path     string
}

// Sink takes an envelope over: when it returns nil the envelope is recorded for good. After an error the envelope stays where it
// is, for the next scan. It is called for one envelope at a time, may see one twice, and must not call the transport.
type Sink func(Received) error

// Transport is one way to send and receive.
type Transport interface {
	// Send posts a task and returns the envelope as sent. When it fails, the task was not sent.
	Send(ctx context.Context, o Outgoing) (Envelope, error)
	// Reply posts an answer. When it fails, it may have been posted all the same, to some of the requests or to all.
	Reply(ctx context.Context, r Reply) error
	// Scan brings every waiting envelope of ours to the sink before it returns. Unless it returns (true, nil), mail may still
	// be waiting: nothing can be concluded from an answer that has not come.
	Scan(ctx context.Context) (answered bool, err error)
	// Close ends the transport's own activity, and waits until ctx for a sink that is being called.
	Close(ctx context.Context) error
}

// NoProviderError says that nobody answers the message:* channels.
type NoProviderError struct{ Channel string }

func (e *NoProviderError) Error() string { return e.Unwrap().Error() }

func (e *NoProviderError) Unwrap() error {
	return usererr.New("no provider of the message:* hooks answered %q", e.Channel).
		Hint(`install one with "pi install npm:pi-session-mail" and reload, or set "mail" to "auto" in squire/settings.json`)
}

// ProviderError is a refusal in the provider's own words.
type ProviderError struct{ Channel, Text string }

func (e *ProviderError) Error() string { return fmt.Sprintf("%s failed: %s", e.Channel, e.Text) }

// Root is the mail root shared by everything that speaks this format.
func Root(getenv func(string) string) (string, error) {
	state := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home := getenv("HOME")
		if home == "" {
			u, err := user.Current()
			if err != nil || u.HomeDir == "" {
				return "", errors.New("neither HOME nor the user database tells the home directory")
			}
			home = u.HomeDir
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "pi-session-mail"), nil
}

// Ours says whether a session with these claims takes the envelope over: a task from its parent, or the answer to a request from
// the session that was asked.
func Ours(claims wire.Claims, e Envelope) bool {
	switch e.Kind {
	case KindRequest:
		return claims.Parent != "" && e.From == claims.Parent
	case KindReply:
		for _, id := range e.InReplyTo {
			if from, ok := claims.Requests[id]; ok && from == e.From {
				return true
			}
		}
	}
	return false
}
