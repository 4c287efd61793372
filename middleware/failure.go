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
		RepeatSafe: repeatSafe(a.Outcome, delivery, cl.tool, cl.stable),
	}
	if a.says.hasWait {
		e.RetryAfter = a.says.wait
	}
	if a.Post != nil {
		e.Location, e.Healed = a.Post.Location, a.Post.Healed && a.Outcome == observe.SessionLost
	}
	return observe.NewError(e, cause(a), ctx.Err())
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

// attemptRecords tells the attempts for records and errors.
func (cl *call) attemptRecords() []observe.Attempt {
	records := make([]observe.Attempt, len(cl.attempts))
	for i := range cl.attempts {
		a := &cl.attempts[i]
		records[i] = observe.Attempt{
			Outcome:    a.Outcome,
			Layer:      a.Outcome.Layer(),
			Delivery:   a.Delivery,
			Posts:      len(a.posts),
			HTTPStatus: a.status(),
			Reconciled: string(a.reconciled),
			WaitMs:     milliseconds(a.wait),
			DurationMs: milliseconds(a.took),
		}
	}
	return records
}
