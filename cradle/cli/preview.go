package cli

import (
	"fmt"

	"pi-cradle/cradle/compose"
)

// preview prints a plan instead of carrying it out.
func (a *app) preview(plan *compose.Plan, opts *runOptions) error {
	_, err := fmt.Fprint(a.stdout, plan.DryRun())
	return err
}
