package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The fakes append what they were called with to the file that this variable names, one line each.
const logEnv = "FAKE_LOG"

// What a fake does besides its own work is told by variables, NAME being its name in capitals: FAKE_NAME_EXIT is its exit code,
// FAKE_NAME_STDERR what it prints there, FAKE_NAME_FAIL the first argument of the only calls these two apply to.
var fakes = map[string]func(args []string) int{
	"pi": fakePi, "nono": fakeNono, "sbx": fakeSbx, "npm": fakeNpm, "pnpm": fakeNpm,
	"mise": func([]string) int { fmt.Println("2026.7.0 linux-x64"); return 0 },
}

func play(name string, fake func([]string) int) int {
	args := os.Args[1:]
	if path := os.Getenv(logEnv); path != "" {
		line := strings.ReplaceAll(strings.Join(append([]string{name}, args...), " "), "\n", `\n`) + "\n"
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		if _, err := f.WriteString(line); err != nil {
			panic(err)
		}
	}
	prefix := "FAKE_" + strings.ToUpper(name) + "_"
	fail := os.Getenv(prefix + "FAIL")
	if fail == "" || len(args) > 0 && args[0] == fail {
		if text := os.Getenv(prefix + "STDERR"); text != "" {
			fmt.Fprintln(os.Stderr, strings.ReplaceAll(text, `\n`, "\n"))
		}
		if code, err := strconv.Atoi(os.Getenv(prefix + "EXIT")); err == nil && code != 0 {
			return code
		}
	}
	return fake(args)
}

// fakePi prints where it runs, what it was given and what it was told in the environment, or its version. With FAKE_PI_STDIN it
// prints what it reads as well. With FAKE_PI_KILL it
// dies of that signal; with FAKE_PI_AWAIT it says it is ready and ends with the signals it got.
func fakePi(args []string) int {
	if len(args) == 1 && args[0] == "--version" {
		fmt.Println("9.9.9")
		return 0
	}
	if n, err := strconv.Atoi(os.Getenv("FAKE_PI_KILL")); err == nil {
		signal.Reset(syscall.Signal(n))
		_ = syscall.Kill(os.Getpid(), syscall.Signal(n))
		select {}
	}
	if n, err := strconv.Atoi(os.Getenv("FAKE_PI_AWAIT")); err == nil {
		signals := make(chan os.Signal, 8)
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		fmt.Println("ready")
		for range n {
			fmt.Println(<-signals)
		}
		return 42
	}
	cwd, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	fmt.Println("cwd", cwd)
	for _, a := range args {
		fmt.Println("arg", a)
	}
	if os.Getenv("FAKE_PI_STDIN") != "" {
		data, err := io.ReadAll(os.Stdin)
		if err != nil {
			panic(err)
		}
		fmt.Print("in ", string(data))
	}
	for _, name := range []string{"MISE_CACHE_DIR", "MARK"} {
		if value, ok := os.LookupEnv(name); ok {
			fmt.Println("env", name, value)
		}
	}
	return 0
}

// fakeNono wants a profile that is JSON and becomes the command, as seen from outside.
func fakeNono(args []string) int {
	if len(args) == 1 && args[0] == "--version" {
		fmt.Println("nono 0.66.0")
		return 0
	}
	for i, a := range args {
		switch a {
		case "--profile":
			data, err := os.ReadFile(args[i+1])
			if err != nil || !json.Valid(data) {
				fmt.Fprintln(os.Stderr, "nono: bad profile:", err)
				return 1
			}
		case "--":
			command := args[i+1:]
			err := syscall.Exec(command[0], command, os.Environ())
			fmt.Fprintln(os.Stderr, "nono:", err)
			return 1
		}
	}
	return 2
}

func fakeSbx(args []string) int {
	switch {
	case args[0] == "version":
		fmt.Println("sbx version: v0.35.0 abc")
	case args[0] == "exec" && args[1] == "-i":
		fmt.Println("in the guest:", strings.Join(args, " "))
		if code, err := strconv.Atoi(os.Getenv("FAKE_GUEST_EXIT")); err == nil {
			return code
		}
	default:
		fmt.Println("noise that nobody should see")
	}
	return 0
}

// fakeNpm installs a package with an index.ts for each dependency, but not the one FAKE_NPM_LOSE names. FAKE_NPM_HOLD names a
// pipe: it waits until somebody has read from it.
func fakeNpm(args []string) int {
	if err := npmInstall(args); err != nil {
		fmt.Fprintln(os.Stderr, "npm:", err)
		return 1
	}
	return 0
}

func npmInstall(args []string) error {
	if len(args) != 2 || args[0] != "install" || args[1] != "--ignore-scripts" {
		return fmt.Errorf("unexpected arguments %q", args)
	}
	data, err := os.ReadFile("package.json")
	if err != nil {
		return err
	}
	var manifest struct{ Dependencies map[string]string }
	if err := json.Unmarshal(data, &manifest); err != nil {
		return err
	}
	if pipe := os.Getenv("FAKE_NPM_HOLD"); pipe != "" {
		if err := os.WriteFile(pipe, []byte("installing\n"), 0); err != nil {
			return err
		}
	}
	fmt.Println("added", len(manifest.Dependencies))
	if err := os.MkdirAll("node_modules", 0o755); err != nil {
		return err
	}
	for name := range manifest.Dependencies {
		if name == os.Getenv("FAKE_NPM_LOSE") {
			continue
		}
		dir := filepath.Join("node_modules", name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for file, content := range map[string]string{"package.json": `{"name":"` + name + `"}`, "index.ts": ""} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
