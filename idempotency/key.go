package idempotency

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

// MetaKey is the name under which a call's idempotency key travels in
// params._meta. MCP has no key of its own (SEP-3182 was closed), so it carries a
// reverse-DNS prefix as the specification asks of _meta names.
const MetaKey = "io.github.surecall/idempotency-key"

type ctxKey struct{}

// WithKey gives the next call made with the context its idempotency key, instead
// of a fresh one. Use it to repeat a call that an earlier process, or an earlier
// run of an agent, may already have made. An empty key is ignored.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, ctxKey{}, key)
}

// KeyFrom returns the key given by [WithKey], or "".
func KeyFrom(ctx context.Context) string {
	key, _ := ctx.Value(ctxKey{}).(string)
	return key
}

// NewKey returns a random key of 128 bits or more.
func NewKey() string { return rand.Text() }

// Hash returns a short hash of a key, for records: enough to tell whether two
// calls carried the same key, not enough to use it. The hash of "" is "".
func Hash(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}
