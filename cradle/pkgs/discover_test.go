package pkgs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pi-cradle/cradle/folder"
)

// tree writes files, by their path below dir; a name that ends in a slash is a directory, a content that begins with "->" a link.
func tree(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		target, link := strings.CutPrefix(content, "->")
		switch {
		case err != nil:
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		case link:
			err = os.Symlink(target, path)
		default:
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestExtensions(t *testing.T) {
	for name, c := range map[string]struct {
		files   map[string]string // below the package
		want    string            // relative to the package
		warning string            // PKG stands for the package's directory
	}{
		"declared, in order":   {map[string]string{"package.json": `{"pi":{"extensions":["b.ts","./a.js"]}}`, "a.js": "", "b.ts": ""}, "b.ts a.js", ""},
		"any suffix":           {map[string]string{"package.json": `{"pi":{"extensions":["a.mts"]}}`, "a.mts": ""}, "a.mts", ""},
		"index.ts first":       {map[string]string{"package.json": `{}`, "index.ts": "", "index.js": ""}, "index.ts", ""},
		"index.js else":        {map[string]string{"package.json": `{"pi":{"extensions":[]}}`, "index.js": ""}, "index.js", ""},
		"malformed list":       {map[string]string{"package.json": `{"pi":{"extensions":[7]}}`, "index.js": ""}, "index.js", ""},
		"not installed":        {nil, "", "package tool is not installed — skipped"},
		"bad JSON":             {map[string]string{"package.json": `{`}, "", "package tool: PKG/package.json is not valid JSON: "},
		"manifest is a folder": {map[string]string{"package.json/": ""}, "", "package tool: PKG/package.json is not valid JSON: "},
		"array":                {map[string]string{"package.json": `[]`}, "", "package tool: PKG/package.json must be a JSON object — skipped"},
		"escapes":              {map[string]string{"package.json": `{"pi":{"extensions":["../../evil.ts","a.ts"]}}`, "a.ts": ""}, "a.ts", `package tool: extension entry "../../evil.ts" escapes the package directory — skipped`},
		"absolute":             {map[string]string{"package.json": `{"pi":{"extensions":["/etc/passwd"]}}`}, "", `package tool: extension entry "/etc/passwd" escapes the package directory — skipped`},
		"glob escapes":         {map[string]string{"package.json": `{"pi":{"extensions":["../neighbour/*.ts"]}}`, "../neighbour/x.ts": ""}, "", `package tool: extension entry "../neighbour/*.ts" escapes the package directory — skipped`},
		"missing entry":        {map[string]string{"package.json": `{"pi":{"extensions":["none.ts"]}}`}, "", `package tool: extension entry "none.ts" not found — skipped`},
		"nothing at all":       {map[string]string{"package.json": `{}`, "readme": ""}, "", "package tool declares no pi extensions — skipped"},
		"the package itself":   {map[string]string{"package.json": `{"pi":{"extensions":["."]}}`, "a.ts": "", "sub/index.ts": ""}, "a.ts sub/index.ts", ""},
		"declared directory":   {map[string]string{"package.json": `{"pi":{"extensions":["src"]}}`, "src/b.ts": "", "src/a.js": "", "src/d/index.js": "", "src/e/other.ts": ""}, "src/a.js src/b.ts src/d/index.js", ""},
		"convention directory": {map[string]string{
			"package.json": `{}`, "index.ts": "", "extensions/b.ts": "", "extensions/A.ts": "", "extensions/.h.ts": "", "extensions/node_modules/index.ts": "",
			"extensions/l.ts": "->b.ts", "extensions/two/index.ts": "", "extensions/two/index.js": "", "extensions/note.md": "", "extensions/linked": "->two",
		}, "extensions/A.ts extensions/b.ts extensions/two/index.ts", ""},
		"empty convention directory": {map[string]string{"package.json": `{}`, "extensions/note.md": "", "index.ts": ""}, "index.ts", ""},
		"glob":                       {map[string]string{"package.json": `{"pi":{"extensions":["e/*.ts"]}}`, "e/b.ts": "", "e/B.ts": "", "e/.h.ts": "", "e/c.js": ""}, "e/B.ts e/b.ts", ""},
		"glob with braces":           {map[string]string{"package.json": `{"pi":{"extensions":["e/{a,b}*.ts"]}}`, "e/a1.ts": "", "e/b2.ts": "", "e/c3.ts": ""}, "e/a1.ts e/b2.ts", ""},
		"glob finds directories":     {map[string]string{"package.json": `{"pi":{"extensions":["e*"]}}`, "e1/x.ts": "", "e2.ts": ""}, "e1/x.ts e2.ts", ""},
		"glob does not follow links": {map[string]string{"package.json": `{"pi":{"extensions":["**/x.ts"]}}`, "d/x.ts": "", "z": "->d"}, "d/x.ts", ""},
		"glob without matches":       {map[string]string{"package.json": `{"pi":{"extensions":["e/*.ts"]}}`, "index.ts": ""}, "", ""},
		"manifest overrides":         {map[string]string{"package.json": `{"pi":{"extensions":["e/*.ts","!e/legacy.ts"]}}`, "e/a.ts": "", "e/legacy.ts": ""}, "e/a.ts", ""},
		"only overrides":             {map[string]string{"package.json": `{"pi":{"extensions":["!e/legacy.ts"]}}`, "index.ts": ""}, "", ""},
		"package is a link":          {map[string]string{"../store/package.json": `{}`, "../store/index.ts": "", "../tool": "->store"}, "index.ts", ""},
		"package is a file":          {map[string]string{"../tool": ""}, "", "package tool is not installed — skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			root := filepath.Join(dir, "node_modules", "tool")
			tree(t, root, c.files)
			got, warnings := Project{Dir: dir, Packages: []folder.Package{{Name: "tool"}}}.Extensions()
			for i, path := range got {
				got[i], _ = filepath.Rel(root, path)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			want := strings.ReplaceAll(c.warning, "PKG", root)
			if c.warning == "" && len(warnings) != 0 || c.warning != "" && (len(warnings) != 1 || !strings.HasPrefix(warnings[0], want)) {
				t.Errorf("warnings %q, want one that begins with %q", warnings, want)
			}
			for _, w := range warnings {
				if !strings.HasSuffix(w, " — skipped") {
					t.Errorf("warning %q", w)
				}
			}
		})
	}
}

func TestExtensionsOfSeveralPackages(t *testing.T) {
	dir := t.TempDir()
	tree(t, filepath.Join(dir, "node_modules"), map[string]string{
		"zeta/package.json": `{}`, "zeta/index.ts": "",
		"@s/a/package.json": `{}`, "@s/a/extensions/x.ts": "", "@s/a/extensions/y.ts": "",
	})
	p := Project{Dir: dir, Packages: []folder.Package{
		{Name: "zeta"}, {Name: "gone"}, {Name: "@s/a", Filtered: true, Patterns: []string{"!x.ts"}}, {Name: "zeta"},
	}}
	got, warnings := p.Extensions()
	want := strings.Join([]string{"zeta/index.ts", "@s/a/extensions/y.ts", "zeta/index.ts"}, " ")
	for i := range got {
		got[i], _ = filepath.Rel(filepath.Join(dir, "node_modules"), got[i])
	}
	if strings.Join(got, " ") != want || len(warnings) != 1 {
		t.Errorf("got %q, %q", got, warnings)
	}
}
