package rpc

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// filled returns v with every nil slice and map in it made empty, so that it is sent as [] or {} and never as null: the other
// side is promised that fields are present. v itself, and what it shares with others, stays as it is. Fields that are omitted
// when empty, and types that encode themselves, are left alone.
func filled(v any) any {
	if v == nil || !fillable(reflect.TypeOf(v)) {
		return v
	}
	out := reflect.New(reflect.TypeOf(v)).Elem()
	out.Set(reflect.ValueOf(v))
	fill(out)
	return out.Interface()
}

var fillableTypes sync.Map // reflect.Type to bool

// fillable reports whether a value of this type can hold a nil slice or map that would show.
func fillable(t reflect.Type) bool {
	if known, ok := fillableTypes.Load(t); ok {
		return known.(bool)
	}
	result := false
	switch {
	case t.Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()):
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8: // encoded as a string
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Map:
		result = true
	case t.Kind() == reflect.Pointer:
		fillableTypes.Store(t, true) // what a type that contains itself finds on its way round
		result = fillable(t.Elem())
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			result = result || t.Field(i).IsExported() && fillable(t.Field(i).Type)
		}
	}
	fillableTypes.Store(t, result)
	return result
}

// fill works on a settable value and copies whatever it must change behind a pointer, slice or map.
func fill(v reflect.Value) {
	t := v.Type()
	if !fillable(t) {
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			_, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			omitted := strings.Contains(options, "omitempty") && v.Field(i).IsZero()
			if field.IsExported() && !omitted {
				fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			out := reflect.New(t.Elem())
			out.Elem().Set(v.Elem())
			fill(out.Elem())
			v.Set(out)
		}
	case reflect.Slice:
		if v.IsNil() || fillable(t.Elem()) {
			out := reflect.MakeSlice(t, v.Len(), v.Len())
			reflect.Copy(out, v)
			for i := range out.Len() {
				fill(out.Index(i))
			}
			v.Set(out)
		}
	case reflect.Map:
		if v.IsNil() || fillable(t.Elem()) {
			out := reflect.MakeMapWithSize(t, v.Len())
			for _, key := range v.MapKeys() {
				element := reflect.New(t.Elem()).Elem()
				element.Set(v.MapIndex(key))
				fill(element)
				out.SetMapIndex(key, element)
			}
			v.Set(out)
		}
	}
}
