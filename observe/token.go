package observe

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// A token is one JSON value as it was written, known to be valid. A nil token
// stands for an absent member.
type token []byte

// begins reports whether the token begins with c, which tells its type.
func (t token) begins(c byte) bool { return len(t) > 0 && t[0] == c }

func (t token) isNull() bool   { return t.begins('n') }
func (t token) isText() bool   { return t.begins('"') }
func (t token) isObject() bool { return t.begins('{') }
func (t token) isArray() bool  { return t.begins('[') }
func (t token) isNumber() bool { return len(t) > 0 && (t[0] == '-' || isDigit(t[0])) }

// boolean returns the value of a boolean token.
func (t token) boolean() (value, ok bool) { return t.begins('t'), t.begins('t') || t.begins('f') }

// text returns the value of a string token, and "" for any other.
func (t token) text() string {
	if !t.isText() {
		return ""
	}
	return decodeText(t[1 : len(t)-1])
}

// is reports whether the token is a string of this value.
func (t token) is(value string) bool {
	if !t.isText() {
		return false
	}
	inner := t[1 : len(t)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner) == value
	}
	return decodeText(inner) == value
}

// integer returns the value of a number that is mathematically an integer and
// fits. plain says that it is written without fraction and exponent.
func (t token) integer() (value int64, plain, ok bool) {
	if !t.isNumber() {
		return 0, false, false
	}
	d, ok := parseDecimal(t)
	if !ok || d.exp < 0 || len(d.digits)+d.exp > 19 {
		return 0, false, false
	}
	text := "0" + string(d.digits) + strings.Repeat("0", d.exp)
	if d.negative {
		text = "-" + text
	}
	value, err := strconv.ParseInt(text, 10, 64)
	return value, !bytes.ContainsAny(t, ".eE"), err == nil
}

// sameID reports whether two ids are equal in type and value; form says that
// numbers are written the same way, too.
func (t token) sameID(id token) (same, form bool) {
	switch {
	case t.isText() && id.isText():
		return bytes.Equal(t, id) || t.is(id.text()), true
	case t.isNumber() && id.isNumber():
		if bytes.Equal(t, id) {
			return true, true
		}
		a, aok := parseDecimal(t)
		b, bok := parseDecimal(id)
		return aok && bok && a.equal(b), false
	}
	return false, true
}

// decodeText decodes what stands between the quotes of a string.
func decodeText(inner []byte) string {
	if bytes.IndexByte(inner, '\\') < 0 {
		return strings.ToValidUTF8(string(inner), "\uFFFD")
	}
	quoted := make([]byte, 0, len(inner)+2)
	quoted = append(append(append(quoted, '"'), inner...), '"')
	var value string
	if json.Unmarshal(quoted, &value) != nil {
		return "" // cannot be: the scanner has accepted the string
	}
	return value
}

// A decimal is a number as digits times ten to the power of exp, with no zeros at
// either end, so that equal numbers have equal decimals. Zero has no digits.
type decimal struct {
	negative bool
	digits   []byte
	exp      int
}

// parseDecimal reads a number token. It is not ok where the exponent is beyond
// any use.
func parseDecimal(number []byte) (d decimal, ok bool) {
	mantissa := number
	if i := bytes.IndexAny(number, "eE"); i >= 0 {
		exp, err := strconv.ParseInt(string(number[i+1:]), 10, 32)
		if err != nil {
			return d, false
		}
		mantissa, d.exp = number[:i], int(exp)
	}
	mantissa, d.negative = bytes.CutPrefix(mantissa, []byte("-"))
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	digits := append(whole[:len(whole):len(whole)], fraction...)
	d.digits = bytes.TrimRight(digits, "0")
	d.exp += len(digits) - len(d.digits) - len(fraction)
	d.digits = bytes.TrimLeft(d.digits, "0")
	if len(d.digits) == 0 {
		return decimal{}, true
	}
	return d, true
}

func (d decimal) equal(o decimal) bool {
	return d.negative == o.negative && d.exp == o.exp && bytes.Equal(d.digits, o.digits)
}
