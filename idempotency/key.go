package idempotency

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// MetaKey is the name under which a request's idempotency key travels in
// params._meta. MCP has no key of its own (SEP-3182 was closed), so it carries a
// reverse-DNS prefix as the specification asks of _meta names.
const MetaKey = "io.github.surecall/idempotency-key"

// MetaCallKey is the name under which the key of the whole call travels beside
// that of a round: see [RoundKey]. A server that looks at it executes a call once in
// whichever number of rounds.
const MetaCallKey = "io.github.surecall/call-key"

// MetaReplay is the name, in the _meta of a result, that says that the result is
// the stored answer of an earlier call. Its value is the time at which that call
// was begun, in the form of RFC 3339.
const MetaReplay = "io.github.surecall/replay-of"

type keyContext struct{}

// WithKey gives calls made with the context their idempotency key, instead of a
// derived or a fresh one. Use it for one call, to repeat a call that an earlier
// process, or an earlier run of an agent, may already have made. An empty key is
// no key.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyContext{}, key)
}

// KeyFrom returns the key given by [WithKey], or "".
func KeyFrom(ctx context.Context) string {
	key, _ := ctx.Value(keyContext{}).(string)
	return key
}

// NewKey returns a random key of 130 bits.
func NewKey() string { return rand.Text() }

// DeriveKey returns the key of an intent's call to a tool: the same in every
// process, another for every other principal, intent, server or tool. The
// arguments are not part of it, so that the same intent with other arguments
// shows, here and at the server, as a mismatch. Its form is that of [NewKey].
//
// It holds no secret. Who knows all four parts can compute it, so a server must
// not take a key for a proof of anything, and must scope keys by its own notion of
// who is calling.
func DeriveKey(principal, intent, server, tool string) string {
	return text(digest("surecall key 1", principal, intent, server, tool))
}

// RoundKey returns the key of one round of a call that takes several (multi
// round-trip requests, 2026-07-28). Round 1, and anything below, has the call's
// own key: most calls have no other round. Each further round has a key of its
// own, so that a server that deduplicates naively does not answer round two with
// what it answered to round one, and a repeat of a round has the same key as the
// round. The form is that of [NewKey].
func RoundKey(callKey string, round int) string {
	if round <= 1 {
		return callKey
	}
	return text(digest("surecall round 1", callKey, strconv.Itoa(round)))
}

// Hash returns a short hash of a key, for records: enough to tell whether two
// calls carried the same key, not enough to use it. The hash of "" is "".
func Hash(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}
