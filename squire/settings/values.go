package settings

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"pi-cradle/squire/toolset"
)

// Each of these reads one kind of value. A value that can't be used leaves the target as it is.

// maxSafe is the largest integer that every JSON reader keeps exactly.
const maxSafe = 1<<53 - 1

func integer(raw json.RawMessage, least int, to *int) error {
	var n *float64
	if err := json.Unmarshal(raw, &n); err != nil || n == nil || *n != math.Trunc(*n) || *n < float64(least) || *n > maxSafe {
		return fmt.Errorf("it is %s, not a whole number of at least %d", short(raw), least)
	}
	*to = int(*n)
	return nil
}

func word(raw json.RawMessage, to *string, allowed ...string) error {
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil || !slices.Contains(allowed, *s) {
		return fmt.Errorf(`it is %s, and can be "%s"`, short(raw), strings.Join(allowed, `" or "`))
	}
	*to = *s
	return nil
}

var (
	suffixRule = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)
	// A suffix like these can't be told from the number of a second session of the same name.
	numbered = regexp.MustCompile(`^(.*-)?[0-9]+$`)
)

func suffix(raw json.RawMessage, to *string) error {
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil || !suffixRule.MatchString(*s) || strings.Trim(*s, "-") != *s {
		return fmt.Errorf("it is %s, not 1 to 32 letters, digits, _ or - without a - at either end", short(raw))
	}
	if numbered.MatchString(*s) {
		return fmt.Errorf("it is %s, which looks like the number of a second session", short(raw))
	}
	*to = *s
	return nil
}

func template(raw json.RawMessage, to *string) error {
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil || strings.TrimSpace(*s) == "" {
		return fmt.Errorf("it is %s, not a path", short(raw))
	}
	*to = *s
	return nil
}

func templates(raw json.RawMessage, to *map[string]string) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil || values == nil {
		return fmt.Errorf("it is %s, not an object of paths", short(raw))
	}
	read := map[string]string{}
	for repo, value := range values {
		var path string
		if err := template(value, &path); err != nil {
			return fmt.Errorf("%q: %w", repo, err)
		}
		read[repo] = path
	}
	*to = read
	return nil
}

func texts(raw json.RawMessage) ([]string, error) {
	var list []*string
	if err := json.Unmarshal(raw, &list); err != nil || list == nil || slices.Contains(list, nil) {
		return nil, fmt.Errorf("it is %s, not a list of names", short(raw))
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = *s
	}
	return out, nil
}

func argv(raw json.RawMessage, to *[]string) error {
	words, err := texts(raw)
	if err != nil || len(words) == 0 || strings.TrimSpace(words[0]) == "" || strings.ContainsRune(strings.Join(words, ""), 0) {
		return fmt.Errorf(`it is %s, not a list of a program and its arguments, such as ["npm", "ci"]`, short(raw))
	}
	*to = words
	return nil
}

func tools(raw json.RawMessage, to *[]string) error {
	names, err := texts(raw)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := toolset.CheckName(name); err != nil {
			return err
		}
	}
	*to = names
	return nil
}

func toolBundles(raw json.RawMessage, to *toolset.Bundles) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil || values == nil {
		return fmt.Errorf("it is %s, not an object of lists", short(raw))
	}
	lists := map[string][]string{}
	for name, value := range values {
		entries, err := texts(value)
		if err != nil {
			return fmt.Errorf("bundle %q: %w", name, err)
		}
		if err := toolset.CheckBundle(name, entries); err != nil {
			return err
		}
		lists[name] = entries
	}
	to.Lists = lists
	return nil
}

func widgetPlacement(raw json.RawMessage, below *bool) error {
	var place string
	err := word(raw, &place, "above", "below")
	*below = place == "below"
	return err
}

var variable = regexp.MustCompile(`^[A-Za-z_*][A-Za-z0-9_*]*$`)

func variables(raw json.RawMessage, to *[]string) error {
	names, err := texts(raw)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !variable.MatchString(name) {
			return fmt.Errorf("entry %q is no name or pattern of an environment variable", name)
		}
	}
	*to = names
	return nil
}

// short is a value as it is written, for a message.
func short(raw json.RawMessage) string {
	const limit = 80
	text := strings.Join(strings.Fields(string(raw)), " ")
	if len(text) > limit {
		return strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}
