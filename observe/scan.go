package observe

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// maxDepth is the nesting of objects and arrays that the SDK accepts in one
// message; a deeper one ends its session (go-sdk v1.8.0, internal/json).
const maxDepth = 1000

// Why bytes are not a JSON document that this client reads.
const (
	faultCut      = "the JSON document is cut short"
	faultSyntax   = "not valid JSON"
	faultTrailing = "text after the JSON document"
	faultBOM      = "a byte order mark before the JSON document"
	faultControl  = "a control character in a string"
	faultEscape   = "an invalid escape in a string"
	faultDepth    = "nested deeper than 1000 levels"
)

// bom is the byte order mark in UTF-8. JSON may not begin with one (RFC 8259,
// section 8.1), an event stream may.
var bom = []byte("\xEF\xBB\xBF")

// A scanner checks one JSON text (RFC 8259) in one pass. Its methods take an
// index into data and return the index after what they read, or -1 after a
// fault. They accept -1 and pass it on, so that a walk is checked at its end.
type scanner struct {
	data    []byte
	fault   string // the first fault, or empty
	notUTF8 bool   // a string holds bytes that are not UTF-8
}

// document scans the whole text; value scans its one value.
func (s *scanner) document(value func(i int) int) {
	if bytes.HasPrefix(s.data, bom) {
		s.fail(faultBOM)
		return
	}
	if i := s.space(value(s.space(0))); i >= 0 && i < len(s.data) {
		s.fail(faultTrailing)
	}
}

// value scans the value at i, which stands inside depth containers.
func (s *scanner) value(i, depth int) int {
	switch c := s.at(i); {
	case c == '"':
		return s.text(i + 1)
	case c == '{':
		return s.object(i, depth, nil)
	case c == '[':
		return s.array(i, depth, nil)
	case c == '-' || isDigit(c):
		return s.number(i)
	case c == 't':
		return s.literal(i, "true")
	case c == 'f':
		return s.literal(i, "false")
	case c == 'n':
		return s.literal(i, "null")
	}
	return s.unexpected(i)
}

// object scans the object that opens at i. If visit is not nil, it is called with
// each key (between its quotes) and must scan the value that starts at i.
func (s *scanner) object(i, depth int, visit func(key []byte, i int) int) int {
	if depth >= maxDepth {
		return s.fail(faultDepth)
	}
	i = s.space(i + 1)
	if s.at(i) == '}' {
		return i + 1
	}
	for {
		if s.at(i) != '"' {
			return s.unexpected(i)
		}
		key := i + 1
		i = s.text(key)
		end := i - 1
		if i = s.space(i); s.at(i) != ':' {
			return s.unexpected(i)
		}
		i = s.space(i + 1)
		if visit == nil {
			i = s.value(i, depth+1)
		} else {
			i = visit(s.data[key:end], i)
		}
		i = s.space(i)
		switch s.at(i) {
		case ',':
			i = s.space(i + 1)
		case '}':
			return i + 1
		default:
			return s.unexpected(i)
		}
	}
}

// array scans the array that opens at i. If visit is not nil, it is called for
// each element and must scan it.
func (s *scanner) array(i, depth int, visit func(i int) int) int {
	if depth >= maxDepth {
		return s.fail(faultDepth)
	}
	i = s.space(i + 1)
	if s.at(i) == ']' {
		return i + 1
	}
	for {
		if visit == nil {
			i = s.value(i, depth+1)
		} else {
			i = visit(i)
		}
		i = s.space(i)
		switch s.at(i) {
		case ',':
			i = s.space(i + 1)
		case ']':
			return i + 1
		default:
			return s.unexpected(i)
		}
	}
}

// text scans a string from after its opening quote, eight bytes at a time. The
// search for its end is never begun anew, so a string costs its length however
// many escapes it holds.
func (s *scanner) text(i int) int {
	data, start, seen := s.data, i, uint64(0)
	for {
		for i+8 <= len(data) {
			word := binary.LittleEndian.Uint64(data[i:])
			seen |= word
			if m := special(word); m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}
		for i < len(data) && data[i] >= ' ' && data[i] != '"' && data[i] != '\\' {
			seen |= uint64(data[i])
			i++
		}
		switch s.at(i) {
		case '"':
			// Escapes are ASCII: they cannot complete a character begun before them.
			if seen&highBits != 0 && !utf8.Valid(data[start:i]) {
				s.notUTF8 = true
			}
			return i + 1
		case '\\':
			if i = s.escape(i + 1); i < 0 {
				return i
			}
		default:
			if i < len(data) {
				return s.fail(faultControl)
			}
			return s.fail(faultCut)
		}
	}
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// special marks the high bit of the first byte of the word that is a quote, a
// backslash or a control character; 0 if there is none. Bits above the first
// marked one mean nothing: the subtractions borrow from there.
func special(word uint64) uint64 {
	control := word - lowBits*' '
	quote := word ^ lowBits*'"' - lowBits
	backslash := word ^ lowBits*'\\' - lowBits
	return (control | quote | backslash) &^ word & highBits
}

// escape scans what follows a backslash. A lone surrogate is valid JSON text
// (RFC 8259, section 8.2).
func (s *scanner) escape(i int) int {
	switch s.at(i) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		for n := 1; n <= 4; n++ {
			if !isHex(s.at(i + n)) {
				return s.misplaced(i+n, faultEscape)
			}
		}
		return i + 5
	}
	return s.misplaced(i, faultEscape)
}

// number scans a number (RFC 8259, section 6).
func (s *scanner) number(i int) int {
	if s.at(i) == '-' {
		i++
	}
	if s.at(i) == '0' {
		i++
	} else {
		i = s.digits(i)
	}
	if s.at(i) == '.' {
		i = s.digits(i + 1)
	}
	if c := s.at(i); c == 'e' || c == 'E' {
		i++
		if c := s.at(i); c == '+' || c == '-' {
			i++
		}
		i = s.digits(i)
	}
	return i
}

// digits scans one digit or more.
func (s *scanner) digits(i int) int {
	if !isDigit(s.at(i)) {
		return s.unexpected(i)
	}
	for isDigit(s.at(i)) {
		i++
	}
	return i
}

func (s *scanner) literal(i int, word string) int {
	for n := range len(word) {
		if s.at(i+n) != word[n] {
			return s.unexpected(i + n)
		}
	}
	return i + len(word)
}

// space skips white space.
func (s *scanner) space(i int) int {
	for {
		switch s.at(i) {
		case ' ', '\n', '\r', '\t':
			i++
		default:
			return i
		}
	}
}

// at returns the byte at i, or 0, which starts nothing in JSON, where there is
// none.
func (s *scanner) at(i int) byte {
	if uint(i) < uint(len(s.data)) {
		return s.data[i]
	}
	return 0
}

// unexpected notes that the text cannot go on as it does at i.
func (s *scanner) unexpected(i int) int { return s.misplaced(i, faultSyntax) }

func (s *scanner) misplaced(i int, fault string) int {
	if i >= len(s.data) {
		fault = faultCut
	}
	return s.fail(fault)
}

// fail keeps the first fault.
func (s *scanner) fail(fault string) int {
	if s.fault == "" {
		s.fault = fault
	}
	return -1
}

func isDigit(c byte) bool { return c-'0' <= 9 }

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
