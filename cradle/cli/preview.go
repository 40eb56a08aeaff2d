package cli

import (
	"io"

	"pi-cradle/cradle/compose"
)

// preview prints a plan instead of carrying it out.
func (a *app) preview(plan *compose.Plan, opts *runOptions) error {
	text := plan.DryRun()
	switch {
	case opts.json:
		text = plan.JSON()
	case opts.explain:
		text = plan.Explain()
	}
	_, err := io.WriteString(a.stdout, text)
	return err
}
