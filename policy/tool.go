package policy

import (
	"net/http"
	"slices"
	"time"

	"github.com/surecall/surecall/observe"
)

// A Tool is the policy in force for one tool of one server: every setting has a
// value. It must not be modified; it is safe for concurrent use. The zero value
// is an unsafe tool that is never repeated and has no limits; for the defaults
// see [Defaults].
type Tool struct {
	Server, Name string
	// Rule names the rule that set the safety class, or "default", or
	// "annotations".
	Rule             string
	Safety           Safety
	TrustAnnotations bool

	Retry   EffectiveRetry
	Limits  Limits // zero is no limit
	Session EffectiveSession
	Breaker Breaker // zero is no breaker
	Limiter EffectiveLimiter
	Gate    Gate
	Key     Key // Header is empty unless the tool is keyed
	// Reconcile is nil, or has an empty Tool, where nobody finds out.
	Reconcile *Reconcile
	Surface   Surface
	Reading   observe.Reading
	// MaxResult in bytes; zero is no limit.
	MaxResult int64

	sources [fieldCount]string
}

// EffectiveRetry is [Retry] with every value resolved.
type EffectiveRetry struct {
	Repeats         int
	Backoff         time.Duration
	BackoffCap      time.Duration // zero is no cap
	RetryAfterCap   time.Duration // zero is no cap
	Signals         []Signal
	Announce        bool
	Throttled       bool
	Healed          bool
	Budget          float64 // zero is no budget: unlimited
	Codes           []int64
	Statuses        []int
	Outcomes        []observe.Outcome
	ToolErrors      []string
	RefusedStatuses []int
	RefusedCodes    []int64
}

// EffectiveSession is [Session] with every value resolved.
type EffectiveSession struct {
	Heal    bool
	Timeout time.Duration // zero is no limit
}

// EffectiveLimiter is [Limiter] with every value resolved; Rate 0 is no limit.
type EffectiveLimiter struct {
	Rate   float64
	Burst  int
	NoWait bool
}

// Source says where the value of a setting comes from: the name of a rule,
// "default", or "annotations" for a safety that the server's hints raised. The
// settings' names are those of [Fields]; an unknown one has the source "default".
func (t *Tool) Source(setting string) string {
	for f := range fields {
		if fields[f].name == setting {
			return t.source(field(f))
		}
	}
	return sourceDefault
}

// Declares says what the operator's words make of one answer's delivery: Refused
// for a status or code declared to mean that the tool was not run, Unknown for
// 429 and 425 where they are not believed. False means that they say nothing,
// and the delivery stays as it was seen.
//
// It speaks of the one POST that was answered so, never of the POSTs before it:
// apply it before taking the gravest of an attempt.
func (t *Tool) Declares(o observe.Outcome, status int, code int64, hasCode bool) (observe.Delivery, bool) {
	isHTTP := o == observe.HTTPError
	switch {
	case t == nil, !isHTTP && o != observe.JSONRPCError:
		return "", false
	case isHTTP && throttling(status) && !t.Retry.Throttled:
		return observe.Unknown, true
	case isHTTP && slices.Contains(t.Retry.RefusedStatuses, status):
		return observe.Refused, true
	case hasCode && slices.Contains(t.Retry.RefusedCodes, code):
		return observe.Refused, true
	}
	return "", false
}

// throttling reports whether a status speaks of load or timing only: 429 (RFC
// 6585, section 4) and 425 (RFC 8470, section 5.2).
func throttling(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusTooEarly
}

func (t *Tool) source(f field) string {
	if f == fieldSafety && t.Rule != "" {
		return t.Rule
	}
	if s := t.sources[f]; s != "" {
		return s
	}
	return sourceDefault
}
