// Package jsjson reads and writes JSON the way JavaScript does: objects keep their key order, numbers are doubles, and the
// written bytes are those of JSON.stringify. Files that another JavaScript tool wrote before, or will compare, need that.
//
// A decoded value is nil, bool, float64, string, []any or *Object. A string may hold a lone surrogate, which JSON can escape
// and UTF-8 can't carry: it is kept as the three bytes that UTF-8 would use for it (ed a0 80 to ed bf bf), and Valid turns it
// into U+FFFD for the world outside.
package jsjson

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Object is a JSON object. Setting a key again keeps the position of the first time, as in JavaScript.
type Object struct {
	keys   []string
	values map[string]any
}

// NewObject makes an empty object.
func NewObject() *Object { return &Object{values: map[string]any{}} }

// Len is the number of keys.
func (o *Object) Len() int { return len(o.keys) }

// Get returns the value of key and whether the key is there; a null is there.
func (o *Object) Get(key string) (any, bool) {
	v, ok := o.values[key]
	return v, ok
}

// Has says whether key is there, with any value.
func (o *Object) Has(key string) bool {
	_, ok := o.values[key]
	return ok
}

// Set adds key at the end, or replaces its value in place.
func (o *Object) Set(key string, v any) {
	if !o.Has(key) {
		o.keys = append(o.keys, key)
	}
	o.values[key] = v
}

// SetFirst adds key before all others, or replaces its value in place.
func (o *Object) SetFirst(key string, v any) {
	if !o.Has(key) {
		o.keys = slices.Insert(o.keys, 0, key)
	}
	o.values[key] = v
}

// Keys lists the keys in JavaScript's order: array indices ascending, then the others as they came. The slice is the caller's.
func (o *Object) Keys() []string {
	var indices []uint64
	names := make([]string, 0, len(o.keys))
	for _, k := range o.keys {
		if n, ok := arrayIndex(k); ok {
			indices = append(indices, n)
		} else {
			names = append(names, k)
		}
	}
	if len(indices) == 0 {
		return names
	}
	slices.Sort(indices)
	out := make([]string, 0, len(o.keys))
	for _, n := range indices {
		out = append(out, strconv.FormatUint(n, 10))
	}
	return append(out, names...)
}

// Others lists the keys that are not known, as Valid text, in the order of Keys.
func (o *Object) Others(known ...string) []string {
	var others []string
	for _, k := range o.Keys() {
		if !slices.Contains(known, k) {
			others = append(others, Valid(k))
		}
	}
	return others
}

// arrayIndex tells the keys that JavaScript moves to the front: canonical decimals up to 2^32-2.
func arrayIndex(k string) (uint64, bool) {
	if k == "" || len(k) > 10 || k[0] < '0' || k[0] > '9' || (k[0] == '0' && len(k) > 1) {
		return 0, false
	}
	n, err := strconv.ParseUint(k, 10, 64)
	return n, err == nil && n <= 1<<32-2
}

// Trim is String.prototype.trim: Unicode spaces and U+FEFF go, U+0085 stays.
func Trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool {
		switch r {
		case '\t', '\n', '\v', '\f', '\r', 0xFEFF, 0x2028, 0x2029:
			return true
		}
		return unicode.Is(unicode.Zs, r)
	})
}

// Valid replaces every lone surrogate by U+FFFD, which is what JavaScript hands to the operating system.
func Valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		if _, ok := loneSurrogate(s); ok {
			b.WriteRune(utf8.RuneError)
			s = s[3:]
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		b.WriteRune(r)
		s = s[n:]
	}
	return b.String()
}

// loneSurrogate reads one surrogate at the start of s.
func loneSurrogate(s string) (uint16, bool) {
	if len(s) < 3 || s[0] != 0xED || s[1] < 0xA0 || s[1] > 0xBF || s[2] < 0x80 || s[2] > 0xBF {
		return 0, false
	}
	return 0xD000 | uint16(s[1]&0x3F)<<6 | uint16(s[2]&0x3F), true
}
