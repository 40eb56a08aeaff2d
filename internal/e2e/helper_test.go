package e2e

import (
	"os"
	"strings"
	"testing"

	"pi-cradle/internal/testenv"
)

// A helper that can't be used leaves pi usable, says so once, and says so again to whoever wants to delegate.
func TestHelperThatCannotBeUsed(t *testing.T) {
	cases := map[string]string{ // a script, or what is done instead
		"missing":        "",
		"not executable": "",
		"wrong version": `while read -r line; do
id=$(printf %s "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"helper is version 0.0.1"}}\n' "$id"
done`,
		"exits at once":  "echo gave up >&2; exit 3",
		"prints garbage": "yes garbage | head -100; cat >/dev/null",
		"hangs":          "cat >/dev/null",
	}
	for name, script := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testenv.New(t, testenv.Options{})
			e.Scout()
			path := e.BinDir + "/cradle-helper"
			if name != "missing" {
				e.Script(path, script)
			}
			if name == "not executable" {
				if err := os.Chmod(path, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			e.Setenv("CRADLE_HELPER", path)
			parent := e.Start(testenv.PiOptions{})
			parent.AwaitText("squire is off")
			parent.Submit("are you there?\nSAY here I am")
			parent.AwaitAnswer("here I am")
			parent.Submit("and now?\nSAY still here")
			parent.AwaitAnswer("still here")
			if n := strings.Count(joined(parent.History()), "squire is off"); n != 1 {
				t.Errorf("said %d times on\n%s", n, parent.History())
			}
			parent.Submit("go\n" + delegate("look"))
			r := e.Model.Await(t, "the tool's answer", func(r testenv.Request) bool { return r.Last().Role == "tool" })
			if !strings.Contains(r.Last().Text, "squire is off") {
				t.Errorf("the tool says %q", r.Last().Text)
			}
			parent.Quit()
		})
	}
}
