package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pi-cradle/rpc/wire"
)

func TestGenerated(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(filepath.Join(root, "rpc", "wire"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(targetIn(root))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("ext-shim/wire.gen.ts is stale; run: go run ./rpc/tsgen\n%s", diff(string(got), string(want)))
	}
}

// diff shows the differing middle of two texts: what is there and what should be.
func diff(got, want string) string {
	g, w := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	start := 0
	for start < len(g) && start < len(w) && g[start] == w[start] {
		start++
	}
	for len(g) > start && len(w) > start && g[len(g)-1] == w[len(w)-1] {
		g, w = g[:len(g)-1], w[:len(w)-1]
	}
	return "-" + strings.Join(g[start:], "-") + "+" + strings.Join(w[start:], "+")
}

// Every struct that a method names, and everything reachable from it, must be a struct of package wire: those are what the
// generated file declares.
func TestMethodTablesNameWireTypes(t *testing.T) {
	pkg := reflect.TypeFor[wire.Method]().PkgPath()
	seen := map[string]bool{}
	for _, m := range append(append([]wire.Method{}, wire.HelperMethods...), wire.HostMethods...) {
		if seen[m.Name] && m.Name != wire.Cancel {
			t.Errorf("%q is in the tables twice", m.Name)
		}
		seen[m.Name] = true
		for _, v := range []any{m.Params, m.Result} {
			if typ := reflect.TypeOf(v); v != nil && (typ.Kind() != reflect.Struct || typ.PkgPath() != pkg) {
				t.Errorf("%s: %v is no struct of package wire", m.Name, typ)
			}
		}
	}
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(root, "rpc", "wire", "wire.go"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(source)) {
		name, value, found := strings.Cut(strings.TrimSpace(line), "= \"")
		value, _, closed := strings.Cut(value, "\"")
		if found && closed && !strings.Contains(name, "//") && !seen[value] {
			t.Errorf("%s is a method constant and in no table", strings.TrimSpace(name))
		}
	}
}

func TestSourceThatCannotTravelIsRefused(t *testing.T) {
	for name, source := range map[string]string{
		"channel":     "package wire\ntype T struct {\n\tC chan int `json:\"c\"`\n}\n",
		"no tag":      "package wire\ntype T struct {\n\tC int\n}\n",
		"embedded":    "package wire\ntype T struct {\n\tU\n}\n",
		"bytes":       "package wire\ntype T struct {\n\tC []byte `json:\"c\"`\n}\n",
		"int key":     "package wire\ntype T struct {\n\tC map[int]string `json:\"c\"`\n}\n",
		"alias":       "package wire\ntype T int\n",
		"two names":   "package wire\ntype T struct {\n\tA, B int `json:\"a\"`\n}\n",
		"no constant": "package wire\nconst A = len(x)\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "wire.go"), []byte(source), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := generate(dir)
			if err == nil {
				t.Fatalf("generated from a source that can't travel:\n%s", out)
			}
			if !strings.Contains(err.Error(), "wire.go:") {
				t.Errorf("the error names no place: %v", err)
			}
		})
	}
}

func TestShapes(t *testing.T) {
	dir := t.TempDir()
	source := "package wire\n\n// Limits are two.\n// Lines.\nconst Limit = 2 << 3 // ignored\n\n" +
		"// T is a type */ with a trap.\ntype T struct {\n" +
		"\tA *U `json:\"a\"` // maybe\n\tB *U `json:\"b,omitempty\"`\n\tC []*U `json:\"c\"`\n\tD map[string][]bool `json:\"d\"`\n\tE int64 `json:\"e\" ts:\"bigint\"`\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "wire.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := generate(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := "\n/**\n * Limits are two.\n * Lines.\n */\nexport const LIMIT = 16;\n\n/** T is a type * / with a trap. */\nexport interface T {\n" +
		"\t/** maybe */\n\ta: U | null;\n\tb?: U;\n\tc: (U | null)[];\n\td: Record<string, boolean[]>;\n\te: bigint;\n}\n"
	if !strings.Contains(string(out), want) {
		t.Errorf("got\n%s\nwant it to contain\n%s", out, want)
	}
}
