package idempotency

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

var (
	// errVerbatim says that a JSON text has no other form than its own.
	errVerbatim = errors.New("no canonical form")
	errTooDeep  = errors.New("arguments nested too deeply")
)

// maxDepth is encoding/json's own limit.
const maxDepth = 10_000

// canonical returns the canonical form of a JSON text, as [FingerprintOf]
// describes it. The scheme's own implementation, jcs.Transform, rounds integers,
// takes quadratic time in members and in depth, and misreads unpaired surrogates,
// so only its number form is used.
func canonical(raw []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := parse(dec, 0)
	if err != nil {
		return nil, err
	}
	return appendValue(make([]byte, 0, len(raw)), v)
}

// An object keeps the members that a map would lose.
type object []member

type member struct {
	name  string
	value any
}

// parse reads one value, token by token: in linear time, whatever the depth.
func parse(dec *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return parseObject(dec, depth)
	case json.Delim('['):
		return parseArray(dec, depth)
	}
	return token, nil
}

func parseObject(dec *json.Decoder, depth int) (object, error) {
	o := object{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		value, err := parse(dec, depth+1)
		if err != nil {
			return nil, err
		}
		o = append(o, member{name, value})
	}
	_, err := dec.Token()
	return o, err
}

func parseArray(dec *json.Decoder, depth int) ([]any, error) {
	a := []any{}
	for dec.More() {
		value, err := parse(dec, depth+1)
		if err != nil {
			return nil, err
		}
		a = append(a, value)
	}
	_, err := dec.Token()
	return a, err
}

func appendValue(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case object:
		return appendObject(b, v)
	case []any:
		return appendArray(b, v)
	case string:
		return appendString(b, v)
	case json.Number:
		return appendNumber(b, string(v))
	case bool:
		return strconv.AppendBool(b, v), nil
	}
	return append(b, "null"...), nil
}

func appendObject(b []byte, o object) ([]byte, error) {
	slices.SortStableFunc(o, func(x, y member) int { return compareUTF16(x.name, y.name) })
	b = append(b, '{')
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendString(b, m.name); err != nil {
			return nil, err
		}
		if b, err = appendValue(append(b, ':'), m.value); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendArray(b []byte, a []any) ([]byte, error) {
	b = append(b, '[')
	for i, v := range a {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendValue(b, v); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// compareUTF16 orders names by their UTF-16 code units (RFC 8785, section 3.2.3),
// which differs from the order of their bytes for characters beyond U+FFFF.
func compareUTF16(a, b string) int {
	for a != "" && b != "" {
		x, n := utf8.DecodeRuneInString(a)
		y, m := utf8.DecodeRuneInString(b)
		if x != y {
			return slices.Compare(utf16.AppendRune(nil, x), utf16.AppendRune(nil, y))
		}
		a, b = a[n:], b[m:]
	}
	return cmp.Compare(len(a), len(b))
}

// appendString writes a string with as few escapes as JSON allows (RFC 8785,
// section 3.2.2.2). The decoder puts U+FFFD for what is not Unicode.
func appendString(b []byte, s string) ([]byte, error) {
	if strings.ContainsRune(s, utf8.RuneError) {
		return nil, errVerbatim
	}
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20:
			b = appendControl(b, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"'), nil
}

func appendControl(b []byte, c byte) []byte {
	if i := strings.IndexByte("\b\t\n\f\r", c); i >= 0 {
		return append(b, '\\', "btnfr"[i])
	}
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// appendNumber writes a number in the scheme's form, that of a double, where that
// is the same number, and else its exact digits.
func appendNumber(b []byte, number string) ([]byte, error) {
	exact, err := decimal(number)
	if err != nil {
		return nil, err
	}
	if f, err := strconv.ParseFloat(number, 64); err == nil {
		if double, err := jcs.NumberToJSON(f); err == nil {
			if d, err := decimal(double); err == nil && d == exact {
				return append(b, double...), nil
			}
		}
	}
	return append(b, exact...), nil
}

// decimal returns the one spelling of a JSON number that starts and ends with
// digits other than 0 and has no point, such as -12e-3 for -0.0120. An exponent of
// more than nine digits is left to be compared as it is written.
func decimal(number string) (string, error) {
	sign := ""
	if rest, ok := strings.CutPrefix(number, "-"); ok {
		sign, number = "-", rest
	}
	mantissa, power, _ := strings.Cut(strings.ToLower(number), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0", nil
	}
	if len(power) > 10 {
		return "", errVerbatim
	}
	exponent := -len(fraction)
	if power != "" {
		n, err := strconv.Atoi(power)
		if err != nil {
			return "", errVerbatim
		}
		exponent += n
	}
	significant := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(significant)
	return sign + significant + "e" + strconv.Itoa(exponent), nil
}
