package idempotency_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"

	"github.com/surecall/surecall/idempotency"
)

func fingerprint(t testing.TB, server, tool string, args any) idempotency.Fingerprint {
	t.Helper()
	f, err := idempotency.FingerprintOf(server, tool, args)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestFingerprint(t *testing.T) {
	base := fingerprint(t, "s", "pay", map[string]any{"a": 1, "b": []any{1.0, "x"}})
	type args struct {
		B []any `json:"b"`
		A int   `json:"a"`
	}
	if got := fingerprint(t, "s", "pay", args{A: 1, B: []any{1, "x"}}); got != base {
		t.Error("order of members and form of numbers changed the fingerprint")
	}
	for name, other := range map[string]idempotency.Fingerprint{
		"server":    fingerprint(t, "s2", "pay", map[string]any{"a": 1, "b": []any{1, "x"}}),
		"tool":      fingerprint(t, "s", "pay2", map[string]any{"a": 1, "b": []any{1, "x"}}),
		"arguments": fingerprint(t, "s", "pay", map[string]any{"a": 2, "b": []any{1, "x"}}),
		"boundary":  fingerprint(t, "sp", "ay", map[string]any{"a": 1, "b": []any{1, "x"}}),
		"nil":       fingerprint(t, "s", "pay", nil),
	} {
		if other == base {
			t.Errorf("another %s gave the same fingerprint", name)
		}
	}
}

// Which arguments are equal.
func TestFingerprintOfArguments(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, tt := range []struct {
		name string
		a, b any
		same bool
	}{
		{"no arguments: nil, null, absent, empty object", nil, map[string]any{}, true},
		{"null", raw("null"), raw("{}"), true},
		{"absent", json.RawMessage{}, raw("{}"), true},
		{"an empty array is no empty object", raw("[]"), raw("{}"), false},
		{"white space", raw(`{"a":[1,2]}`), raw("{ \"a\" :\n[ 1 ,\t2 ] }"), true},
		{"order of members, nested", raw(`{"a":{"x":1,"y":2},"b":3}`), raw(`{"b":3,"a":{"y":2,"x":1}}`), true},
		{"order of elements", raw(`[1,2]`), raw(`[2,1]`), false},
		{"escapes", raw(`"\u0061\/\u00e9\n\u001f\u2028<"`), raw(`"a/é\u000a\u001F\u2028\u003c"`), true},
		{"surrogate pair", raw(`"\ud83d\ude00"`), raw(`"😀"`), true},
		{"composed and decomposed characters are different texts", raw(`"\u00e9"`), raw(`"e\u0301"`), false},
		{"names in UTF-16 order", raw(`{"\ufb33":1,"😀":2}`), raw(`{"😀":2,"\ufb33":1}`), true},
		{"number forms", raw(`[1.0,1e2,-0,0.10,1E-7]`), raw(`[1,100,0,0.1,0.0000001]`), true},
		{"a number is no string", raw(`1`), raw(`"1"`), false},
		{"integers beyond 2^53", raw(`{"id":9007199254740993}`), raw(`{"id":9007199254740992}`), false},
		{"the same integer beyond 2^53", raw(`{"id":9007199254740993,"a":1}`), raw(`{"a":1,"id":9007199254740993.0}`), true},
		{"int64 and its text", map[string]any{"id": int64(9223372036854775807)}, raw(`{"id":9223372036854775807}`), true},
		{"uint64", uint64(18446744073709551615), uint64(18446744073709551614), false},
		{"more digits than a double has", raw(`0.1`), raw(`0.1000000000000000055`), false},
		{"beyond a double", raw(`1e400`), raw(`10E399`), true},
		{"beyond a double, different", raw(`1e400`), raw(`1e401`), false},
		{"below a double", raw(`1e-400`), raw(`0`), false},
		{"an absurd exponent counts as written", raw(`[1e99999999999]`), raw(`[1e99999999998]`), false},
		{"a member twice, in order", raw(`{"b":0,"a":1,"a":2}`), raw(`{"a":1,"b":0,"a":2}`), true},
		{"a member twice, in another order", raw(`{"a":1,"a":2}`), raw(`{"a":2,"a":1}`), false},
		{"a member twice is not the last of them", raw(`{"a":1,"a":2}`), raw(`{"a":2}`), false},
		{"a member twice, by an escape", raw(`{"a":1,"\u0061":2}`), raw(`{"a":2}`), false},
		{"an unpaired surrogate", raw(`"\ud800"`), raw(`"\ud801"`), false},
		{"an unpaired surrogate in a name", raw(`{"\ud800":1,"b":2}`), raw(`{"\ud801":1,"b":2}`), false},
		{"bytes that are not UTF-8", raw("\"\xff\""), raw("\"\xfe\""), false},
		{"the replacement character", "\ufffd", raw(`"\ud800"`), false},
		{"the replacement character twice", map[string]any{"b": "\ufffd", "a": 1}, map[string]any{"a": 1, "b": "\ufffd"}, true},
		{"bare values", true, raw(" true "), true},
		{"bare values, different", true, false, false},
		{"deep", raw(deep(9000)), raw(deep(9000)), true},
		{"deep, different", raw(deep(9000)), raw(deep(8999)), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if same := fingerprint(t, "s", "t", tt.a) == fingerprint(t, "s", "t", tt.b); same != tt.same {
				t.Errorf("equal: %t, want %t", same, tt.same)
			}
		})
	}
}

func TestFingerprintRefuses(t *testing.T) {
	var deep any
	for range 20_000 {
		deep = []any{deep}
	}
	for name, args := range map[string]any{
		"a channel": make(chan int), "no JSON": raw("{"), "two values": raw("1 2"),
		"too deep as text": raw(strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)), "too deep as a value": deep,
	} {
		if _, err := idempotency.FingerprintOf("s", "t", args); err == nil || !strings.Contains(err.Error(), `tool "t"`) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestFingerprintText(t *testing.T) {
	want := fingerprint(t, "s", "t", nil)
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got idempotency.Fingerprint
	if err := json.Unmarshal(b, &got); err != nil || got != want || string(b) != fmt.Sprintf("%q", want) {
		t.Errorf("%s came back as %s, error %v", b, got, err)
	}
	for _, bad := range []string{`""`, `"00"`, `"` + strings.Repeat("x", 64) + `"`} {
		if err := json.Unmarshal([]byte(bad), &got); err == nil {
			t.Errorf("%s is taken for a fingerprint", bad)
		}
	}
}

// Arguments that RFC 8785 covers have the form that its own implementation gives
// them.
func TestFingerprintFollowsTheScheme(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := value(3).Draw(t, "a")
		written, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		form, err := jcs.Transform(written)
		if err != nil {
			t.Fatal(err)
		}
		got, err := idempotency.Canonical(written)
		if err != nil || !bytes.Equal(got, form) {
			t.Fatalf("%s has the form %s (error %v), want %s", written, got, err, form)
		}
	})
}

// value generates JSON values within I-JSON (RFC 7493).
func value(depth int) *rapid.Generator[any] {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("ab\x00\x1f\b\n\"\\</é\u2028\ue000\ufb33😀\U0010ffff")), 0, 4, -1)
	leaves := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), text.AsAny(),
		rapid.Int64Range(-1<<53, 1<<53).AsAny(), rapid.Float64().AsAny(),
	}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	inner := value(depth - 1)
	return rapid.OneOf(append(leaves,
		rapid.SliceOfN(inner, 0, 4).AsAny(), rapid.MapOfN(text, inner, 0, 5).AsAny())...)
}

// Whatever the text, it has a fingerprint or an error, and white space makes no
// difference.
func FuzzFingerprint(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,2.5e3,-0,true,null,"x\u0000"]}`, `{"a":1,"a":2}`, `"\ud800"`, `1e999999999`, `-0.0e-0`, `[[[[]]]]`, "{", "",
		`123456789012345678901234567890.000`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := idempotency.FingerprintOf("s", "t", json.RawMessage(text))
		if err != nil {
			if json.Valid(text) {
				t.Fatalf("valid JSON was refused: %v", err)
			}
			return
		}
		var indented bytes.Buffer
		if json.Indent(&indented, text, " ", "\t") != nil {
			return
		}
		again, err := idempotency.FingerprintOf("s", "t", json.RawMessage(indented.Bytes()))
		if err != nil || again != got {
			t.Fatalf("white space changed the fingerprint (error %v)", err)
		}
	})
}
