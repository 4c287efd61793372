package idempotency

import "context"

type principalContext struct{}

// WithPrincipal says on whose behalf calls made with the context act: a user, a
// tenant, a service account. Keys, answers and doubts are kept apart by it: one
// principal never gets another's answer, nor is held up by another's call. Any text
// that tells principals apart will do; a ledger stores only its hash.
//
// Without it all calls share the principal "".
func WithPrincipal(ctx context.Context, principal string) context.Context {
	return context.WithValue(ctx, principalContext{}, principal)
}

// PrincipalFrom returns the principal given by [WithPrincipal], or "".
func PrincipalFrom(ctx context.Context) string {
	principal, _ := ctx.Value(principalContext{}).(string)
	return principal
}
