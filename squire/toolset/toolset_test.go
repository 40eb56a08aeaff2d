package toolset

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestSelect(t *testing.T) {
	bundles := Bundles{Lists: map[string][]string{"readonly": {"read", "grep"}, "docs": {"mcp__docs__*"}}}
	parent := []string{"read", "bash", "write", "delegate", "delegation_status", "mcp__docs__find", "codemode"}
	for _, c := range []struct {
		name    string
		entries []string // nil: no field
		parent  []string
		extra   []string
		grant   []string
		want    string
	}{
		{"no field", nil, parent, nil, nil, "--tools read,bash,write,mcp__docs__find,codemode"},
		{"no field, no MCP", nil, []string{"read"}, nil, nil, "--tools read,mcp__"},
		{"no field, parent without tools", nil, nil, nil, nil, "--no-tools"},
		{"no field, parent with ours alone", nil, []string{"delegate"}, nil, nil, "--no-tools"},
		{"empty field", []string{}, parent, nil, nil, "--no-tools"},
		{"empty field with delegateTools", []string{}, parent, []string{"mail_*"}, nil, "--tools mail_*,mcp__"},
		{"list", []string{"read", "grep"}, parent, nil, nil, "--tools read,grep,mcp__"},
		{"list with delegateTools", []string{"read"}, parent, []string{"mail", "read"}, nil, "--tools read,mail,mcp__"},
		{"list with an MCP pattern", []string{"read", "mcp__docs__*"}, parent, nil, nil, "--tools read,mcp__docs__*"},
		{"an MCP resource tool is none of the prefix", []string{"read_mcp_resource"}, parent, nil, nil, "--tools read_mcp_resource,mcp__"},
		{"everything", []string{"*"}, parent, nil, nil, "--tools *,mcp__"},
		{"bundles", []string{"$readonly", "read", "x", "$docs"}, parent, nil, nil, "--tools read,grep,x,mcp__docs__*"},
		{"exclusions", []string{"-bash", "-mcp__docs__*"}, parent, nil, nil, "--tools read,write,codemode,mcp__"},
		{"exclusions and delegateTools", []string{"-bash"}, []string{"bash", "read"}, []string{"bash"}, nil, "--tools read,bash,mcp__"},
		{"exclude all", []string{"-*"}, parent, nil, nil, "--no-tools"},
		{"ours are removed", []string{"delegate", "read", "delegation_resume"}, parent, []string{"delegation_close"}, nil, "--tools read,mcp__"},
		{"ours by grant", []string{"read"}, parent, nil, []string{"delegate", "delegation_status"}, "--tools read,delegate,delegation_status,mcp__"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rule := Rule{}
			if c.entries != nil {
				var err error
				if rule, err = Parse(c.entries, bundles); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(Args(rule.Select(c.parent, c.extra, c.grant)), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	bundles := Bundles{Lists: map[string][]string{"readonly": {"read"}}}
	broken := Bundles{Err: errors.New("it is 3")}
	for _, c := range []struct {
		entries []string
		bundles Bundles
		says    string
	}{
		{[]string{"+bash"}, bundles, `"+bash"`},
		{[]string{"read", "-bash"}, bundles, "mixes"},
		{[]string{"-bash", "$readonly"}, bundles, "mixes"},
		{[]string{"-$readonly"}, bundles, `"-$readonly"`},
		{[]string{"$readonyl"}, bundles, `did you mean "readonly"?`},
		{[]string{"$zzz"}, bundles, "does not have"},
		{[]string{"$readonly"}, broken, "it is 3"},
		{[]string{""}, bundles, "names nothing"},
		{[]string{"-"}, bundles, "names nothing"},
	} {
		if rule, err := Parse(c.entries, c.bundles); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %+v, %v", c.entries, rule, err)
		}
	}
	if _, err := Parse([]string{"read"}, broken); err != nil {
		t.Errorf("a list without bundles needs none: %v", err)
	}
}

func TestCheckBundle(t *testing.T) {
	if err := CheckBundle("read-only_1", []string{"read", "mcp__*"}); err != nil {
		t.Error(err)
	}
	for name, entries := range map[string][]string{"a b": {"read"}, "": {"read"}, "a": {"read,grep"}, "b": {"-read"}, "c": {"+read"}, "d": {"$a"}, "e": {""}} {
		if CheckBundle(name, entries) == nil {
			t.Errorf("%q %q was accepted", name, entries)
		}
	}
}

func TestListed(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		want []string
	}{
		{Rule{Only, []string{"read"}}, nil},
		{Rule{Only, []string{"delegate"}}, []string{"delegate"}},
		{Rule{Only, []string{"delegation_*"}}, []string{"delegation_status", "delegation_close", "delegation_resume"}},
		{Rule{Except, []string{"delegate"}}, nil},
		{Rule{}, nil},
	} {
		if got := c.rule.Listed(); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q", c.rule, got)
		}
	}
}

// FuzzMatches holds the matcher to the regular expression that a pattern stands for.
func FuzzMatches(f *testing.F) {
	for _, seed := range [][2]string{{"*", ""}, {"a*b*c", "abbc"}, {"**", "x"}, {"a*", "b"}, {"*a*a", "a"}, {"mcp__*", "mcp__x__y"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, tool string) {
		parts := strings.Split(pattern, "*")
		for i, p := range parts {
			parts[i] = regexp.QuoteMeta(p)
		}
		re, err := regexp.Compile(`(?s)\A` + strings.Join(parts, ".*") + `\z`)
		if err != nil {
			t.Skip() // bytes that are no text
		}
		if got, want := Matches(pattern, tool), re.MatchString(tool); got != want && strings.ToValidUTF8(tool, "") == tool {
			t.Errorf("%q on %q: %v, want %v", pattern, tool, got, want)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("read,-bash,$readonly,+x")
	f.Add("-a,-b")
	f.Fuzz(func(t *testing.T, text string) {
		rule, err := Parse(strings.Split(text, ","), Bundles{Lists: map[string][]string{"readonly": {"read"}}})
		if err != nil {
			return
		}
		for _, name := range rule.Select([]string{"read", "delegate"}, nil, nil) {
			if CheckName(name) != nil && strings.TrimSpace(name) != "" || slices.Contains(Delegation, name) {
				t.Errorf("%q reaches pi as %q", text, name)
			}
		}
	})
}
