// Package layers holds no code: its tests hold the repository to its layout.
package layers

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pi-cradle/internal/version"
)

const module = "pi-cradle"

// topLevel is everything that may lie at the root, besides dotfiles.
var topLevel = []string{
	"helper", "ext-shim", "rpc", "squire", "cradle", "testdata", "internal", "examples",
	"go.mod", "go.sum", "package.json", "package-lock.json", "tsconfig.json", "biome.json", "layers_test.go",
	"Makefile", "README.md", "CHANGELOG.md", "LICENSE",
}

// untracked are folders that git ignores.
var untracked = []string{"bin", "node_modules", ".git", ".tools", ".cache"}

// source is one file of Go.
type source struct {
	dir, path string // from the root, with slashes
	test      bool
	file      *ast.File
	fset      *token.FileSet
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	walk(t, func(name string) {
		if path.Ext(name) != ".go" {
			return
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, source{path.Dir(name), name, strings.HasSuffix(name, "_test.go"), file, fset})
	})
	if len(all) < 10 {
		t.Fatalf("found only %d files of Go: not run at the root?", len(all))
	}
	return all
}

func walk(t *testing.T, visit func(name string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains(untracked, entry.Name()) || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.Type().IsRegular():
			visit(filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// layer is a set of packages and what they may import of this module, both as prefixes of whole path elements; "=" in front
// means exactly that package.
type layer struct {
	packages, imports []string
}

// layers is read from the top: the first that has a package decides.
var layers = []layer{
	{[]string{"internal/demo", "internal/bench", "internal/e2e"}, []string{"internal", "rpc"}},
	{[]string{"internal"}, []string{"internal"}},
	{[]string{"rpc/wire"}, nil},
	{[]string{"rpc"}, []string{"rpc", "internal"}},
	// The state machine knows the facts it is told and nothing else.
	{[]string{"squire/session"}, nil},
	{[]string{"squire"}, []string{"squire", "rpc", "internal"}},
	// First exception: the command line shows delegations.
	{[]string{"cradle/cli"}, []string{"cradle", "rpc", "internal", "=squire/records", "=squire/tree"}},
	{[]string{"cradle"}, []string{"cradle", "rpc", "internal"}},
	// Second exception: the helper hands squire a composer of agent folders.
	{[]string{"helper"}, []string{"helper", "squire", "rpc", "internal", "=cradle/compose"}},
	{[]string{"."}, []string{"internal"}},
}

func within(pkg string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		if exact, ok := strings.CutPrefix(prefix, "="); ok {
			return pkg == exact
		}
		return pkg == prefix || strings.HasPrefix(pkg, prefix+"/")
	})
}

func TestImportsRunDownwards(t *testing.T) {
	for _, src := range sources(t) {
		if src.test && src.dir != "squire/session" {
			continue // a test may bring in helpers from anywhere that Go allows
		}
		i := slices.IndexFunc(layers, func(l layer) bool { return within(src.dir, l.packages) })
		if i < 0 {
			t.Errorf("%s belongs to no layer", src.path)
			continue
		}
		for _, spec := range src.file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			pkg, ours := strings.CutPrefix(imported, module+"/")
			if ours && !within(pkg, layers[i].imports) {
				t.Errorf("%s imports %s, which is not below it", src.path, pkg)
			}
		}
	}
}

// Processes start in one package, where each has an owner and a limit. What only runs in tests and measurements is free.
func TestProcessesStartInOnePackage(t *testing.T) {
	free := []string{"internal/run", "internal/testenv", "internal/bench", "internal/demo", "rpc/rpctest", "squire/tmux/tmuxtest"}
	starters := map[string][]string{"os": {"StartProcess"}, "syscall": {"ForkExec", "StartProcess", "Exec"}, "unix": {"Exec"}}
	for _, src := range sources(t) {
		if src.test || within(src.dir, free) {
			continue
		}
		for _, spec := range src.file.Imports {
			if spec.Path.Value == `"os/exec"` {
				t.Errorf("%s imports os/exec", src.path)
			}
		}
		eachCall(src, func(pkg, name string, at token.Position) {
			if slices.Contains(starters[pkg], name) {
				t.Errorf("%s: %s.%s", at, pkg, name)
			}
		})
	}
}

func TestOnlyMainsExit(t *testing.T) {
	exits := map[string][]string{"os": {"Exit"}, "log": {"Fatal", "Fatalf", "Fatalln"}, "syscall": {"Exit"}}
	for _, src := range sources(t) {
		if src.test || src.file.Name.Name == "main" {
			continue
		}
		eachCall(src, func(pkg, name string, at token.Position) {
			if slices.Contains(exits[pkg], name) {
				t.Errorf("%s: %s.%s outside a main package", at, pkg, name)
			}
		})
	}
}

func eachCall(src source, visit func(pkg, name string, at token.Position)) {
	ast.Inspect(src.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok {
				visit(pkg.Name, sel.Sel.Name, src.fset.Position(sel.Pos()))
			}
		}
		return true
	})
}

func TestOneVersion(t *testing.T) {
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var pkg struct{ Version string }
		if err := json.Unmarshal(data, &pkg); err != nil {
			t.Fatal(err)
		}
		if pkg.Version != version.Version {
			t.Errorf("%s says %q, internal/version %q", name, pkg.Version, version.Version)
		}
	}
	literal := strconv.Quote(version.Version)
	for _, src := range sources(t) {
		if src.test || src.dir == "internal/version" {
			continue
		}
		ast.Inspect(src.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Value == literal {
				t.Errorf("%s: the version again; use version.Version", src.fset.Position(lit.Pos()))
			}
			return true
		})
	}
	if log, err := os.ReadFile("CHANGELOG.md"); err != nil || !strings.Contains(string(log), "## "+version.Version) {
		t.Errorf("CHANGELOG.md has no heading for %s (%v)", version.Version, err)
	}
}

func TestSizes(t *testing.T) {
	const maxLines, maxFunc = 500, 80
	walk(t, func(name string) {
		ext := path.Ext(name)
		if ext != ".go" && ext != ".ts" || strings.HasSuffix(name, ".gen.ts") {
			return
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(data), "\n"); lines >= maxLines {
			t.Errorf("%s has %d lines: under %d, please", name, lines, maxLines)
		}
	})
	for _, src := range sources(t) {
		for _, decl := range src.file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			lines := src.fset.Position(fn.End()).Line - src.fset.Position(fn.Pos()).Line + 1
			if lines >= maxFunc {
				t.Errorf("%s: %s has %d lines: under %d, please", src.fset.Position(fn.Pos()), fn.Name.Name, lines, maxFunc)
			}
		}
	}
}

func TestTopLevel(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") || slices.Contains(untracked, name) || slices.Contains(topLevel, name) {
			continue
		}
		t.Errorf("%s: the top level is fixed", name)
	}
}
