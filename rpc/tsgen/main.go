// Tsgen writes ext-shim/wire.gen.ts from rpc/wire, so that the extension's view of the wire can't drift from the helper's.
// The output uses erasable syntax only: Node runs it as it is.
//
// Run it from anywhere in the module: go run ./rpc/tsgen
package main

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("tsgen: ")
	if err := write(); err != nil {
		log.Fatal(err)
	}
}

func write() error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	text, err := generate(filepath.Join(root, "rpc", "wire"))
	if err != nil {
		return err
	}
	target := targetIn(root)
	if old, err := os.ReadFile(target); err == nil && bytes.Equal(old, text) {
		return nil
	}
	return os.WriteFile(target, text, 0o644)
}

func targetIn(root string) string { return filepath.Join(root, "ext-shim", "wire.gen.ts") }

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod above the working directory: %w", errors.ErrUnsupported)
		}
		dir = up
	}
}
