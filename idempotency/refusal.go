package idempotency

import (
	"fmt"
	"time"
)

// The refusals, one for each [Kind]. Their texts are read by people and by models:
// what happened, whether it may have taken effect, what to do.

func (r *request) refuse(k Kind, since time.Time, format string, args ...any) *Error {
	return &Error{
		Kind: k, Server: r.Server, Tool: r.Tool, Since: since,
		Reason: fmt.Sprintf(format, args...),
	}
}

func (r *request) unknown(own *Entry) *Error {
	return r.refuse(KindUnknown, own.Started,
		"this same call was made %s and its outcome is unknown: it may already have taken effect. It was not sent again. "+
			"Check whether it took effect, or ask the user, before you allow a repeat", r.ago(own.Started))
}

func (r *request) equalCall(earlier *Entry, until time.Time) *Error {
	e := r.refuse(KindEqual, earlier.Started,
		"an equal call, with the same arguments, was made %s and its outcome is unknown: it may already have taken effect. "+
			"This one was not sent. Check whether the earlier one took effect, or ask the user, before you allow a repeat", r.ago(earlier.Started))
	e.Until = until
	return e
}

func (r *request) mismatch(since time.Time) *Error {
	what := "this intent"
	if r.Key != "" {
		what = "this idempotency key, or this intent with another key,"
	}
	return r.refuse(KindMismatch, since,
		"%s was used %s for another call: the tool, its arguments or the key differ. Nothing was sent. "+
			"Give another call another intent or key; repeat a call with what it had the first time", what, r.ago(since))
}

func (r *request) notKept(e *Entry) *Error {
	how := "with a result"
	if e.IsError {
		how = "with an error"
	}
	err := r.refuse(KindNotKept, e.Started,
		"this same call was made %s and was answered %s, which was not kept. It is done and was not sent again. "+
			"Look up what it did instead of repeating it", r.ago(e.Started), how)
	err.IsError = e.IsError
	return err
}

func (r *request) stillRunning(since time.Time, cause error) *Error {
	err := r.refuse(KindRunning, since,
		"this same call was begun %s and is still running. It was not sent a second time. Wait, then ask for it again", r.ago(since))
	err.cause = cause
	return err
}

func (r *request) storeFailed(cause error) *Error {
	err := r.refuse(KindStore, time.Time{},
		"the ledger of calls cannot be used, so nothing was sent: a repeat could not be recognised")
	err.cause = cause
	return err
}

// settleFailed is not a refusal: the call was made.
func settleFailed(e *Entry, cause error) *Error {
	return &Error{
		Kind: KindStore, Server: e.Server, Tool: e.Tool, Since: e.Started, cause: cause,
		Reason: "the call was made, but the ledger of calls cannot be written: its outcome will count as unknown",
	}
}

// ago tells a time so that it needs no other clock.
func (r *request) ago(t time.Time) string {
	return fmt.Sprintf("at %s (%s ago)", t.UTC().Format(time.RFC3339), max(r.now.Sub(t), 0).Round(time.Second))
}
