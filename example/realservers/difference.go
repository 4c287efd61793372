package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// changing are the texts that legitimately differ between two equal calls.
var changing = []struct {
	pattern *regexp.Regexp
	stands  string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "{time}"},
	{regexp.MustCompile(`[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d GMT[+-]\d{4} \([^)]*\)`), "{time}"},
	{regexp.MustCompile(`\b\d{1,2}:\d\d:\d\d[ \x{202f}][AP]M\b`), "{time}"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "{id}"},
}

// A normaliser replaces what legitimately changes by what stands for it.
type normaliser struct{ hide []string } // texts and what stands for each, in pairs

// normaliserFor hides these texts too, longer ones first: one may be a part of another.
func normaliserFor(hide map[string]string) *normaliser {
	n := &normaliser{}
	for _, text := range slices.SortedFunc(maps.Keys(hide), func(a, b string) int { return len(b) - len(a) }) {
		n.hide = append(n.hide, text, hide[text])
	}
	return n
}

// value turns a value into plain, normalised JSON values. Numbers keep their spelling.
func (n *normaliser) value(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var plain any
	if err := d.Decode(&plain); err != nil {
		return nil, err
	}
	return n.replace("", plain), nil
}

// replace goes through the member of that name, or an item of it.
func (n *normaliser) replace(name string, v any) any {
	switch v := v.(type) {
	case string:
		if text, err := base64.StdEncoding.DecodeString(v); name == "blob" && err == nil && utf8.Valid(text) {
			return "base64 of " + n.text(string(text))
		}
		return n.text(v)
	case []any:
		for i := range v {
			v[i] = n.replace(name, v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = n.replace(name, v[name])
		}
	}
	return v
}

func (n *normaliser) text(s string) string {
	s = strings.NewReplacer(n.hide...).Replace(s)
	for _, c := range changing {
		s = c.pattern.ReplaceAllString(s, c.stands)
	}
	return s
}

// differences names the places in which two values differ, with both values.
func differences(at string, bare, wrapped any) []string {
	switch b := bare.(type) {
	case map[string]any:
		if w, ok := wrapped.(map[string]any); ok {
			return membersDiffer(at, b, w)
		}
	case []any:
		if w, ok := wrapped.([]any); ok && len(b) == len(w) {
			var all []string
			for i := range b {
				all = append(all, differences(fmt.Sprintf("%s[%d]", at, i), b[i], w[i])...)
			}
			return all
		}
	default:
		if !composite(wrapped) && bare == wrapped {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: bare %s, wrapped %s", at, short(bare), short(wrapped))}
}

func membersDiffer(at string, bare, wrapped map[string]any) []string {
	names := maps.Clone(bare)
	maps.Copy(names, wrapped)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		b, inBare := bare[name]
		w, inWrapped := wrapped[name]
		switch {
		case !inBare:
			all = append(all, fmt.Sprintf("%s.%s: wrapped alone: %s", at, name, short(w)))
		case !inWrapped:
			all = append(all, fmt.Sprintf("%s.%s: bare alone: %s", at, name, short(b)))
		default:
			all = append(all, differences(at+"."+name, b, w)...)
		}
	}
	return all
}

// composite reports whether a value cannot be compared by ==.
func composite(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func short(v any) string {
	text, _ := json.Marshal(v)
	if len(text) > 200 {
		return fmt.Sprintf("%s... (%d bytes)", text[:200], len(text))
	}
	return string(text)
}
