// Command cradle runs a folder as a pi agent: by hand, in a sandbox, or on a schedule.
package main

import (
	"os"

	"pi-cradle/cradle/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr))
}
