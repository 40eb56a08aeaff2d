package pkgs

import (
	"strings"
	"testing"

	"pi-cradle/cradle/folder"
)

func relative(files []file) string {
	var names []string
	for _, f := range files {
		names = append(names, f.rel)
	}
	return strings.Join(names, " ")
}

func TestSelected(t *testing.T) {
	var files []file
	for _, rel := range []string{"extensions/alpha.ts", "extensions/legacy.ts", "extensions/nested/index.ts", "index.ts"} {
		files = append(files, file{"/p/" + rel, rel})
	}
	const alpha, legacy, nested, index = "extensions/alpha.ts", "extensions/legacy.ts", "extensions/nested/index.ts", "index.ts"
	all := strings.Join([]string{alpha, legacy, nested, index}, " ")
	list := func(patterns ...string) folder.Package { return folder.Package{Filtered: true, Patterns: patterns} }
	delta := func(patterns ...string) folder.Package {
		return folder.Package{Filtered: true, Patterns: patterns, Delta: true}
	}
	for name, c := range map[string]struct {
		pkg  folder.Package
		want string
	}{
		"no filter":                       {folder.Package{}, all},
		"empty list":                      {list(), ""},
		"only exclusions":                 {list("!extensions/legacy.ts"), alpha + " " + nested + " " + index},
		"glob stops at a slash":           {list("extensions/*.ts"), alpha + " " + legacy},
		"double star crosses":             {list("extensions/**"), alpha + " " + legacy + " " + nested},
		"base name":                       {list("alpha.ts"), alpha},
		"base name of several":            {list("index.ts"), nested + " " + index},
		"absolute":                        {list("/p/extensions/a*.ts"), alpha},
		"include and exclude":             {list("extensions/*.ts", "!legacy.ts"), alpha},
		"plus beats exclusion":            {list("!extensions/*.ts", "+extensions/legacy.ts"), legacy + " " + nested + " " + index},
		"plus adds to the includes":       {list("extensions/alpha.ts", "+index.ts"), alpha + " " + index},
		"plus with a leading dot":         {list("extensions/alpha.ts", "+./index.ts"), alpha + " " + index},
		"minus beats plus":                {list("+index.ts", "-index.ts", "extensions/*.ts"), alpha + " " + legacy},
		"plus is no glob":                 {list("index.ts", "+extensions/*.ts"), nested + " " + index},
		"a directory matches no files":    {list("extensions"), ""},
		"a leading dot in a glob":         {list("./extensions/*.ts"), ""},
		"braces and classes":              {list("extensions/{alpha,x}.ts", "extensions/[!a]egacy.ts"), alpha + " " + legacy},
		"malformed glob names nothing":    {list("extensions/[a", "index.ts"), nested + " " + index},
		"delta without patterns":          {folder.Package{Delta: true}, ""},
		"delta, empty list":               {delta(), ""},
		"delta, glob":                     {delta("extensions/*.ts"), alpha + " " + legacy},
		"delta, later minus removes":      {delta("extensions/*.ts", "-extensions/legacy.ts"), alpha},
		"delta, later plus adds back":     {delta("!index.ts", "+index.ts"), index},
		"delta, only exclusions":          {delta("!extensions/legacy.ts"), ""},
		"empty pattern":                   {list(""), ""},
		"order of input, not of patterns": {list("index.ts", "extensions/alpha.ts"), alpha + " " + nested + " " + index},
	} {
		t.Run(name, func(t *testing.T) {
			if got := relative(selected(c.pkg, files)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if got := relative(selected(list("*.ts"), []file{{"/p/.hidden.ts", ".hidden.ts"}})); got != ".hidden.ts" {
		t.Errorf("a star must match a leading dot in a filter, got %q", got)
	}
}

// Whatever the patterns, a filter neither invents nor reorders nor repeats files, and "+" of a file always wins over "!".
func FuzzSelected(f *testing.F) {
	f.Add("extensions/*.ts\n!index.ts\n+./a.ts", false)
	f.Add("[\n{a,\n\\", true)
	f.Fuzz(func(t *testing.T, patterns string, delta bool) {
		files := []file{{"/p/a.ts", "a.ts"}, {"/p/extensions/b.ts", "extensions/b.ts"}, {"/p/.c.js", ".c.js"}}
		list := strings.Split(patterns, "\n")
		next := 0
		for _, kept := range selected(folder.Package{Filtered: true, Patterns: list, Delta: delta}, files) {
			for next < len(files) && files[next] != kept {
				next++
			}
			if next == len(files) {
				t.Fatalf("%q is out of order or from nowhere", kept.rel)
			}
			next++
		}
		for _, p := range list {
			if strings.HasPrefix(p, "-") {
				return
			}
		}
		got := selected(folder.Package{Filtered: true, Patterns: append(list, "+a.ts"), Delta: delta}, files)
		if len(got) == 0 || got[0].rel != "a.ts" {
			t.Fatalf("%q with +a.ts lost a.ts", patterns)
		}
	})
}
