package extgen

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pi-cradle/internal/jsjson"
	"pi-cradle/internal/testenv"
)

// run loads a generated extension as pi does, types stripped, and returns what script prints. The script has the module as m.
func run(t *testing.T, name, source, script string, env ...string) string {
	t.Helper()
	dir := t.TempDir()
	main := `import * as m from "./` + name + `";` + "\n" + script
	if err := errors.Join(os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600), os.WriteFile(filepath.Join(dir, "main.mjs"), []byte(main), 0o600),
		os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(testenv.NodeDir(), "node"), "--experimental-strip-types", "--no-warnings", "main.mjs")
	cmd.Dir, cmd.Env = dir, append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("%v\n%s", err, exit.Stderr)
		}
		t.Fatalf("node can't be run, do `npm ci` first: %v", err)
	}
	return string(out)
}

const providersJSON = `{"z":{"baseUrl":"http://h/</script>\u2028","models":[{"cost":{"input":0},"id":"a\"b\\c${x}` + "`" + `"},{"id":"full","name":"N","reasoning":true,"input":[],"contextWindow":1,"maxTokens":2},{"name":"no id"},null]},"2":{},"a":{"headers":{"constructor":"x","é":"日本"}},"odd":null}`

func providers(t *testing.T) *jsjson.Object {
	t.Helper()
	v, err := jsjson.Decode([]byte(providersJSON))
	if err != nil {
		t.Fatal(err)
	}
	return v.(*jsjson.Object)
}

func TestProvidersRegisterInKeyOrder(t *testing.T) {
	got := run(t, "providers.ts", Providers(providers(t)),
		`const calls = []; m.default({ registerProvider: (...args) => calls.push(args) }); console.log(JSON.stringify(calls));`)
	// Each model has what pi would assume for it, and what it says itself stays in force.
	const want = `[["2",{}],` +
		`["z",{"baseUrl":"http://h/</script>\u2028","models":[` +
		`{"name":"a\"b\\c${x}` + "`" + `","reasoning":false,"input":["text"],"contextWindow":128000,"maxTokens":16384,"cost":{"input":0},"id":"a\"b\\c${x}` + "`" + `"},` +
		`{"name":"N","reasoning":true,"input":[],"contextWindow":1,"maxTokens":2,"id":"full"},{"name":"no id"},null]}],` +
		`["a",{"headers":{"constructor":"x","é":"日本"}}],["odd",null]]`
	v, err := jsjson.Decode([]byte(got))
	if err != nil {
		t.Fatal(err)
	}
	w, err := jsjson.Decode([]byte(want))
	if err != nil {
		t.Fatal(err)
	}
	if jsjson.Compact(v) != jsjson.Compact(w) {
		t.Errorf("\n got %s\nwant %s", jsjson.Compact(v), jsjson.Compact(w))
	}
}

// TestProvidersCanBeCutOut holds the two markers between which other tools find the JSON.
func TestProvidersCanBeCutOut(t *testing.T) {
	source := Providers(providers(t))
	_, rest, _ := strings.Cut(source, "const providers = ")
	text, _, ok := strings.Cut(rest, " as const;")
	v, err := jsjson.Decode([]byte(text))
	if !ok || err != nil || jsjson.Compact(v) != jsjson.Compact(providers(t)) {
		t.Errorf("%v: %s", err, text)
	}
}

func TestFallback(t *testing.T) {
	const script = `Object.defineProperty(process, "platform", { value: process.env.PLATFORM });
		m.default({}); const { AGENT_BROWSER_ARGS: args = null, AGENT_BROWSER_PROXY: proxy = null } = process.env;
		console.log(JSON.stringify([m.default.name, args, proxy]));`
	for _, c := range []struct {
		env  []string
		want string
	}{
		{[]string{"PLATFORM=darwin"}, `"--no-sandbox",null`},
		{[]string{"PLATFORM=darwin", "AGENT_BROWSER_ARGS=--disable-gpu", "HTTPS_PROXY=http://p:1", "HTTP_PROXY=http://q:1"}, `"--disable-gpu,--no-sandbox","http://p:1"`},
		{[]string{"PLATFORM=darwin", "AGENT_BROWSER_ARGS= --no-sandbox , a\n,b,--no-sandbox", "AGENT_BROWSER_PROXY=mine", "HTTPS_PROXY=x"}, `"a,b,--no-sandbox","mine"`},
		{[]string{"PLATFORM=linux", "AGENT_BROWSER_ARGS=--no-sandbox, a", "HTTP_PROXY=http://q:1"}, `"--no-sandbox, a","http://q:1"`},
		{[]string{"PLATFORM=linux", "AGENT_BROWSER_PROXY=", "HTTPS_PROXY=x"}, `null,""`},
		{[]string{"PLATFORM=linux"}, `null,null`},
	} {
		if got := run(t, FallbackFile, Fallback, script, c.env...); got != `["configureAgentBrowserNonoEnvironment",`+c.want+"]\n" {
			t.Errorf("%q: got %s", c.env, got)
		}
	}
}

// TestTypes checks the generated modules against pi's own types.
func TestTypes(t *testing.T) {
	cache := filepath.Join(testenv.Repo(), ".cache") // below the repository, where the compiler finds pi's types
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(cache, "extgen-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	v, err := jsjson.Decode([]byte(`{"local":{"baseUrl":"http://h/v1","api":"openai-completions","models":[{"id":"m"}]},"empty":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	const config = `{"extends":"../../tsconfig.json","include":["*.ts"]}`
	if err := errors.Join(os.WriteFile(filepath.Join(dir, ProvidersFile), []byte(Providers(v.(*jsjson.Object))), 0o600),
		os.WriteFile(filepath.Join(dir, FallbackFile), []byte(Fallback), 0o600), os.WriteFile(filepath.Join(dir, "tsconfig.json"), []byte(config), 0o600)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(testenv.NodeDir(), "tsc"), "-p", dir)
	cmd.Env = append(os.Environ(), "PATH="+testenv.NodeDir()+string(os.PathListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
