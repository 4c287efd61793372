package idempotency_test

import (
	"context"
	"regexp"
	"testing"

	"github.com/surecall/surecall/idempotency"
)

func TestContextValues(t *testing.T) {
	for _, tt := range []struct {
		name string
		with func(context.Context, string) context.Context
		from func(context.Context) string
	}{
		{"key", idempotency.WithKey, idempotency.KeyFrom},
		{"intent", idempotency.WithIntent, idempotency.IntentFrom},
		{"principal", idempotency.WithPrincipal, idempotency.PrincipalFrom},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.from(t.Context()); got != "" {
				t.Errorf("without one: %q", got)
			}
			ctx := tt.with(t.Context(), "x")
			if got := tt.from(ctx); got != "x" {
				t.Errorf("got %q, want x", got)
			}
			if got := tt.from(tt.with(ctx, "")); got != "" {
				t.Errorf("an empty one does not hide the outer one: %q", got)
			}
		})
	}
	if idempotency.RepeatAllowed(t.Context()) || !idempotency.RepeatAllowed(idempotency.WithRepeatAllowed(t.Context())) {
		t.Error("RepeatAllowed does not tell what WithRepeatAllowed said")
	}
}

// A key needs no escaping anywhere.
var keyForm = regexp.MustCompile(`^[A-Z2-7]{26}$`)

func TestNewKeyIsFresh(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		k := idempotency.NewKey()
		if !keyForm.MatchString(k) || seen[k] {
			t.Fatalf("NewKey gave %q, in another form or seen before", k)
		}
		seen[k] = true
	}
}

func TestDerivedKeys(t *testing.T) {
	seen := map[string]string{}
	for name, key := range map[string]string{
		"key":               idempotency.DeriveKey("ann", "turn-1", "bank", "pay"),
		"another principal": idempotency.DeriveKey("bob", "turn-1", "bank", "pay"),
		"another intent":    idempotency.DeriveKey("ann", "turn-2", "bank", "pay"),
		"another server":    idempotency.DeriveKey("ann", "turn-1", "shop", "pay"),
		"another tool":      idempotency.DeriveKey("ann", "turn-1", "bank", "send"),
		"other boundaries":  idempotency.DeriveKey("annt", "urn-1", "bank", "pay"),
		"nothing":           idempotency.DeriveKey("", "", "", ""),
		"round 2":           idempotency.RoundKey("k", 2),
		"round 3":           idempotency.RoundKey("k", 3),
		"round 2 of another": idempotency.RoundKey(
			idempotency.DeriveKey("ann", "turn-1", "bank", "pay"), 2),
		"long": idempotency.DeriveKey("ann", string(make([]byte, 1<<20)), "bank", "pay"),
	} {
		if !keyForm.MatchString(key) {
			t.Errorf("%s: %q has another form than a fresh key", name, key)
		}
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s share a key", name, other)
		}
		seen[key] = name
	}
}

// Keys must be the same in every process and every release: a store outlives both.
func TestKeysAreStable(t *testing.T) {
	for _, tt := range []struct{ name, got, want string }{
		{"derived", idempotency.DeriveKey("ann", "turn-1", "bank", "pay"), "URPMLRINJBAQI5QGD2H2UUHLAY"},
		{"round 2", idempotency.RoundKey("k", 2), "7S3VPY2BKOCVMUEHJ5XXTWLOYH"},
		{"round 1", idempotency.RoundKey("k", 1), "k"},
		{"round 0", idempotency.RoundKey("k", 0), "k"},
		{"fingerprint", fingerprint(t, "bank", "pay", map[string]any{"b": 1, "a": []any{1.5, "x"}}).String(), "9d979ffd63f66e9a1bf67d132e7fede0906ed4585e022aa0ede95bab5fd4cdec"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %q, want %q", tt.name, tt.got, tt.want)
		}
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
