// Package serve is cradle-helper without its main function.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"pi-cradle/internal/version"
	"pi-cradle/rpc"
	"pi-cradle/squire"
	"pi-cradle/squire/launch"
)

const usage = `cradle-helper is started by the squire extension of pi; there is nothing to do with it by hand.

  cradle-helper serve          answer the extension on stdin and stdout
  cradle-helper exec <file>    start what a launch file says, in this terminal
  cradle-helper --version
`

// Main runs one subcommand and gives the exit code: 2 for wrong usage.
func Main(args []string) int {
	switch {
	case len(args) == 1 && args[0] == "serve":
		return serve()
	case len(args) == 2 && args[0] == "exec":
		return launch.Exec(args[1])
	case len(args) == 1 && args[0] == "--version":
		fmt.Println(version.Version)
		return 0
	case len(args) == 1 && (args[0] == "--help" || args[0] == "-h"):
		fmt.Print(usage)
		return 0
	}
	fmt.Fprint(os.Stderr, usage)
	return 2
}

// closeLimit is how long the end may take once stdin has ended: pi is gone, and its terminal may be waiting.
const closeLimit = 2 * time.Second

func serve() int {
	log.SetFlags(log.LstdFlags | log.Lmicroseconds)
	stream := rpc.Stdio()
	binary, err := os.Executable()
	if err == nil {
		binary, err = filepath.EvalSymlinks(binary)
	}
	if err != nil {
		log.Printf("cradle-helper does not know its own path: %v", err)
		return 1
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	service, mux := squire.New(squire.Config{Binary: binary, Home: home, Getenv: os.Getenv, Environ: os.Environ, Now: time.Now, Logf: log.Printf})
	conn := rpc.NewConn(stream, mux, log.Printf)
	service.Connect(conn)
	<-conn.Done()
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if err := errors.Join(service.Close(ctx), conn.Close(ctx)); err != nil {
		log.Printf("not everything ended in time: %v", err)
	}
	return 0
}
