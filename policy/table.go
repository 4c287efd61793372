package policy

import (
	"net/http"
	"slices"
	"strings"

	"github.com/surecall/surecall/observe"
)

// codeHeaderMismatch: the HTTP headers of a request contradict its body (MCP
// 2026-07-28). The client's copy of the tool's definition is out of date.
const codeHeaderMismatch = -32020

// A ruling is what the decision table and the rules say of an attempt, before the
// bounds of the call are looked at.
type ruling struct {
	repeat bool
	cured  bool // the cause is gone: no backoff
	reason string
	from   field // the setting that says so
}

func refuse(reason string) ruling { return ruling{reason: reason} }

// ruling is the decision table, one outcome after the other.
func (t *Tool) ruling(a *Attempt, s *State) ruling {
	switch a.Outcome {
	case observe.ToolSuccess:
		return refuse("the tool succeeded")
	case observe.InputRequired:
		return refuse("the server asks for input, which is not a failure")
	case observe.ExtensionResult:
		return refuse("not a failure: the result is an extension's")
	case observe.ToolError:
		return t.named(a, "the tool's own error is an answer, and no rule repeats it")
	case observe.JSONRPCError:
		return t.rpcError(a, s)
	case observe.MalformedJSON, observe.InvalidEnvelope, observe.InvalidToolResult:
		return t.named(a, "the answer cannot be used, and no rule repeats it")
	case observe.HTTPError:
		return t.httpError(a, s)
	case observe.NetworkError:
		return t.unlessSent(a, "the connection failed after sending")
	case observe.StreamIncomplete:
		return t.ifHarmless("the answer was cut short")
	case observe.UnexpectedContent, observe.Redirected, observe.ResultTooLarge:
		return t.named(a, "another attempt would end the same way, and no rule repeats it")
	case observe.SessionLost:
		return t.sessionLost(s)
	case observe.Timeout:
		return t.unlessSent(a, "no answer within the limit")
	case observe.Canceled:
		return refuse("the caller gave up")
	case observe.BreakerOpen:
		return refuse("the circuit breaker is open")
	case observe.RateLimited:
		return refuse("held back by the rate limit")
	case observe.Blocked:
		return refuse("sending could repeat an effect")
	}
	return refuse("the outcome is not known to the policy")
}

// unlessSent repeats what never left for every class, and the rest where that is
// harmless.
func (t *Tool) unlessSent(a *Attempt, reason string) ruling {
	if a.Delivery == observe.NotSent {
		return ruling{repeat: true, reason: "nothing was sent"}
	}
	return t.ifHarmless(reason)
}

func (t *Tool) ifHarmless(reason string) ruling {
	if !t.Safety.Harmless() {
		return ruling{reason: reasonUnsafe, from: fieldSafety}
	}
	return ruling{repeat: true, reason: reason, from: fieldSafety}
}

func (t *Tool) httpError(a *Attempt, s *State) ruling {
	switch {
	case throttling(a.Status):
		return t.throttled(a)
	case t.declared(a), headerMismatch(a):
		return t.rpcError(a, s)
	case transient(a.Status):
		return t.ifHarmless("a passing failure of the server or a gateway")
	case a.Status == http.StatusConflict && t.Safety == Keyed:
		return ruling{repeat: true, reason: "the first attempt may still be running: ask again with the same key", from: fieldSafety}
	case a.Status == http.StatusUnprocessableEntity && t.Safety == Keyed:
		return t.named(a, "the key was used with other arguments")
	}
	return t.named(a, "the status is not a passing failure, and no rule repeats it")
}

// throttled believes a server that says it did not run the tool, unless the
// operator does not.
func (t *Tool) throttled(a *Attempt) ruling {
	const reason = "the server holds calls back"
	if t.Retry.Throttled && a.Delivery == observe.Refused {
		return ruling{repeat: true, reason: reason, from: fieldThrottled}
	}
	return t.ifHarmless(reason)
}

// rpcError rules on errors that carry a JSON-RPC code, and on what the operator
// declares refused.
func (t *Tool) rpcError(a *Attempt, s *State) ruling {
	if headerMismatch(a) && t.mismatchCured(a, s) {
		return ruling{repeat: true, cured: true, reason: "the tool's definition has been refreshed"}
	}
	if t.declared(a) {
		from := fieldRefusedCodes
		if slices.Contains(t.Retry.RefusedStatuses, a.Status) {
			from = fieldRefusedStatuses
		}
		return ruling{repeat: true, reason: "declared to mean that the tool was not run", from: from}
	}
	if headerMismatch(a) {
		return t.named(a, "the headers do not match the tool's definition, and refreshing it did not help")
	}
	return t.named(a, "the server's error is an answer, and no rule repeats it")
}

func (t *Tool) declared(a *Attempt) bool {
	d, _ := t.Declares(a.Outcome, a.Status, a.Code, a.HasCode)
	return d == observe.Refused
}

func headerMismatch(a *Attempt) bool {
	return a.HasCode && a.Code == codeHeaderMismatch && a.Delivery == observe.Refused
}

func (t *Tool) mismatchCured(a *Attempt, s *State) bool {
	return s.Refreshed && !s.RefreshSpent && t.CuredByRefresh(*a)
}

// CuredByRefresh reports whether the attempt ended because the client's copy of the
// tool's definition is out of date, and may be repeated once that has been fetched
// afresh: see [State.Refreshed]. An unsafe tool needs the request's own id in the error
// as well, which ties the refusal to this very call.
func (t *Tool) CuredByRefresh(a Attempt) bool {
	return headerMismatch(&a) && (a.EchoedID || t.Safety.Harmless())
}

func (t *Tool) sessionLost(s *State) ruling {
	switch {
	case !s.Healed:
		return refuse("the session was not renewed")
	case s.HealSpent:
		return refuse("the session is lost again after it was renewed")
	case t.Safety.Harmless():
		return ruling{repeat: true, cured: true, reason: "the session has been renewed", from: fieldSafety}
	case t.Retry.Healed:
		return ruling{repeat: true, cured: true, reason: "the session has been renewed", from: fieldHealed}
	}
	return ruling{reason: "the server refused the call with its lost session; it is renewed for the next call", from: fieldHealed}
}

// transient statuses may pass by themselves: of HTTP (RFC 9110), and 520-524 of
// content delivery networks whose origin failed.
func transient(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout, 520, 521, 522, 523, 524:
		return true
	}
	return false
}

// named repeats what a rule names, where that is harmless; else it stops for the
// reason given.
func (t *Tool) named(a *Attempt, otherwise string) ruling {
	from := t.namedBy(a)
	switch {
	case from == fieldNone:
		return refuse(otherwise)
	case !t.Safety.Harmless():
		return ruling{reason: reasonUnsafe, from: fieldSafety}
	}
	return ruling{repeat: true, reason: "a rule repeats this", from: from}
}

// namedBy returns the setting that names the attempt.
func (t *Tool) namedBy(a *Attempt) field {
	isHTTP := a.Outcome == observe.HTTPError
	hasCode := a.HasCode && (isHTTP || a.Outcome == observe.JSONRPCError)
	switch {
	case slices.Contains(t.Retry.Outcomes, a.Outcome):
		return fieldOutcomes
	case isHTTP && slices.Contains(t.Retry.Statuses, a.Status):
		return fieldStatuses
	case hasCode && slices.Contains(t.Retry.Codes, a.Code):
		return fieldCodes
	case a.Outcome == observe.ToolError && t.matchesToolError(a.ToolErrorText):
		return fieldToolErrors
	}
	return fieldNone
}

func (t *Tool) matchesToolError(text string) bool {
	return slices.ContainsFunc(t.Retry.ToolErrors, func(part string) bool {
		return part != "" && strings.Contains(text, part)
	})
}
