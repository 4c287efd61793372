package idempotency

import "context"

type intentContext struct{}

// WithIntent names the decision to act that calls made with the context carry
// out. A call to a tool under the same intent is the same call, whoever makes it
// again and in whichever process: it is answered from the ledger, or refused, but
// takes effect once. Calls to different tools under one intent are different
// calls.
//
// An id must be unique across conversations: join a framework's session id and its
// tool-call id. "" is no intent, and hides that of an outer context.
func WithIntent(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, intentContext{}, id)
}

// IntentFrom returns the intent given by [WithIntent], or "": then each call is an
// intent of its own.
func IntentFrom(ctx context.Context) string {
	id, _ := ctx.Value(intentContext{}).(string)
	return id
}
