package folder

import (
	"strings"

	"pi-cradle/internal/jsjson"
)

// reader takes typed values out of one object of one file, warning about what is not as it should be. A key whose value is null
// is there, with the wrong type.
type reader struct {
	*loader
	path string // what a message begins with
	o    *jsjson.Object
}

func (r reader) noOthers(known ...string) {
	if extra := r.o.Others(known...); extra != nil {
		r.warn("%s: unsupported keys ignored: %s", r.path, strings.Join(extra, ", "))
	}
}

// typed reads a value of one type. One of another type costs a warning that names the wanted kind; then, and when the key is
// absent, ok is false.
func typed[T any](r reader, key, kind string) (value T, ok bool) {
	v, there := r.o.Get(key)
	if !there {
		return value, false
	}
	if value, ok = v.(T); !ok {
		r.warn("%s: %s must be %s — ignored", r.path, key, kind)
	}
	return value, ok
}

func (r reader) object(key string) *jsjson.Object {
	o, _ := typed[*jsjson.Object](r, key, "an object")
	return o
}

func (r reader) boolean(key string) *bool {
	if b, ok := typed[bool](r, key, "true or false"); ok {
		return &b
	}
	return nil
}

func (r reader) text(key string) *string {
	if s, ok := typed[string](r, key, "a string"); ok {
		s = jsjson.Valid(s)
		return &s
	}
	return nil
}

// strings reads a list in which everything is a string, or nothing of it.
func (r reader) strings(key string) []string {
	v, ok := r.o.Get(key)
	if !ok {
		return nil
	}
	list, ok := texts(v)
	if !ok {
		r.warn("%s: %s must be an array of strings — ignored", r.path, key)
	}
	return list
}

func texts(v any) ([]string, bool) {
	items, ok := v.([]any)
	if !ok {
		return nil, false
	}
	list := make([]string, len(items))
	for i, item := range items {
		s, ok := item.(string)
		if !ok {
			return nil, false
		}
		list[i] = jsjson.Valid(s)
	}
	return list, true
}

// accepted reads a list of strings and keeps what accept makes of each. Those it refuses are named together in one warning, with
// the rule that they break.
func (r reader) accepted(key, rule string, accept func(string) (string, bool)) []string {
	var kept, bad []string
	for _, s := range r.strings(key) {
		s, ok := accept(s)
		if ok {
			kept = append(kept, s)
		} else {
			bad = append(bad, s)
		}
	}
	if len(bad) > 0 {
		r.warn("%s: %s entries must be %s — ignored: %s", r.path, key, rule, strings.Join(bad, ", "))
	}
	return kept
}
