package policy

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// A Reconcile names a tool that finds out what became of a call whose outcome is
// unknown: a tool of the same server that only reads, by this very policy.
type Reconcile struct {
	// Tool that is asked.
	Tool string
	// Arguments of that tool, each with where its value comes from: a JSON Pointer (RFC
	// 6901) such as "/order/id" into the arguments of the call, [ReconcileKey] for the
	// call's idempotency key, and any other text for itself. Where the call has no such
	// value, nobody is asked.
	Arguments map[string]string
	// Happened and DidNotHappen say what the answer means. An answer that matches
	// neither, or both, tells nothing; so does a zero AnswerMatch.
	Happened, DidNotHappen AnswerMatch
}

// ReconcileKey stands for the call's idempotency key among [Reconcile.Arguments].
const ReconcileKey = "$key"

// An AnswerMatch says which answers of a tool are meant: those that have all that it names.
// The zero value matches none.
type AnswerMatch struct {
	// At is a JSON Pointer into the structured content of an answer that is no error,
	// or into the JSON of its first text. "" is not set.
	At string
	// In are the values that At may have: texts as they are, everything else in its JSON
	// form. Empty: any value that is there and is not null, false, "", [] or {}.
	In []string
	// Text is a text that the answer, which may be an error, holds. "" is not set.
	Text string
}

func (m AnswerMatch) set() bool { return m.At != "" || m.Text != "" }

// Matches reports whether an answer is meant: structured is its structured content
// or nil, text its text, and isError whether it is an error.
func (m AnswerMatch) Matches(structured any, text string, isError bool) bool {
	if !m.set() {
		return false
	}
	if m.Text != "" && !strings.Contains(text, m.Text) {
		return false
	}
	return m.At == "" || !isError && m.at(structured, text)
}

func (m AnswerMatch) at(structured any, text string) bool {
	raw := []byte(text)
	if structured != nil {
		var err error
		if raw, err = json.Marshal(structured); err != nil {
			return false
		}
	}
	found, ok := At(raw, m.At)
	switch form := valueText(found); {
	case !ok:
		return false
	case len(m.In) > 0:
		return slices.Contains(m.In, form)
	default:
		return !slices.Contains([]string{"null", "false", "", "[]", "{}"}, form)
	}
}

// valueText is a value as [AnswerMatch.In] writes it.
func valueText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil && len(raw) > 0 && raw[0] == '"' {
		return s
	}
	return string(raw)
}

// At returns the value at a JSON Pointer (RFC 6901) within a JSON text, and whether
// there is one.
func At(doc []byte, pointer string) (json.RawMessage, bool) {
	if pointer != "" && pointer[0] != '/' {
		return nil, false
	}
	value := json.RawMessage(doc)
	for _, name := range strings.Split(pointer, "/")[1:] {
		var ok bool
		if value, ok = step(value, pointerEscapes.Replace(name)); !ok {
			return nil, false
		}
	}
	return compact(value)
}

var pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")

// step returns the value of a member of an object, or of an element of an array.
func step(doc json.RawMessage, name string) (json.RawMessage, bool) {
	var object map[string]json.RawMessage
	if json.Unmarshal(doc, &object) == nil {
		value, ok := object[name]
		return value, ok
	}
	var array []json.RawMessage
	i, err := strconv.ParseUint(name, 10, 31)
	if err != nil || strconv.FormatUint(i, 10) != name || json.Unmarshal(doc, &array) != nil || i >= uint64(len(array)) {
		return nil, false
	}
	return array[i], true
}

func compact(doc json.RawMessage) (json.RawMessage, bool) {
	var b bytes.Buffer
	if json.Compact(&b, doc) != nil {
		return nil, false
	}
	return b.Bytes(), true
}
