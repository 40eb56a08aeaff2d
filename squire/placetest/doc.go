// Package placetest has delegates started in all sorts of places: by a real helper, in a real tmux, with real git. Only pi is played.
package placetest
