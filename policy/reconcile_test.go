package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/surecall/surecall/policy"
)

func TestAt(t *testing.T) {
	const doc = `{"a": {"b/c": [10, {"d": "x"}], "~": null, "": 1}, "n": 12345678901234567890}`
	for _, c := range []struct {
		pointer, want string
		ok            bool
	}{
		{"/a/b~1c/0", "10", true},
		{"/a/b~1c/1/d", `"x"`, true},
		{"/a/~0", "null", true},
		{"/a/", "1", true},
		{"/n", "12345678901234567890", true},
		{"", `{"a":{"b/c":[10,{"d":"x"}],"~":null,"":1},"n":12345678901234567890}`, true},
		{"/a/b~1c/2", "", false},
		{"/a/b~1c/00", "", false},
		{"/a/b~1c/-1", "", false},
		{"/a/b~1c/99999999999999999999", "", false},
		{"/missing/x", "", false},
		{"/n/x", "", false},
		{"a", "", false},
	} {
		got, ok := policy.At([]byte(doc), c.pointer)
		if ok != c.ok || string(got) != c.want {
			t.Errorf("%q: %s, %t", c.pointer, got, ok)
		}
	}
	for _, bad := range []string{"", "{", "nonsense", `{"a":}`} {
		if got, ok := policy.At([]byte(bad), ""); ok {
			t.Errorf("%q: %s", bad, got)
		}
	}
}

func FuzzAt(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"c"}]}`), "/a/1/b")
	f.Add([]byte(`[[]]`), "/0/0")
	f.Fuzz(func(t *testing.T, doc []byte, pointer string) {
		if got, ok := policy.At(doc, pointer); ok && !json.Valid(got) {
			t.Errorf("%q in %q: %q is no JSON", pointer, doc, got)
		}
	})
}

func TestAnswerMatch(t *testing.T) {
	status := policy.AnswerMatch{At: "/status", In: []string{"paid", "3", "null"}}
	there := policy.AnswerMatch{At: "/payment"}
	for _, c := range []struct {
		name       string
		match      policy.AnswerMatch
		structured any
		text       string
		isError    bool
		want       bool
	}{
		{"nothing set", policy.AnswerMatch{}, map[string]any{}, "paid", false, false},
		{"a text", status, map[string]any{"status": "paid"}, "", false, true},
		{"a number", status, map[string]any{"status": 3}, "", false, true},
		{"null, named", status, map[string]any{"status": nil}, "", false, true},
		{"another", status, map[string]any{"status": "open"}, "", false, false},
		{"only a part", status, map[string]any{"status": "paid twice"}, "", false, false},
		{"missing", status, map[string]any{}, `{"status":"paid"}`, false, false},
		{"in the text", status, nil, `{"status": "paid"}`, false, true},
		{"no JSON", status, nil, `paid`, false, false},
		{"an error", status, map[string]any{"status": "paid"}, "", true, false},
		{"there", there, map[string]any{"payment": map[string]any{"id": 1}}, "", false, true},
		{"zero is there", there, map[string]any{"payment": 0}, "", false, true},
		{"null is not", there, map[string]any{"payment": nil}, "", false, false},
		{"an empty list is not", there, map[string]any{"payment": []any{}}, "", false, false},
		{"an empty object is not", there, nil, `{"payment": { }}`, false, false},
		{"words", policy.AnswerMatch{Text: "no such"}, nil, "there is no such payment", false, true},
		{"words of an error", policy.AnswerMatch{Text: "no such"}, nil, "no such payment", true, true},
		{"other words", policy.AnswerMatch{Text: "no such"}, nil, "try later", true, false},
		{"both", policy.AnswerMatch{At: "/a", Text: "no"}, map[string]any{"a": 1}, "yes", false, false},
	} {
		if got := c.match.Matches(c.structured, c.text, c.isError); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
