package jsjson

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// MaxDepth is how many arrays and objects may lie inside one another.
const MaxDepth = 1000

// SyntaxError says why a text is not JSON. Offset is in bytes, Line and Column count from 1.
type SyntaxError struct {
	Reason               string
	Offset, Line, Column int
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s at line %d, column %d", e.Reason, e.Line, e.Column)
}

// Decode reads one strict JSON text. A byte order mark, a comment, a trailing comma, invalid UTF-8 and nesting beyond MaxDepth
// are *SyntaxErrors. Of a repeated key the last value wins, at the first place.
func Decode(data []byte) (any, error) {
	d := decoder{data: data}
	d.space()
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	d.space()
	if d.pos < len(data) {
		return nil, d.unexpected()
	}
	return v, nil
}

type decoder struct {
	data []byte
	pos  int
}

func (d *decoder) fail(format string, args ...any) error {
	e := &SyntaxError{Reason: fmt.Sprintf(format, args...), Offset: d.pos, Line: 1, Column: 1}
	for _, c := range d.data[:d.pos] {
		e.Column++
		if c == '\n' {
			e.Line, e.Column = e.Line+1, 1
		}
	}
	return e
}

func (d *decoder) unexpected() error {
	if d.pos >= len(d.data) {
		return d.fail("unexpected end")
	}
	r, n := utf8.DecodeRune(d.data[d.pos:])
	switch {
	case r == utf8.RuneError && n <= 1:
		return d.fail("invalid UTF-8")
	case r == 0xFEFF:
		return d.fail("unexpected byte order mark")
	}
	return d.fail("unexpected %q", r)
}

func (d *decoder) peek() byte {
	if d.pos < len(d.data) {
		return d.data[d.pos]
	}
	return 0
}

func (d *decoder) space() {
	for d.pos < len(d.data) {
		switch d.data[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

func (d *decoder) value(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, d.fail("nesting deeper than %d levels", MaxDepth)
	}
	switch c := d.peek(); {
	case c == '{':
		return d.object(depth)
	case c == '[':
		return d.array(depth)
	case c == '"':
		return d.str()
	case c == '-' || c >= '0' && c <= '9':
		return d.number()
	case c == 't':
		return true, d.word("true")
	case c == 'f':
		return false, d.word("false")
	case c == 'n':
		return nil, d.word("null")
	}
	return nil, d.unexpected()
}

func (d *decoder) word(w string) error {
	for i := range len(w) {
		if d.peek() != w[i] {
			return d.unexpected()
		}
		d.pos++
	}
	return nil
}

func (d *decoder) array(depth int) (any, error) {
	items := []any{}
	err := d.sequence(']', func() error {
		v, err := d.value(depth + 1)
		items = append(items, v)
		return err
	})
	return items, err
}

func (d *decoder) object(depth int) (any, error) {
	o := NewObject()
	err := d.sequence('}', func() error {
		if d.peek() != '"' {
			return d.unexpected()
		}
		key, err := d.str()
		if err != nil {
			return err
		}
		d.space()
		if d.peek() != ':' {
			return d.unexpected()
		}
		d.pos++
		d.space()
		v, err := d.value(depth + 1)
		if err == nil {
			o.Set(key, v)
		}
		return err
	})
	return o, err
}

// sequence reads what stands between the brackets, calling element at the start of each element.
func (d *decoder) sequence(end byte, element func() error) error {
	d.pos++
	d.space()
	if d.peek() == end {
		d.pos++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		d.space()
		switch d.peek() {
		case ',':
			d.pos++
			d.space()
		case end:
			d.pos++
			return nil
		default:
			return d.unexpected()
		}
	}
}

func (d *decoder) digits() bool {
	start := d.pos
	for c := d.peek(); c >= '0' && c <= '9'; c = d.peek() {
		d.pos++
	}
	return d.pos > start
}

func (d *decoder) number() (any, error) {
	start := d.pos
	if d.peek() == '-' {
		d.pos++
	}
	if d.peek() == '0' {
		d.pos++
	} else if !d.digits() {
		return nil, d.unexpected()
	}
	if d.peek() == '.' {
		d.pos++
		if !d.digits() {
			return nil, d.unexpected()
		}
	}
	if c := d.peek(); c == 'e' || c == 'E' {
		d.pos++
		if c := d.peek(); c == '+' || c == '-' {
			d.pos++
		}
		if !d.digits() {
			return nil, d.unexpected()
		}
	}
	// The only error left is a number too large for a double, for which ParseFloat gives the infinity that JavaScript has.
	f, _ := strconv.ParseFloat(string(d.data[start:d.pos]), 64)
	return f, nil
}

func (d *decoder) str() (string, error) {
	d.pos++
	start := d.pos
	for d.pos < len(d.data) { // the common string needs no copy but the last
		c := d.data[d.pos]
		if c == '"' {
			s := string(d.data[start:d.pos])
			d.pos++
			return s, nil
		}
		if c < 0x20 || c == '\\' || c >= utf8.RuneSelf {
			break
		}
		d.pos++
	}
	return d.escaped(append([]byte(nil), d.data[start:d.pos]...))
}

func (d *decoder) escaped(out []byte) (string, error) {
	for d.pos < len(d.data) {
		c := d.data[d.pos]
		switch {
		case c == '"':
			d.pos++
			return string(out), nil
		case c < 0x20:
			return "", d.unexpected()
		case c == '\\':
			d.pos++
			var err error
			if out, err = d.escape(out); err != nil {
				return "", err
			}
		default:
			r, n := utf8.DecodeRune(d.data[d.pos:])
			if r == utf8.RuneError && n == 1 {
				return "", d.unexpected()
			}
			out = append(out, d.data[d.pos:d.pos+n]...)
			d.pos += n
		}
	}
	return "", d.unexpected()
}

func (d *decoder) escape(out []byte) ([]byte, error) {
	c := d.peek()
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		d.pos++
		unit, err := d.hex()
		if err != nil {
			return nil, err
		}
		return d.surrogates(out, unit)
	default:
		return nil, d.unexpected()
	}
	d.pos++
	return append(out, c), nil
}

func (d *decoder) hex() (rune, error) {
	var unit rune
	for range 4 {
		c := d.peek()
		switch {
		case c >= '0' && c <= '9':
			unit = unit<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			unit = unit<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			unit = unit<<4 | rune(c-'A'+10)
		default:
			return 0, d.unexpected()
		}
		d.pos++
	}
	return unit, nil
}

// surrogates appends the character of one escaped UTF-16 unit, joining a high surrogate with the low one escaped right after it.
func (d *decoder) surrogates(out []byte, unit rune) ([]byte, error) {
	for isHigh(unit) && d.pos+1 < len(d.data) && d.data[d.pos] == '\\' && d.data[d.pos+1] == 'u' {
		d.pos += 2
		low, err := d.hex()
		if err != nil {
			return nil, err
		}
		if low >= 0xDC00 && low <= 0xDFFF {
			return utf8.AppendRune(out, 0x10000+(unit-0xD800)<<10+(low-0xDC00)), nil
		}
		out, unit = appendUnit(out, unit), low
	}
	return appendUnit(out, unit), nil
}

func isHigh(unit rune) bool { return unit >= 0xD800 && unit <= 0xDBFF }

func appendUnit(out []byte, unit rune) []byte {
	if unit >= 0xD800 && unit <= 0xDFFF {
		return append(out, 0xED, 0x80|byte(unit>>6&0x3F), 0x80|byte(unit&0x3F))
	}
	return utf8.AppendRune(out, unit)
}
