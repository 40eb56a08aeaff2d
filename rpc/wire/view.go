package wire

// View is what a row of the transcript looks like, laid out by the helper and painted by the host. Every text in it is safe:
// no control characters. Lines know nothing of a width; the host cuts or wraps each to what it has.
type View struct {
	Tone      string  `json:"tone"` // pending, success, error: the row's background
	Collapsed []Block `json:"collapsed"`
	Expanded  []Block `json:"expanded"`
}

// Block is a line of spans, or a piece of Markdown. Exactly one of the two is set.
type Block struct {
	Line     []Span `json:"line,omitempty"`
	Markdown string `json:"markdown,omitempty"`
	Wrap     bool   `json:"wrap,omitempty"` // wrap the line; otherwise it is cut with an ellipsis
}

// Span is a run of text in one style.
type Span struct {
	Text  string `json:"text"`
	Style string `json:"style,omitempty"` // a foreground token of pi's theme: text, muted, dim, accent, success, error, warning, toolTitle, toolOutput
	Bold  bool   `json:"bold,omitempty"`
}
