package otelobserve

import (
	"encoding/json"
	"strconv"

	"go.opentelemetry.io/otel/attribute"

	"github.com/surecall/surecall/observe"
)

// This file is all that reads the members of a record and of an attempt.

// fate is how a call or an attempt ended, in words that both have.
type fate struct {
	outcome  observe.Outcome
	delivery observe.Delivery
	code     string // of the server's JSON-RPC error, or empty
	id       string // of the JSON-RPC request, or empty
	message  string // of the server's error, redacted; else our words for what was seen
}

// attributes are what the spans of a call and of an attempt have in common.
func (f *fate) attributes() []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 8)
	attrs = append(attrs, keyOutcome.String(string(f.outcome)), keyDelivery.String(string(f.delivery)))
	attrs = appendText(attrs, keyRequestID, clip(f.id))
	return appendText(attrs, keyRPCStatus, f.code)
}

// callAttributes are those of a call's span.
func callAttributes(r *observe.Record, f *fate) []attribute.KeyValue {
	return append(f.attributes(), keyAttempts.Int(len(r.Attempts)),
		keyDecision.String(r.Decision.Action), keyReason.String(r.Decision.Reason))
}

// attemptAttributes are those of an attempt's span.
func attemptAttributes(a *observe.AttemptEnd, f *fate) []attribute.KeyValue {
	attrs := append(f.attributes(), keyPosts.Int(a.PostCount))
	if a.HTTPStatus != 0 {
		attrs = append(attrs, keyHTTPStatus.Int(a.HTTPStatus))
	}
	return attrs
}

// countAttempts counts the attempts of a call by what they came to.
func countAttempts(r *observe.Record, count func(observe.Outcome, observe.Delivery)) {
	for i := range r.Attempts {
		count(r.Attempts[i].Outcome, r.Attempts[i].Delivery)
	}
}

func callFate(r *observe.Record) fate {
	f := fate{
		outcome:  r.Outcome,
		delivery: r.Delivery,
		code:     decimal(r.JSONRPC.ErrorCode),
		id:       idText(r.JSONRPC.ID),
		message:  r.JSONRPC.ErrorMessage,
	}
	if f.message == "" {
		f.message = r.Reason
	}
	return f
}

func attemptFate(a *observe.AttemptEnd) fate {
	return fate{
		outcome:  a.Outcome,
		delivery: a.Delivery,
		code:     decimal(a.Code),
		id:       idText(json.RawMessage(a.RequestID)),
		message:  a.Reason,
	}
}

// errorType is the class of error that a call or an attempt ended with, or "": the
// JSON-RPC code, "tool_error", else the outcome.
func (f *fate) errorType() string {
	switch {
	case f.code != "":
		return f.code
	case f.outcome == observe.ToolError:
		return toolError
	case f.outcome.Usable():
		return ""
	}
	return string(f.outcome)
}

// unknownTool reports whether the server says that it has no such tool (MCP
// 2025-11-25, Tools, Error Handling: -32602; JSON-RPC 2.0: -32601).
func (f *fate) unknownTool() bool { return f.code == "-32602" || f.code == "-32601" }

func decimal(code *int64) string {
	if code == nil {
		return ""
	}
	return strconv.FormatInt(*code, 10)
}

// idText is a JSON-RPC id as text: a number as it is, a string without its quotes,
// null not at all.
func idText(raw json.RawMessage) string {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case raw[0] != '"':
		return string(raw)
	}
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// A repeat is one time that a call was sent again: by whom, and what for.
type repeat struct {
	origin observe.Origin
	reason observe.Outcome // what was repeated, where we did it
}

// repeats are ours, and what others were seen to repeat.
func repeats(r *observe.Record) []repeat {
	var all []repeat
	for i := 1; i < len(r.Attempts); i++ {
		if sent(&r.Attempts[i]) {
			all = append(all, repeat{observe.OriginMiddleware, r.Attempts[i-1].Outcome})
		}
	}
	if o := r.RetryOrigin; o != observe.OriginNone && o != observe.OriginMiddleware {
		all = append(all, repeat{origin: o})
	}
	return all
}

// sent reports whether an attempt went to the SDK. Local outcomes that are proven
// unsent are waits that ended early, and refusals.
func sent(a *observe.Attempt) bool {
	return a.PostCount > 0 || a.Layer != observe.LayerLocal || a.Delivery != observe.NotSent
}

// countWaits counts the waits of a call, those included that ended without an attempt.
func countWaits(r *observe.Record, count func(why observe.WaitReason, seconds float64)) {
	for i := range r.Attempts {
		for _, w := range r.Attempts[i].Waits {
			count(w.For, w.Ms/1000)
		}
		for j := range r.Attempts[i].Posts {
			for _, w := range r.Attempts[i].Posts[j].Waits {
				count(w.For, w.Ms/1000)
			}
		}
	}
}

// ledger is what the ledger made of a call; ok is false for calls that bypass it.
func ledger(r *observe.Record) (step, kind, settled string, ok bool) {
	if r.Ledger == nil {
		return "", "", "", false
	}
	return string(r.Ledger.Step), r.Ledger.Kind, r.Ledger.Settled, true
}
