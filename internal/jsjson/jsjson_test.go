package jsjson

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestRoundTripIsJavaScripts(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{`{"b":1,"a":2}`, `{"b":1,"a":2}`},
		{`{"b":1,"10":2,"9":3,"01":4,"-1":5,"4294967294":6,"4294967295":7}`, `{"9":3,"10":2,"4294967294":6,"b":1,"01":4,"-1":5,"4294967295":7}`},
		{`{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}`},
		{`{"__proto__":1}`, `{"__proto__":1}`},
		{`"<>&\u2028\u2029é\/"`, "\"<>&\u2028\u2029é/\""},
		{`"\b\f\n\r\t\u0000\u001f\u007f\"\\"`, `"\b\f\n\r\t\u0000\u001f` + "\u007f" + `\"\\"`},
		{`"\ud83d\ude00"`, `"😀"`},
		{`"\ud83d"`, `"\ud83d"`},
		{`"\uDE00x\uD83Dy\uD83D\uD83D\uDE00"`, `"\ude00x\ud83dy\ud83d😀"`},
		{`"\ud83d\u0041"`, `"\ud83dA"`},
		{` [ ] `, `[]`},
		{`{ }`, `{}`},
		{`[1.0,1e3,1e21,-0,123456789012345678901,0.000001,1e-7,1.5e-10,5e-324,1e400,-1e400,100000000000000000000,1.7976931348623157e308,0.1]`,
			`[1,1000,1e+21,0,123456789012345680000,0.000001,1e-7,1.5e-10,5e-324,null,null,100000000000000000000,1.7976931348623157e+308,0.1]`},
	} {
		v, err := Decode([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := Compact(v); got != c.out {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, c.out)
		}
	}
}

func TestIndentLikeStringifyWithTwo(t *testing.T) {
	v, err := Decode([]byte(`{"a":[],"b":{},"c":[1,{"d":null}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    {\n      \"d\": null\n    }\n  ]\n}"
	if got := Indent(v); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestStrictness(t *testing.T) {
	for _, in := range []string{
		"", " ", "{", "[", `"`, `"\`, `"\u12`, `"\x"`, "01", "1.", ".5", "+1", "-", "1e", "0x10", "tru", "nulll", "NaN", "Infinity",
		"[1,]", `{"a":1,}`, "{a:1}", "{'a':1}", "// c\n1", "[1] 2", "\ufeff{}", "\"\x00\"", "\"a\nb\"", "\"\xff\"", "\"\xed\xa0\x80\"", "\u00a01",
	} {
		v, err := Decode([]byte(in))
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%q: got %v, %v; want a SyntaxError", in, v, err)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: the reason spans lines: %v", in, err)
		}
	}
}

func TestSyntaxErrorSaysWhere(t *testing.T) {
	_, err := Decode([]byte("{\n  \"a\": x\n}"))
	var syntax *SyntaxError
	if !errors.As(err, &syntax) || syntax.Line != 2 || syntax.Column != 8 || syntax.Offset != 9 {
		t.Fatalf("%+v", syntax)
	}
}

func TestNestingHasALimit(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if _, err := Decode(nested(MaxDepth)); err != nil {
		t.Error(err)
	}
	if _, err := Decode(nested(5_000_000)); err == nil {
		t.Error("five million levels were read")
	}
}

func TestTrimIsJavaScripts(t *testing.T) {
	if got := Trim("\ufeff\u00a0\u3000\t\u2028 a\u0085 \r\n"); got != "a\u0085" {
		t.Errorf("%q", got)
	}
}

func TestValidReplacesLoneSurrogates(t *testing.T) {
	v, err := Decode([]byte(`"a\ud800\udbffz"`))
	if err != nil {
		t.Fatal(err)
	}
	if got := Valid(v.(string)); got != "a\ufffd\ufffdz" {
		t.Errorf("%q", got)
	}
}

func TestOthers(t *testing.T) {
	v, err := Decode([]byte(`{"known":1,"z\ud800":null,"10":2,"2":3}`))
	if err != nil {
		t.Fatal(err)
	}
	o := v.(*Object)
	if got := o.Others("known", "absent"); !slices.Equal(got, []string{"2", "10", "z\ufffd"}) {
		t.Errorf("%q", got)
	}
	if got := o.Others(o.Keys()...); got != nil {
		t.Errorf("%q", got)
	}
}

func TestSetKeepsTheFirstPlace(t *testing.T) {
	o := NewObject()
	o.Set("id", "x")
	o.Set("7", 1)
	o.SetFirst("cost", 0)
	o.SetFirst("id", "y")
	if got := Compact(o); got != `{"7":1,"cost":0,"id":"y"}` {
		t.Error(got)
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, content string) {
		if err := os.WriteFile(path(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("good", "[1]")
	write("bad", "{")
	write("huge", "\""+strings.Repeat("x", 10<<20)+"\"")
	for _, err := range []error{
		os.Symlink(path("good"), path("link")), os.Symlink(path("none"), path("dangling")), os.Symlink("loop", path("loop")),
		os.Mkdir(path("dir"), 0o700), syscall.Mkfifo(path("pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"good", "link"} {
		if v, err := ReadFile(path(name)); err != nil || !reflect.DeepEqual(v, []any{1.0}) {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
	if _, err := ReadFile(path("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	for name, reason := range map[string]string{
		"bad": "is not valid JSON: ", "huge": "could not be read: larger than 8 MiB", "dangling": "could not be read — broken symlink?",
		"loop": "could not be read: ", "dir": "could not be read: is a directory", "pipe": "could not be read: not a regular file",
		"good/below": "could not be read: ",
	} {
		_, err := ReadFile(path(name))
		var file *FileError
		if !errors.As(err, &file) || errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), path(name)+" "+reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzDecode holds the decoder against Go's own: what we take it takes too, with the same meaning, and what we write we read.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,true,null,"\u00e9\ud800"]}`, `{"2":0,"1":0,"1":1}`, "[[[]]]", `"\ud83d\ude00"`, "\ufeff1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Decode(data)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("%q was read", data)
		}
		for _, text := range []string{Compact(v), Indent(v)} {
			again, err := Decode([]byte(text))
			if err != nil {
				t.Fatalf("%q was written as %q: %v", data, text, err)
			}
			if Compact(again) != Compact(v) {
				t.Fatalf("%q became %q", text, Compact(again))
			}
		}
	})
}

func FuzzNumber(f *testing.F) {
	f.Add(1.5)
	f.Add(1e21)
	f.Add(-1e-7)
	f.Fuzz(func(t *testing.T, x float64) {
		if math.IsNaN(x) || math.IsInf(x, 0) || x == 0 {
			return
		}
		v, err := Decode([]byte(Number(x)))
		if err != nil || v != x {
			t.Fatalf("%v printed as %q reads as %v, %v", x, Number(x), v, err)
		}
	})
}
