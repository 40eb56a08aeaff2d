package jsjson

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Compact is JSON.stringify(v). Besides decoded values it takes string slices, ints and bools.
func Compact(v any) string { return stringify(v, 0) }

// Indent is JSON.stringify(v, null, 2): no final newline, empty objects and arrays on one line.
func Indent(v any) string { return stringify(v, 2) }

func stringify(v any, indent int) string {
	var w writer
	w.indent = indent
	w.value(v, 0)
	return w.String()
}

type writer struct {
	strings.Builder
	indent int
}

func (w *writer) value(v any, depth int) {
	switch v := v.(type) {
	case nil:
		w.WriteString("null")
	case bool:
		w.WriteString(strconv.FormatBool(v))
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			w.WriteString("null")
			return
		}
		w.WriteString(Number(v))
	case int:
		w.WriteString(strconv.Itoa(v))
	case string:
		w.quote(v)
	case []any:
		list(w, v, depth)
	case []string:
		list(w, v, depth)
	case []int:
		list(w, v, depth)
	case *Object:
		w.object(v, depth)
	default:
		panic(fmt.Sprintf("jsjson: a %T is no JSON value", v))
	}
}

func list[T any](w *writer, items []T, depth int) {
	w.WriteByte('[')
	for i, item := range items {
		w.next(i, depth+1)
		w.value(item, depth+1)
	}
	w.end(len(items), depth, ']')
}

func (w *writer) object(o *Object, depth int) {
	w.WriteByte('{')
	for i, key := range o.Keys() {
		w.next(i, depth+1)
		w.quote(key)
		w.WriteByte(':')
		if w.indent > 0 {
			w.WriteByte(' ')
		}
		w.value(o.values[key], depth+1)
	}
	w.end(o.Len(), depth, '}')
}

// next begins the i-th element of a list or object.
func (w *writer) next(i, depth int) {
	if i > 0 {
		w.WriteByte(',')
	}
	w.line(depth)
}

func (w *writer) end(n, depth int, bracket byte) {
	if n > 0 {
		w.line(depth)
	}
	w.WriteByte(bracket)
}

func (w *writer) line(depth int) {
	if w.indent == 0 {
		return
	}
	w.WriteByte('\n')
	for range depth * w.indent {
		w.WriteByte(' ')
	}
}

// quote escapes what JavaScript escapes and nothing else: <, >, & and U+2028 stay as they are.
func (w *writer) quote(s string) {
	w.WriteByte('"')
	for len(s) > 0 {
		if unit, ok := loneSurrogate(s); ok {
			fmt.Fprintf(w, `\u%04x`, unit)
			s = s[3:]
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '"' || r == '\\':
			w.WriteByte('\\')
			w.WriteRune(r)
		case r == '\b':
			w.WriteString(`\b`)
		case r == '\f':
			w.WriteString(`\f`)
		case r == '\n':
			w.WriteString(`\n`)
		case r == '\r':
			w.WriteString(`\r`)
		case r == '\t':
			w.WriteString(`\t`)
		case r < 0x20:
			fmt.Fprintf(w, `\u%04x`, r)
		default:
			w.WriteRune(r)
		}
		s = s[n:]
	}
	w.WriteByte('"')
}

// Number prints a double as JavaScript does.
func Number(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f == 0:
		return "0"
	}
	abs := math.Abs(f)
	if abs >= 1e-6 && abs < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	// Go pads the exponent to two digits, JavaScript does not.
	mantissa, exp, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	return mantissa + "e" + exp[:1] + strings.TrimLeft(exp[1:], "0")
}

// Text is how a value looks inside a message: strings as they are, everything else as JSON.
func Text(v any) string {
	if s, ok := v.(string); ok {
		return Valid(s)
	}
	return Compact(v)
}
