package idempotency

import (
	"math"
	"slices"
	"strconv"
)

const (
	// maxPlainDepth keeps plain from walking into a value that holds itself.
	maxPlainDepth = 32
	// maxPlainInt bounds the numbers whose canonical form is their digits.
	maxPlainInt = 1 << 50
)

// plain appends the canonical form of a value that is made of maps, slices, short
// numbers and plain ASCII strings, as the arguments of most calls are. It is the
// form that [canonical] gives the value's JSON, at a tenth of the cost; for anything
// else it reports false.
func plain(b []byte, v any, depth int) ([]byte, bool) {
	if depth > maxPlainDepth {
		return b, false
	}
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), true
	case bool:
		return strconv.AppendBool(b, v), true
	case string:
		return plainString(b, v)
	case int:
		return plainInt(b, int64(v))
	case int64:
		return plainInt(b, v)
	case float64:
		return plainFloat(b, v)
	case map[string]any:
		return plainObject(b, v, depth)
	case []any:
		return plainArray(b, v, depth)
	}
	return b, false
}

func plainInt(b []byte, n int64) ([]byte, bool) {
	if n > maxPlainInt || n < -maxPlainInt {
		return b, false
	}
	return strconv.AppendInt(b, n, 10), true
}

// plainFloat appends a number that ECMAScript, and with it RFC 8785, writes without
// an exponent.
func plainFloat(b []byte, f float64) ([]byte, bool) {
	if abs := math.Abs(f); !(abs >= 1e-6 && abs < maxPlainInt) {
		return b, false
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64), true
}

// plainString appends a string that needs no escape.
func plainString(b []byte, s string) ([]byte, bool) {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			return b, false
		}
	}
	return append(append(append(b, '"'), s...), '"'), true
}

func plainObject(b []byte, o map[string]any, depth int) ([]byte, bool) {
	if o == nil {
		return b, false
	}
	names := make([]string, 0, 16)
	for name := range o {
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		var ok bool
		if b, ok = plainString(b, name); !ok {
			return b, false
		}
		if b, ok = plain(append(b, ':'), o[name], depth+1); !ok {
			return b, false
		}
	}
	return append(b, '}'), true
}

func plainArray(b []byte, a []any, depth int) ([]byte, bool) {
	if a == nil {
		return b, false
	}
	b = append(b, '[')
	for i, v := range a {
		if i > 0 {
			b = append(b, ',')
		}
		var ok bool
		if b, ok = plain(b, v, depth+1); !ok {
			return b, false
		}
	}
	return append(b, ']'), true
}
