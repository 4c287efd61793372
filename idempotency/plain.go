package idempotency

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxPlainDepth keeps plainForm from walking into a value that holds itself.
	maxPlainDepth = 32
	// maxPlainInt bounds the numbers whose canonical form is their digits.
	maxPlainInt = 1 << 50
)

// A plainForm is the canonical form of a value that is made of maps, slices, short
// numbers and plain ASCII strings, as the arguments of most calls are. It is the form
// that [canonical] gives the value's JSON, at a tenth of the cost. Its methods append
// to it, and report false for anything else.
type plainForm struct{ text []byte }

func (p *plainForm) value(v any, depth int) bool {
	switch v := v.(type) {
	case nil:
		p.text = append(p.text, "null"...)
		return true
	case bool:
		p.text = strconv.AppendBool(p.text, v)
		return true
	case string:
		return p.string(v)
	case int:
		return p.int(int64(v))
	case int64:
		return p.int(v)
	case float64:
		return p.float(v)
	case map[string]any:
		return p.object(v, depth)
	case []any:
		return p.array(v, depth)
	}
	return false
}

func (p *plainForm) int(n int64) bool {
	p.text = strconv.AppendInt(p.text, n, 10)
	return n <= maxPlainInt && n >= -maxPlainInt
}

// float appends a number that ECMAScript, and with it RFC 8785, writes without an
// exponent.
func (p *plainForm) float(f float64) bool {
	abs := math.Abs(f)
	switch {
	case abs <= maxPlainInt && f == math.Trunc(f):
		return p.int(int64(f)) // -0 is 0 there
	case !(abs >= 1e-6 && abs < maxPlainInt):
		return false
	}
	p.text = strconv.AppendFloat(p.text, f, 'f', -1, 64)
	return true
}

// string appends a string that needs no escape.
func (p *plainForm) string(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			return false
		}
	}
	p.text = append(append(append(p.text, '"'), s...), '"')
	return true
}

func (p *plainForm) object(o map[string]any, depth int) bool {
	if o == nil || depth > maxPlainDepth {
		return false
	}
	members := make([]member, 0, 8)
	for name, value := range o {
		members = append(members, member{name, value})
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	p.text = append(p.text, '{')
	for i, m := range members {
		if i > 0 {
			p.text = append(p.text, ',')
		}
		if !p.string(m.name) {
			return false
		}
		p.text = append(p.text, ':')
		if !p.value(m.value, depth+1) {
			return false
		}
	}
	p.text = append(p.text, '}')
	return true
}

func (p *plainForm) array(a []any, depth int) bool {
	if a == nil || depth > maxPlainDepth {
		return false
	}
	p.text = append(p.text, '[')
	for i, v := range a {
		if i > 0 {
			p.text = append(p.text, ',')
		}
		if !p.value(v, depth+1) {
			return false
		}
	}
	p.text = append(p.text, ']')
	return true
}
