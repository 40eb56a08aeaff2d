package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pi-cradle/internal/bug"
)

const lineWidth = 120 // biome.json's

func (g *generator) catalog(name, typ, doc string, values any) {
	data, err := json.Marshal(values)
	if err != nil {
		bug.Reportf("catalog %s: %v", name, err)
		return
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		bug.Reportf("catalog %s: %v", name, err)
		return
	}
	g.out.WriteString("\n")
	g.doc("", doc)
	fmt.Fprintf(&g.out, "export const %s: readonly %s[] = %s;\n", name, typ, literal(tree, 0))
}

// literal writes a JSON value as the formatter would: objects over several lines, arrays of words on one line, a long string
// below its key.
func literal(value any, depth int) string {
	indent := strings.Repeat("\t", depth)
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			return "{}"
		}
		var b strings.Builder
		b.WriteString("{\n")
		for _, key := range slices.Sorted(maps.Keys(v)) {
			b.WriteString(property(key, v[key], depth+1))
		}
		return b.String() + indent + "}"
	case []any:
		if len(v) == 0 {
			return "[]"
		}
		items := make([]string, len(v))
		flat := true
		for i, item := range v {
			items[i] = literal(item, depth+1)
			flat = flat && !strings.Contains(items[i], "\n")
		}
		if line := "[" + strings.Join(items, ", ") + "]"; flat && len(line) < lineWidth/2 {
			return line
		}
		return "[\n" + indent + "\t" + strings.Join(items, ",\n"+indent+"\t") + ",\n" + indent + "]"
	default:
		return plain(v)
	}
}

func property(key string, value any, depth int) string {
	indent := strings.Repeat("\t", depth)
	if !identifier(key) {
		key = plain(key)
	}
	text := literal(value, depth)
	if _, isString := value.(string); isString && len(key)+len(text)+3+2*depth > lineWidth {
		return indent + key + ":\n" + indent + "\t" + text + ",\n"
	}
	return indent + key + ": " + text + ",\n"
}

func plain(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		bug.Reportf("%v is no JSON value: %v", value, err)
	}
	return strings.TrimSpace(b.String())
}
