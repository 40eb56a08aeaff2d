// Command cradle-helper is the process behind squire's pi extension. `serve` speaks JSON-RPC with the extension over stdin and
// stdout; `exec` is the process of a delegate's tmux pane and starts pi there.
package main

import (
	"os"

	"pi-cradle/helper/serve"
)

func main() {
	os.Exit(serve.Main(os.Args[1:]))
}
