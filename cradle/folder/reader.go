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

func (r reader) object(key string) *jsjson.Object {
	v, ok := r.o.Get(key)
	if !ok {
		return nil
	}
	o, ok := v.(*jsjson.Object)
	if !ok {
		r.warn("%s: %s must be an object — ignored", r.path, key)
	}
	return o
}

func (r reader) boolean(key string) *bool {
	v, ok := r.o.Get(key)
	if !ok {
		return nil
	}
	if b, ok := v.(bool); ok {
		return &b
	}
	r.warn("%s: %s must be true or false — ignored", r.path, key)
	return nil
}

func (r reader) text(key string) *string {
	v, ok := r.o.Get(key)
	if !ok {
		return nil
	}
	if s, ok := v.(string); ok {
		s = jsjson.Valid(s)
		return &s
	}
	r.warn("%s: %s must be a string — ignored", r.path, key)
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
