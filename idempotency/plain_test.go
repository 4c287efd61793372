package idempotency_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/surecall/surecall/idempotency"
)

// plainValue draws what arguments are made of, plain and otherwise.
func plainValue(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.StringMatching(`[ -~]{0,12}`), func(s string) any { return s }),
		rapid.Map(rapid.Int(), func(n int) any { return n }),
		rapid.Map(rapid.IntRange(-1000, 1000), func(n int) any { return n }),
		rapid.Map(rapid.Float64(), func(f float64) any { return f }),
		rapid.Map(rapid.Float64Range(-1e9, 1e9), func(f float64) any { return f }),
		rapid.Map(rapid.Float64Range(-1e-5, 1e-5), func(f float64) any { return f }),
		rapid.Map(rapid.IntRange(-9, 9), func(n int) any { return float64(n) }),
	}
	if depth > 0 {
		leaves = append(leaves,
			rapid.Map(rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return plainValue(depth - 1) }), 0, 4), func(a []any) any { return a }),
			rapid.Map(plainObject(depth-1), func(o map[string]any) any { return o }))
	}
	return rapid.OneOf(leaves...)
}

func plainObject(depth int) *rapid.Generator[map[string]any] {
	name := rapid.OneOf(rapid.StringMatching(`[a-z_]{1,6}`), rapid.String())
	return rapid.MapOfN(name, rapid.Deferred(func() *rapid.Generator[any] { return plainValue(depth) }), 0, 5)
}

// TestPlain: the short way gives the form of the long one, or gives up.
func TestPlain(t *testing.T) {
	plain := 0
	rapid.Check(t, func(t *rapid.T) {
		o := plainObject(3).Draw(t, "arguments")
		got, ok := idempotency.Plain(o)
		if !ok {
			return
		}
		plain++
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		want, err := idempotency.Canonical(raw)
		if err != nil || string(got) != string(want) {
			t.Fatalf("%s, want %s (%v)", got, want, err)
		}
	})
	if plain == 0 {
		t.Error("nothing was plain")
	}
	self := map[string]any{}
	self["self"] = self
	if _, ok := idempotency.Plain(self); ok {
		t.Error("a value that holds itself has a form")
	}
}
