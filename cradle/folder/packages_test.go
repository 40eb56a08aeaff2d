package folder

import (
	"reflect"
	"strings"
	"testing"
)

func TestPackageSpecs(t *testing.T) {
	for source, want := range map[string]Package{
		"npm:pi-example-tool":    {Name: "pi-example-tool", Version: "latest"},
		"npm:x@0.13.0":           {Name: "x", Version: "0.13.0"},
		"npm:@scope/tool":        {Name: "@scope/tool", Version: "latest"},
		"npm:@scope/tool@^1.2.0": {Name: "@scope/tool", Version: "^1.2.0"},
		"npm:x@>=1 <2":           {Name: "x", Version: ">=1 <2"},
		"npm:~x@*":               {Name: "~x", Version: "*"},
		"npm:-x.y_z@next":        {Name: "-x.y_z", Version: "next"},
	} {
		f := load(t, files{"settings.json": `{"packages":["` + source + `"]}`})
		wantWarnings(t, f)
		if !reflect.DeepEqual(f.Settings.Packages, []Package{want}) {
			t.Errorf("%s: %+v", source, f.Settings.Packages)
		}
	}
	for _, source := range []string{"npm:../evil", "npm:UPPER", "npm:x@file:/etc", "npm:x@git+https://x", "npm:", "npm:x@", "npm:@scope", "npm:@/x", "npm:@a/", "npm:@a/b/c", "npm:a/b", "npm:.x", "npm:_x", "npm:@a/.b", "npm: x", "npm:x@1/2", "npm:ü", "npm:@"} {
		f := load(t, files{"settings.json": `{"packages":["` + source + `"]}`})
		wantWarnings(t, f, "settings.json: packages entries must be npm:<name>[@<version>] — ignored: "+source)
	}
	// A path is never taken for something to fetch.
	for _, source := range []string{"./p", "p", "../p", "~/p", "/abs/p", "a path/with spaces", "git:github.com/u/r", "https://x/y", "ssh://x/y", "", "NPM:x", " npm:x"} {
		f := load(t, files{"settings.json": `{"packages":["` + source + `"]}`})
		wantWarnings(t, f, "settings.json: only npm: package sources are supported — ignored: "+source)
		if f.Settings.Packages != nil {
			t.Errorf("%s: %+v", source, f.Settings.Packages)
		}
	}
}

func TestPackageObjects(t *testing.T) {
	f := load(t, files{"settings.json": `{"packages":[
		7, {"extensions":["x"]}, null, "npm:a", "git:x", {"source":"npm:a","extensions":[]}, "npm:BAD",
		{"source":"npm:b","autoload":false,"extensions":["+x","!y"]}, {"source":"npm:c","autoload":true}, {"source":"https://d"},
		{"source":"npm:e","extensions":"x","autoload":"false","nope":1,"skills":[],"prompts":[]}, {"source":7}, {"source":"npm:f","extensions":[1]}]}`})
	wantWarnings(t, f,
		"settings.json: packages entry npm:e: cradle loads a package's extensions and nothing else — ignored: skills, prompts",
		"settings.json: packages entry npm:e: unknown filter keys — ignored: nope",
		"settings.json: packages entry npm:e: autoload must be a boolean — ignored",
		"settings.json: packages entry npm:e: extensions must be an array of strings — ignored",
		"settings.json: packages entry npm:f: extensions must be an array of strings — ignored",
		`settings.json: packages entries must be a source string or a { "source": … } object — ignored: 7, {"extensions":["x"]}, null, {"source":7}`,
		"settings.json: only npm: package sources are supported — ignored: git:x, https://d",
		"settings.json: packages entries must be npm:<name>[@<version>] — ignored: npm:BAD")
	want := []Package{
		{Name: "a", Version: "latest"},
		{Name: "a", Version: "latest", Filtered: true, Patterns: []string{}},
		{Name: "b", Version: "latest", Filtered: true, Patterns: []string{"+x", "!y"}, Delta: true},
		{Name: "c", Version: "latest"},
		{Name: "e", Version: "latest"},
		{Name: "f", Version: "latest"},
	}
	if !reflect.DeepEqual(f.Settings.Packages, want) {
		t.Errorf("\n got %+v\nwant %+v", f.Settings.Packages, want)
	}
}

// FuzzParseSpec holds that no name leaves the directory of installed packages and no version names another source.
func FuzzParseSpec(f *testing.F) {
	for _, s := range []string{"a", "@a/b@1", "../x", "a@file:x", "@a/../b", "a@@", "@", "@@a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		p, ok := parseSpec(spec)
		if !ok {
			return
		}
		parts := strings.Split(p.Name, "/")
		if len(parts) > 2 || strings.HasPrefix(p.Name, ".") || strings.Contains(p.Name, "/.") || strings.ContainsAny(p.Version, ":/\\\n") || p.Version == "" {
			t.Fatalf("%q became %+v", spec, p)
		}
	})
}
