package desk

import (
	"bufio"
	"bytes"
	"encoding/json"
	"testing"
)

// armed is a link that reads data as the other side's, from the first sealed frame on.
func armed(t testing.TB, own side, data []byte) *link {
	t.Helper()
	l := &link{in: bufio.NewReaderSize(bytes.NewReader(data), maxFrame)}
	if err := l.arm(own, "root", make([]byte, tokenSize), make([]byte, nonceSize), make([]byte, nonceSize)); err != nil {
		t.Fatal(err)
	}
	return l
}

// Only what the other side has sealed, in its order, comes through.
func FuzzFrames(f *testing.F) {
	root := armed(f, rootSide, nil)
	var genuine []byte
	for _, m := range []message{{Kind: kindHello}, {Kind: kindTurn}, {Kind: kindAnswer, Answer: "approve"}} {
		line, err := root.out.frame(m)
		if err != nil {
			f.Fatal(err)
		}
		genuine = append(genuine, line...)
	}
	f.Add(genuine)
	f.Add(genuine[:len(genuine)/2])
	f.Add(bytes.ToUpper(genuine))
	f.Add(append(bytes.Clone(genuine), genuine...))
	f.Add([]byte("\n \n"))
	f.Add(bytes.Repeat([]byte("0"), maxFrame+1))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := armed(t, requesterSide, data)
		seen := 0
		for {
			m, err := l.receive(kindHello, kindTurn, kindAnswer)
			if err != nil {
				break
			}
			seen++
			want := []string{kindHello, kindTurn, kindAnswer}
			if seen > len(want) || m.Kind != want[seen-1] {
				t.Fatalf("message %d is %+v", seen, m)
			}
		}
		// A seal may be written in either case; the bodies must be there to the letter.
		bodies := bytes.SplitAfter(genuine, []byte("\n"))
		for i := range seen {
			_, body, _ := bytes.Cut(bodies[i], []byte(" "))
			if !bytes.Contains(data, bytes.TrimSuffix(body, []byte("\n"))) {
				t.Fatalf("message %d was never sent", i)
			}
		}
	})
}

func FuzzNonce(f *testing.F) {
	f.Add([]byte(`{"nonce":"00"}`))
	f.Add([]byte(`{"nonce":"0000000000000000000000000000000000000000000000000000000000000000"}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if n, err := parseNonce(data); err == nil && len(n) != nonceSize {
			t.Errorf("a nonce of %d bytes", len(n))
		}
	})
}

func FuzzDescriptor(f *testing.F) {
	good, err := json.Marshal(descriptor{descriptorVersion, 4711, "0000000000000000000000000000000000000000000000000000000000000000"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"version":1,"port":-1}`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, token, err := parseDescriptor(data)
		if err == nil && (len(token) != tokenSize || d.Port < 1 || d.Port > 65535 || d.Version != descriptorVersion) {
			t.Errorf("%+v", d)
		}
	})
}

// Nothing that one side has sealed can be sent back to it, even when both chose the same nonce.
func TestNoReflection(t *testing.T) {
	line, err := armed(t, requesterSide, nil).out.frame(message{Kind: kindHello})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := armed(t, requesterSide, line).receive(kindHello); err == nil {
		t.Errorf("taken for the root's: %+v", m)
	}
	if _, err := armed(t, rootSide, line).receive(kindHello); err != nil {
		t.Errorf("the root can't read it: %v", err)
	}
}
