package idempotency_test

import (
	"context"
	"testing"

	"github.com/surecall/surecall/idempotency"
)

func TestKeyFromContext(t *testing.T) {
	if got := idempotency.KeyFrom(context.Background()); got != "" {
		t.Errorf("KeyFrom without a key = %q, want none", got)
	}
	ctx := idempotency.WithKey(context.Background(), "k-1")
	if got := idempotency.KeyFrom(ctx); got != "k-1" {
		t.Errorf("KeyFrom = %q, want k-1", got)
	}
}

func TestNewKeyIsFresh(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		k := idempotency.NewKey()
		if len(k) < 26 || seen[k] {
			t.Fatalf("NewKey gave %q, too short or seen before", k)
		}
		seen[k] = true
	}
}

func TestHash(t *testing.T) {
	if idempotency.Hash("") != "" {
		t.Error("the hash of no key is not empty")
	}
	a, b := idempotency.Hash("a"), idempotency.Hash("b")
	if len(a) != 12 || a == b || a != idempotency.Hash("a") {
		t.Errorf("Hash: a=%q b=%q", a, b)
	}
}

func TestFingerprint(t *testing.T) {
	of := func(server, tool string, args any) idempotency.Fingerprint {
		t.Helper()
		f, err := idempotency.FingerprintOf(server, tool, args)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	base := of("s", "pay", map[string]any{"a": 1, "b": []any{1.0, "x"}})
	type args struct {
		B []any `json:"b"`
		A int   `json:"a"`
	}
	if got := of("s", "pay", args{A: 1, B: []any{1, "x"}}); got != base {
		t.Error("order of members and form of numbers changed the fingerprint")
	}
	for name, other := range map[string]idempotency.Fingerprint{
		"server":    of("s2", "pay", map[string]any{"a": 1, "b": []any{1, "x"}}),
		"tool":      of("s", "pay2", map[string]any{"a": 1, "b": []any{1, "x"}}),
		"arguments": of("s", "pay", map[string]any{"a": 2, "b": []any{1, "x"}}),
		"boundary":  of("sp", "ay", map[string]any{"a": 1, "b": []any{1, "x"}}),
		"nil":       of("s", "pay", nil),
	} {
		if other == base {
			t.Errorf("another %s gave the same fingerprint", name)
		}
	}
	if _, err := idempotency.FingerprintOf("s", "t", make(chan int)); err == nil {
		t.Error("arguments that are no JSON gave a fingerprint")
	}
}
