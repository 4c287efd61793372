package middleware

import (
	"context"

	"github.com/surecall/surecall/observe"
)

// failure is the error for a call without a usable answer, as far as it is known
// at this point of the way up. ctx is the caller's: only its own end is shown.
func (cl *call) failure(ctx context.Context) *observe.Error {
	if len(cl.attempts) == 0 {
		return nil
	}
	a := &cl.attempts[len(cl.attempts)-1]
	delivery := cl.delivery()
	e := observe.Error{
		Outcome:    a.Outcome,
		Delivery:   delivery,
		Reason:     a.Reason,
		Tool:       cl.tool.Name,
		Server:     cl.server.name,
		Safety:     string(cl.tool.Safety),
		Status:     failingStatus(a),
		RPC:        a.RPC,
		Attempts:   cl.attemptRecords(),
		RepeatSafe: repeatSafe(a.Outcome, delivery, cl.tool, cl.stableKey(delivery)),
	}
	if a.says.hasWait {
		e.RetryAfter = a.says.wait
	}
	if a.RPC != nil {
		e.Redactor = cl.redactor(a)
	}
	if a.Post != nil {
		e.Location, e.Healed = a.Post.Location, a.Post.Healed && a.Outcome == observe.SessionLost
	}
	return observe.NewError(e, cause(a), ctx.Err())
}

// stableKey reports whether a repeat from above would carry the call's key: from its
// intent or the host in any case, from the guard as long as the outcome is unknown.
func (cl *call) stableKey(d observe.Delivery) bool {
	return cl.named || cl.guarded && d == observe.Unknown
}

// cause is the raw error beneath: of the connection where it failed, else the
// SDK's.
func cause(a *attempt) error {
	if a.Post != nil && a.Post.Cause != nil {
		return a.Post.Cause
	}
	return a.err
}

// failingStatus is the HTTP status, where it is a part of the failure.
func failingStatus(a *attempt) int {
	if s := a.status(); s/100 != 2 {
		return s
	}
	return 0
}
