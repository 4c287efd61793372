package observe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// minHidden is the length in bytes from which a value is looked for: shorter ones
	// are everywhere.
	minHidden = 4
	// echoStart is how much of a long value's beginning is recognised, for servers
	// that quote the first part alone.
	echoStart = 12
	// maxHidden bounds the values of one call, and maxHiddenJSON what is read of its
	// parameters, in bytes.
	maxHidden     = 256
	maxHiddenJSON = 256 << 10
)

// A Redactor knows what one call carried, such as its arguments, keys and
// credentials, so that these are found where a server echoes them, whatever they
// look like. A nil Redactor knows nothing and redacts by shape alone, as [Redact]
// does. It is safe for concurrent use.
type Redactor struct {
	values []string // the longest first
	email  bool     // e-mail addresses go too
}

// NewRedactor returns a Redactor that knows these values. Those shorter than four
// bytes are not looked for.
func NewRedactor(values ...string) *Redactor {
	r := &Redactor{}
	for _, v := range values {
		r.add(v)
	}
	r.sort()
	return r
}

// HideEmail returns a Redactor that redacts e-mail addresses, beside what r does. r
// may be nil; it is not changed.
func (r *Redactor) HideEmail() *Redactor {
	more := &Redactor{email: true}
	if r != nil {
		more.values = r.values
	}
	return more
}

// HideJSON returns a Redactor that knows, beside what r does, every text and every
// number in a JSON document, but for what stands under the names to skip at its top.
// What is no JSON is taken as far as it goes. r may be nil; it is not changed.
func (r *Redactor) HideJSON(document []byte, skip ...string) *Redactor {
	more := &Redactor{}
	if r != nil {
		more.values, more.email = slices.Clone(r.values), r.email
	}
	dec := json.NewDecoder(io.LimitReader(bytes.NewReader(document), maxHiddenJSON))
	dec.UseNumber()
	var members map[string]json.RawMessage
	if dec.Decode(&members) != nil {
		more.scan(document[:min(len(document), maxHiddenJSON)])
	}
	for name, value := range members {
		if !slices.Contains(skip, name) {
			more.scan(value)
		}
	}
	more.sort()
	return more
}

// scan adds the texts and numbers of a JSON value; names of members are no values.
func (r *Redactor) scan(value []byte) {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) == nil {
		r.leaves(v)
		return
	}
	dec = json.NewDecoder(bytes.NewReader(value))
	for {
		token, err := dec.Token()
		if err != nil {
			return
		}
		if text, ok := token.(string); ok {
			r.add(text)
		}
	}
}

func (r *Redactor) leaves(v any) {
	switch v := v.(type) {
	case string:
		r.add(v)
	case json.Number:
		r.add(v.String())
	case []any:
		for _, x := range v {
			r.leaves(x)
		}
	case map[string]any:
		for _, x := range v {
			r.leaves(x)
		}
	}
}

// add keeps a value, in the forms in which it can be echoed.
func (r *Redactor) add(value string) {
	value = strings.TrimSpace(strings.Map(printable, strings.ToValidUTF8(value, "\uFFFD")))
	if len(value) < minHidden || len(r.values) >= maxHidden {
		return
	}
	quoted, _ := json.Marshal(value)
	for _, form := range []string{value, string(quoted[1 : len(quoted)-1]), url.QueryEscape(value), url.PathEscape(value)} {
		if !slices.Contains(r.values, form) {
			r.values = append(r.values, form)
		}
	}
}

func (r *Redactor) sort() {
	slices.SortFunc(r.values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
}

// Text makes a server's text fit for a record: what the call carried, and what
// looks like a credential, becomes "[redacted]"; else as [Redact].
func (r *Redactor) Text(text string, max int) string {
	text = window(text, max)
	found := findShapes(nil, text)
	if r != nil {
		for _, v := range r.values {
			found = findValue(found, text, v)
		}
		if r.email {
			found = append(found, spans(email.FindAllStringIndex(text, -1))...)
		}
	}
	return strings.TrimSpace(clip(blot(text, found), max))
}

// A span is a part of a text, by its bytes.
type span struct{ from, to int }

func spans(found [][]int) []span {
	all := make([]span, len(found))
	for i, f := range found {
		all[i] = span{f[0], f[1]}
	}
	return all
}

// blot replaces the spans. They were all found in the text as it came: what one
// replacement leaves would hide from the next what it looks for.
func blot(text string, found []span) string {
	if len(found) == 0 {
		return text
	}
	slices.SortFunc(found, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	done := 0
	for i := 0; i < len(found); {
		from, to := found[i].from, found[i].to
		for i++; i < len(found) && found[i].from <= to; i++ {
			to = max(to, found[i].to)
		}
		b.WriteString(text[done:from] + redacted)
		done = to
	}
	return b.String() + text[done:]
}

// findValue finds a value where it stands as whole words; of a long one, its
// beginning is enough.
func findValue(found []span, text, value string) []span {
	start := value
	if len(value) > echoStart+minHidden {
		start = clip(value, echoStart)
	}
	for from := 0; ; {
		i := strings.Index(text[from:], start)
		if i < 0 {
			return found
		}
		at := from + i
		end := at + common(text[at:], value)
		if end-at >= echoStart || wordBorder(text[:at], text[end:], value) {
			found = append(found, span{at, end})
		}
		from = at + len(start)
	}
}

// common is the length of the beginning that two texts share.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// wordBorder reports whether a value between two texts is not the part of a longer
// word.
func wordBorder(before, after, value string) bool {
	first, _ := utf8.DecodeRuneInString(value)
	last, _ := utf8.DecodeLastRuneInString(value)
	left, _ := utf8.DecodeLastRuneInString(before)
	right, _ := utf8.DecodeRuneInString(after)
	return !(before != "" && isWord(first) && isWord(left)) && !(after != "" && isWord(last) && isWord(right))
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
