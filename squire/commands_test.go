package squire

import (
	"strings"
	"testing"

	"pi-cradle/internal/usererr"
)

func TestParseDelegate(t *testing.T) {
	on, off := true, false
	for _, c := range []struct {
		args string
		want order
		err  string
	}{
		{"scout find it", order{Agent: "scout", Task: "find it"}, ""},
		{"  scout   find  it ", order{Agent: "scout", Task: "find  it "}, ""},
		{"scout --label first --model p/m --thinking low --auto-exit do", order{Agent: "scout", Task: "do", Label: "first", Model: "p/m", Thinking: "low", AutoExit: &on}, ""},
		{"scout --no-auto-exit --label=x do", order{Agent: "scout", Task: "do", Label: "x", AutoExit: &off}, ""},
		{`scout --model "Echo One" "quoted task" \"`, order{Agent: "scout", Task: `"quoted task" \"`, Model: "Echo One"}, ""},
		{`scout --model="a \"b\" \\ c" t`, order{Agent: "scout", Task: "t", Model: `a "b" \ c`}, ""},
		{"scout - item --label x", order{Agent: "scout", Task: "- item --label x"}, ""},
		{"scout -- --help me", order{Agent: "scout", Task: "--help me"}, ""},
		{"scout ---\nx: y", order{Agent: "scout"}, `unknown flag "---"; write "--" before`},
		{"scout line one\n  line two\n", order{Agent: "scout", Task: "line one\n  line two\n"}, ""},
		{"scout", order{Agent: "scout"}, ""},
		{"", order{}, "needs an agent and a task"},
		{"scout --lable x do", order{Agent: "scout"}, `unknown flag "--lable"; did you mean "--label"?`},
		{"scout --model", order{Agent: "scout"}, `flag "--model" needs a value`},
		{`scout --model "" do`, order{Agent: "scout"}, `flag "--model" needs a value`},
		{`scout --model "open do`, order{Agent: "scout"}, "no closing quote"},
		{"scout --auto-exit=yes do", order{Agent: "scout"}, `flag "--auto-exit" takes no value`},
	} {
		got, err := parseDelegate(c.args)
		if c.err != "" {
			if err == nil || !strings.Contains(strings.ReplaceAll(usererr.Text(err, ""), "\n", "; "), c.err) {
				t.Errorf("%q: error %v, want %q", c.args, err, c.err)
			}
			continue
		}
		same := got.AutoExit == nil && c.want.AutoExit == nil || got.AutoExit != nil && c.want.AutoExit != nil && *got.AutoExit == *c.want.AutoExit
		got.AutoExit, c.want.AutoExit = nil, nil
		if err != nil || got != c.want || !same {
			t.Errorf("%q: got %+v, %v", c.args, got, err)
		}
	}
}

func FuzzParseDelegate(f *testing.F) {
	f.Add(`scout --model "a b" --label x -- task`)
	f.Add("scout --label=\"x y\" t")
	f.Fuzz(func(t *testing.T, args string) {
		o, err := parseDelegate(args)
		if err == nil && !strings.HasSuffix(args, o.Task) {
			t.Fatalf("the task %q is not the end of %q", o.Task, args)
		}
	})
}
