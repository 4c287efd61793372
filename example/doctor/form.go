package main

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
)

// A form is the schema of an elicitation: a flat object (MCP 2026-07-28, client,
// elicitation).
type form struct {
	Properties map[string]field `json:"properties"`
	Required   []string         `json:"required"`
}

// A field is one property of a form.
type field struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Default     any      `json:"default"`
	Enum        []any    `json:"enum"`
	OneOf       []choice `json:"oneOf"`
	Items       *choices `json:"items"`
	MinItems    int      `json:"minItems"`
	Format      string   `json:"format"`
	MinLength   int      `json:"minLength"`
	Minimum     *float64 `json:"minimum"`
	Maximum     *float64 `json:"maximum"`
}

type choice struct {
	Const any `json:"const"`
}

// choices are what a list may hold.
type choices struct {
	Enum  []any    `json:"enum"`
	AnyOf []choice `json:"anyOf"`
}

// maxFilled bounds the length of a text or list that a server's schema asks for.
const maxFilled = 1000

// readForm reads a schema as the SDK hands it out.
func readForm(schema any) (*form, error) {
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	f := new(form)
	return f, json.Unmarshal(raw, f)
}

// names are the properties in a fixed order: the required ones first.
func (f *form) names() []string {
	names := slices.Sorted(maps.Keys(f.Properties))
	slices.SortStableFunc(names, func(a, b string) int { return f.rank(a) - f.rank(b) })
	return names
}

func (f *form) rank(name string) int {
	if f.required(name) {
		return 0
	}
	return 1
}

func (f *form) required(name string) bool { return slices.Contains(f.Required, name) }

// filled is the form with the default of each field that has one, and a zero value
// in the others.
func (f *form) filled() map[string]any {
	content := map[string]any{}
	for name, field := range f.Properties {
		if content[name] = field.Default; field.Default == nil {
			content[name] = field.zero()
		}
	}
	return content
}

// zero is the plainest value that the field takes: the first of a choice, the
// number nearest to 0, false, a text of its format.
func (f *field) zero() any {
	if of := f.options(); f.Type != "array" && len(of) > 0 {
		return of[0]
	}
	switch f.Type {
	case "boolean":
		return false
	case "number":
		return f.nearest(0)
	case "integer":
		return f.nearestInteger()
	case "array":
		of := f.options()
		return append([]any{}, of[:min(max(f.MinItems, 0), len(of))]...)
	}
	return f.text()
}

// options are the values that a choice offers.
func (f *field) options() []any {
	of, also := f.Enum, f.OneOf
	if f.Type == "array" && f.Items != nil {
		of, also = f.Items.Enum, f.Items.AnyOf
	}
	for _, c := range also {
		of = append(of[:len(of):len(of)], c.Const)
	}
	return of
}

func (f *field) nearest(n float64) float64 {
	if f.Maximum != nil {
		n = min(n, *f.Maximum)
	}
	if f.Minimum != nil {
		n = max(n, *f.Minimum)
	}
	return n
}

// nearestInteger rounds away from 0, which is to the inside of the bounds.
func (f *field) nearestInteger() float64 {
	n := f.nearest(0)
	if n < 0 {
		return math.Floor(n)
	}
	return math.Ceil(n)
}

// formats are texts of the formats that the specification names.
var formats = map[string]string{
	"email":     "doctor@example.com",
	"uri":       "https://example.com/",
	"date":      "2000-01-01",
	"date-time": "2000-01-01T00:00:00Z",
}

func (f *field) text() string {
	text := formats[f.Format]
	if short := min(f.MinLength, maxFilled) - len(text); short > 0 && f.Format == "" {
		text += strings.Repeat("x", short)
	}
	return text
}
