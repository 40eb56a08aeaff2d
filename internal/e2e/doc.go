// Package e2e has no code: its tests run the whole of squire in the real pi, in a real tmux, with a scripted model.
package e2e
