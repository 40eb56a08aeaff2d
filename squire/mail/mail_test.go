package mail_test

import (
	"testing"

	"pi-cradle/squire/mail/mailtest"
)

// Each transport with itself, and every change from a provider to none and back.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{"embedded", "embedded"}, {"hooks", "hooks"}, {"embedded", "hooks"}, {"hooks", "embedded"},
		{"auto with a provider", "auto without"}, {"auto without", "auto with a provider"},
	} {
		t.Run(pair[0]+" to "+pair[1], func(t *testing.T) {
			t.Parallel()
			mailtest.Suite(t, mailtest.Transports[pair[0]], mailtest.Transports[pair[1]])
		})
	}
}

func TestLargeBodies(t *testing.T) {
	t.Parallel()
	mailtest.Large(t, mailtest.Transports["embedded"], mailtest.Transports["hooks"])
}
