package cli

import "strconv"

// toggle is one of a pair of flags, --x and --no-x, that set the same three-state value; the last one given wins.
type toggle struct {
	value **bool
	on    bool
}

func (t *toggle) String() string { return "" }
func (t *toggle) Type() string   { return "bool" }

func (t *toggle) Set(s string) error {
	given, err := strconv.ParseBool(s)
	if err != nil {
		return err
	}
	state := given == t.on
	*t.value = &state
	return nil
}
