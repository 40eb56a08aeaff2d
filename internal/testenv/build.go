package testenv

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"

	"pi-cradle/internal/lockfile"
)

// Repo is the root of the checkout.
func Repo() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Binaries are the built programs, as absolute paths.
type Binaries struct{ Cradle, Helper string }

// Build returns the programs: those in the folder that CRADLE_TEST_BIN names, or else freshly built ones, once for a process
// and never by two at the same time.
func Build(t T) Binaries {
	t.Helper()
	dir, err := buildOnce()
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	return Binaries{Cradle: filepath.Join(dir, "cradle"), Helper: filepath.Join(dir, "cradle-helper")}
}

var buildOnce = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("CRADLE_TEST_BIN"); dir != "" {
		return dir, nil
	}
	dir := cacheDir("bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*Patience)
	defer cancel()
	unlock, err := lockfile.Lock(ctx, filepath.Join(dir, "lock"), "test build")
	if err != nil {
		return "", err
	}
	defer unlock()
	for name, pkg := range map[string]string{"cradle": "./cradle", "cradle-helper": "./helper"} {
		cmd := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, name), pkg)
		cmd.Dir = Repo()
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", pkg, err, out)
		}
	}
	return dir, nil
})

// cacheDir is a folder in the checkout, ignored by git, for what is slow to make and safe to share.
func cacheDir(name string) string { return filepath.Join(Repo(), ".cache", name) }

// PiVersion is one of the pinned releases of pi.
type PiVersion struct {
	Version string
	CLI     string // the script that Node runs
}

// Newest is the pi that everything is tested with; Oldest is the oldest one that is supported.
func Newest(t T) PiVersion { t.Helper(); return findPi(t, "@earendil-works/pi-coding-agent") }

// Oldest is the oldest pi that is supported.
func Oldest(t T) PiVersion { t.Helper(); return findPi(t, "pi-oldest") }

func findPi(t T, name string) PiVersion {
	t.Helper()
	dir := filepath.Join(Repo(), "node_modules", filepath.FromSlash(name))
	data, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		t.Fatalf("pi is not installed, run `npm ci` first: %v", err)
	}
	var pkg struct {
		Version string
		Bin     struct{ Pi string }
	}
	if err := json.Unmarshal(data, &pkg); err != nil || pkg.Bin.Pi == "" {
		t.Fatalf("%s: no bin.pi in its package.json (%v)", name, err)
	}
	return PiVersion{Version: pkg.Version, CLI: filepath.Join(dir, filepath.FromSlash(pkg.Bin.Pi))}
}

// NodeDir is the folder with the pinned `node`.
func NodeDir() string { return filepath.Join(Repo(), "node_modules", ".bin") }
