package trust

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pi-cradle/internal/usererr"
)

var (
	outside   = Place{Dir: "/notes"}
	main      = Place{Dir: "/repo", MainRoot: "/repo", CommonDir: "/repo/.git", CheckoutRoot: "/repo"}
	below     = Place{Dir: "/repo/sub", MainRoot: "/repo", CommonDir: "/repo/.git", CheckoutRoot: "/repo"}
	linked    = Place{Dir: "/wt/one", MainRoot: "/repo", CommonDir: "/repo/.git", CheckoutRoot: "/wt/one"}
	deep      = Place{Dir: "/wt/one/sub", MainRoot: "/repo", CommonDir: "/repo/.git", CheckoutRoot: "/wt/one"}
	separate  = Place{Dir: "/sep", MainRoot: "/sep", CommonDir: "/gitdirs/sep", CheckoutRoot: "/sep"}
	other     = Place{Dir: "/other", MainRoot: "/other", CommonDir: "/other/.git", CheckoutRoot: "/other"}
	submodule = Place{Dir: "/repo/mod", MainRoot: "/repo/mod", CommonDir: "/repo/.git/modules/mod", CheckoutRoot: "/repo/mod"}
	ofBare    = Place{Dir: "/wt/bare"} // git can't name the main checkout
)

func TestKey(t *testing.T) {
	for _, c := range []struct {
		place Place
		want  string
	}{
		{outside, "/notes"}, {main, "/repo"}, {below, "/repo/sub"}, {linked, "/repo"}, {deep, "/repo"}, {separate, "/sep"},
		{submodule, "/repo/mod"}, {ofBare, "/wt/bare"},
		{Place{Dir: "/half", MainRoot: "/repo"}, "/half"},
	} {
		if got := c.place.Key(); got != c.want {
			t.Errorf("%+v has key %s, not %s", c.place, got, c.want)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		own, target Place
		want        bool
	}{
		{main, main, true}, {main, below, true}, {main, linked, true}, {deep, below, true},
		{main, other, false}, {main, outside, false}, {main, submodule, false}, {separate, main, false},
		{outside, outside, true}, {outside, Place{Dir: "/notes/sub"}, false}, {outside, Place{Dir: "/"}, false},
		{ofBare, ofBare, true}, {ofBare, Place{Dir: "/wt/bare2"}, false}, {ofBare, outside, false},
	} {
		if got := c.own.Covers(c.target); got != c.want {
			t.Errorf("%s covers %s: %v", c.own.Dir, c.target.Dir, got)
		}
	}
}

func TestDecide(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		facts            Facts
		approve, decided bool
	}{
		{Facts{&yes, true}, true, true}, {Facts{&yes, false}, true, true},
		{Facts{&no, true}, false, true}, {Facts{&no, false}, false, true},
		{Facts{nil, false}, false, true},
		{Facts{nil, true}, false, false},
	} {
		if approve, decided := c.facts.Decide(); approve != c.approve || decided != c.decided {
			t.Errorf("%+v: %v, %v", c.facts, approve, decided)
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		answer  Answer
		key     string
		approve bool
		saves   string
	}{
		{Approve, "/a/b", true, `[{"Path":"/a/b","Decision":true}]`},
		{ApproveParent, "/a/b", true, `[{"Path":"/a","Decision":true},{"Path":"/a/b","Decision":null}]`},
		{ApproveParent, "/", true, `null`},
		{ApproveOnce, "/a/b", true, `null`},
		{Deny, "/a/b", false, `[{"Path":"/a/b","Decision":false}]`},
		{DenyOnce, "/a/b", false, `null`},
		{"", "/a/b", false, `null`},
		{"yes", "/a/b", false, `null`},
	} {
		saves, err := json.Marshal(Updates(c.answer, c.key))
		if err != nil {
			t.Fatal(err)
		}
		if string(saves) != c.saves || c.answer.Approves() != c.approve {
			t.Errorf("%q for %s: %v, saves %s", c.answer, c.key, c.answer.Approves(), saves)
		}
	}
}

func labels(q Question) []string {
	var out []string
	for _, o := range q.Options() {
		out = append(out, o.Label)
	}
	return out
}

func TestOptions(t *testing.T) {
	q := Question{Session: "s", Agent: "scout", Dir: "/a/b", Key: "/a/b"}
	want := []string{"Trust", "Trust parent folder (/a)", "Trust (this session only)", "Do not trust", "Do not trust (this session only)"}
	if got := labels(q); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, o := range q.Options() {
		if q.Answered(o.Label) != o.Answer || !q.Offers(o.Answer) {
			t.Errorf("%q is not found again", o.Label)
		}
	}
	if a := q.Answered("trust"); a != "" || q.Offers("") {
		t.Errorf("an unknown label counts as %q", a)
	}
	root := Question{Session: "s", Agent: "scout", Dir: "/", Key: "/"}
	if got := labels(root); len(got) != 4 || root.Offers(ApproveParent) || strings.Contains(root.Text(), "parent") {
		t.Errorf("at the root: %q", got)
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		q    Question
		want string
	}{
		{Question{Session: "s1", Agent: "scout", Dir: "/a/b", Key: "/a/b"}, `Trust the project folder /a/b?
Agent scout is to work there for this session (session s1).
With trust, its pi loads the project's settings and runs its extensions.

Trust: saved for /a/b
Trust parent folder: saved for /a and all in it; a decision saved for /a/b is cleared
Do not trust: saved for /a/b; the agent starts without them
This session only: for this launch alone, nothing is saved
Escape starts nothing`},
		{Question{Session: "s2", Chain: []string{"lead", "sub"}, Agent: "scout", Dir: "/wt/x\nTrust: saved", Key: "/re\x1b[31mpo"}, `Trust the project folder /wt/x Trust: saved?
Main repository: /repo
Agent scout is to work there for lead → sub (session s2).
With trust, its pi loads the project's settings and runs its extensions.

Trust: saved for /repo
Trust parent folder: saved for / and all in it; a decision saved for /repo is cleared
Do not trust: saved for /repo; the agent starts without them
This session only: for this launch alone, nothing is saved
Escape starts nothing`},
	} {
		if got := c.q.Text(); got != c.want {
			t.Errorf("%s", got)
		}
	}
}

func TestValid(t *testing.T) {
	good := Question{Session: "s", Agent: "a", Dir: "/d", Key: "/k"}
	if err := good.Valid(); err != nil {
		t.Error(err)
	}
	for _, spoil := range []func(*Question){
		func(q *Question) { q.Dir = "" }, func(q *Question) { q.Dir = "d" }, func(q *Question) { q.Key = "/k/../x" },
		func(q *Question) { q.Session = "" }, func(q *Question) { q.Agent = "" },
	} {
		q := good
		spoil(&q)
		if q.Valid() == nil {
			t.Errorf("%+v may be asked", q)
		}
	}
}

func TestRefusal(t *testing.T) {
	q := Question{Session: "s", Agent: "a", Dir: "/wt/one", Key: "/repo"}
	got := usererr.Text(q.Unasked("there is nobody here to ask").Hint("%s", q.Elsewhere()), "hint: ")
	want := `whether to trust the project folder "/wt/one" is not decided, and there is nobody here to ask
hint: open pi in "/repo", answer its trust question (or type /trust), then delegate again`
	if got != want {
		t.Errorf("%s", got)
	}
}
