package policy

import "time"

// field numbers the settings, so that a [Tool] can remember which rule gave each
// of them.
type field int

const (
	fieldNone field = iota // what no setting decides
	fieldSafety
	fieldTrust
	fieldRepeats
	fieldBackoff
	fieldBackoffCap
	fieldRetryAfterCap
	fieldSignals
	fieldAnnounce
	fieldThrottled
	fieldHealed
	fieldBudget
	fieldCodes
	fieldStatuses
	fieldOutcomes
	fieldToolErrors
	fieldRefusedStatuses
	fieldRefusedCodes
	fieldConnect
	fieldHeaders
	fieldSilence
	fieldAttempt
	fieldCall
	fieldHeal
	fieldHealTimeout
	fieldProgress
	fieldFailures
	fieldOpen
	fieldRate
	fieldBurst
	fieldNoWait
	fieldGate
	fieldKeyHeader
	fieldKeyMeta
	fieldKeyArgument
	fieldKeyGuard
	fieldReconcile
	fieldSurface
	fieldStrict
	fieldTolerate
	fieldResultTypes
	fieldMaxResult
	fieldCount
)

// A setting has the name that people read, and says how a rule's value becomes a
// tool's. take reports false, and does nothing, where the rule does not set it.
type setting struct {
	name string
	take func(*Tool, *Settings) bool
}

// fields is the one list of what can be set. The names are those of [Settings] in
// snake case; what a file needs to know beside them, it reads off the types and tags.
var fields = [fieldCount]setting{
	fieldNone:            {"", func(*Tool, *Settings) bool { return false }},
	fieldSafety:          {"safety", func(t *Tool, s *Settings) bool { return word(&t.Safety, s.Safety, Unsafe) }},
	fieldTrust:           {"trust_annotations", func(t *Tool, s *Settings) bool { return flag(&t.TrustAnnotations, s.TrustAnnotations) }},
	fieldRepeats:         {"retry.repeats", func(t *Tool, s *Settings) bool { return number(&t.Retry.Repeats, s.Retry.Repeats) }},
	fieldBackoff:         {"retry.backoff", func(t *Tool, s *Settings) bool { return number(&t.Retry.Backoff, s.Retry.Backoff) }},
	fieldBackoffCap:      {"retry.backoff_cap", func(t *Tool, s *Settings) bool { return number(&t.Retry.BackoffCap, s.Retry.BackoffCap) }},
	fieldRetryAfterCap:   {"retry.retry_after_cap", func(t *Tool, s *Settings) bool { return number(&t.Retry.RetryAfterCap, s.Retry.RetryAfterCap) }},
	fieldSignals:         {"retry.signals", func(t *Tool, s *Settings) bool { return names(&t.Retry.Signals, s.Retry.Signals) }},
	fieldAnnounce:        {"retry.announce", func(t *Tool, s *Settings) bool { return flag(&t.Retry.Announce, s.Retry.Announce) }},
	fieldThrottled:       {"retry.throttled", func(t *Tool, s *Settings) bool { return flag(&t.Retry.Throttled, s.Retry.Throttled) }},
	fieldHealed:          {"retry.healed", func(t *Tool, s *Settings) bool { return flag(&t.Retry.Healed, s.Retry.Healed) }},
	fieldBudget:          {"retry.budget", func(t *Tool, s *Settings) bool { return number(&t.Retry.Budget, s.Retry.Budget) }},
	fieldCodes:           {"retry.codes", func(t *Tool, s *Settings) bool { return list(&t.Retry.Codes, s.Retry.Codes) }},
	fieldStatuses:        {"retry.statuses", func(t *Tool, s *Settings) bool { return list(&t.Retry.Statuses, s.Retry.Statuses) }},
	fieldOutcomes:        {"retry.outcomes", func(t *Tool, s *Settings) bool { return names(&t.Retry.Outcomes, s.Retry.Outcomes) }},
	fieldToolErrors:      {"retry.tool_errors", func(t *Tool, s *Settings) bool { return list(&t.Retry.ToolErrors, s.Retry.ToolErrors) }},
	fieldRefusedStatuses: {"retry.refused_statuses", func(t *Tool, s *Settings) bool { return list(&t.Retry.RefusedStatuses, s.Retry.RefusedStatuses) }},
	fieldRefusedCodes:    {"retry.refused_codes", func(t *Tool, s *Settings) bool { return list(&t.Retry.RefusedCodes, s.Retry.RefusedCodes) }},
	fieldConnect:         {"limits.connect", func(t *Tool, s *Settings) bool { return number(&t.Limits.Connect, s.Limits.Connect) }},
	fieldHeaders:         {"limits.headers", func(t *Tool, s *Settings) bool { return number(&t.Limits.Headers, s.Limits.Headers) }},
	fieldSilence:         {"limits.silence", func(t *Tool, s *Settings) bool { return number(&t.Limits.Silence, s.Limits.Silence) }},
	fieldAttempt:         {"limits.attempt", func(t *Tool, s *Settings) bool { return number(&t.Limits.Attempt, s.Limits.Attempt) }},
	fieldCall:            {"limits.call", func(t *Tool, s *Settings) bool { return number(&t.Limits.Call, s.Limits.Call) }},
	fieldHeal:            {"session.heal", func(t *Tool, s *Settings) bool { return flag(&t.Session.Heal, s.Session.Heal) }},
	fieldHealTimeout:     {"session.timeout", func(t *Tool, s *Settings) bool { return number(&t.Session.Timeout, s.Session.Timeout) }},
	fieldProgress:        {"limits.progress", func(t *Tool, s *Settings) bool { return pointed(&t.Limits.Progress, s.Limits.Progress) }},
	fieldFailures:        {"breaker.failures", func(t *Tool, s *Settings) bool { return number(&t.Breaker.Failures, s.Breaker.Failures) }},
	fieldOpen:            {"breaker.open", func(t *Tool, s *Settings) bool { return number(&t.Breaker.Open, s.Breaker.Open) }},
	fieldRate:            {"limiter.rate", func(t *Tool, s *Settings) bool { return number(&t.Limiter.Rate, s.Limiter.Rate) }},
	fieldBurst:           {"limiter.burst", func(t *Tool, s *Settings) bool { return number(&t.Limiter.Burst, s.Limiter.Burst) }},
	fieldNoWait:          {"limiter.no_wait", func(t *Tool, s *Settings) bool { return flag(&t.Limiter.NoWait, s.Limiter.NoWait) }},
	fieldGate:            {"gate", func(t *Tool, s *Settings) bool { return word(&t.Gate, s.Gate, GateServer) }},
	fieldKeyHeader:       {"key.header", func(t *Tool, s *Settings) bool { return text(&t.Key.Header, s.Key.Header) }},
	fieldKeyMeta:         {"key.meta", func(t *Tool, s *Settings) bool { return text(&t.Key.Meta, s.Key.Meta) }},
	fieldKeyArgument:     {"key.argument", func(t *Tool, s *Settings) bool { return text(&t.Key.Argument, s.Key.Argument) }},
	fieldKeyGuard:        {"key.guard", func(t *Tool, s *Settings) bool { return number(&t.Key.Guard, s.Key.Guard) }},
	fieldReconcile:       {"reconcile", func(t *Tool, s *Settings) bool { return pointed(&t.Reconcile, s.Reconcile) }},
	fieldSurface:         {"surface", func(t *Tool, s *Settings) bool { return word(&t.Surface, s.Surface, SurfaceCaller) }},
	fieldStrict:          {"strict", func(t *Tool, s *Settings) bool { return flag(&t.Reading.Strict, s.Strict) }},
	fieldTolerate:        {"tolerate", func(t *Tool, s *Settings) bool { return names(&t.Reading.Tolerate, s.Tolerate) }},
	fieldResultTypes:     {"result_types", func(t *Tool, s *Settings) bool { return list(&t.Reading.ResultTypes, s.ResultTypes) }},
	fieldMaxResult:       {"max_result", func(t *Tool, s *Settings) bool { return number(&t.MaxResult, s.MaxResult) }},
}

// Fields lists the names of all settings, in the order of [Settings]. They are
// the names that [Tool.Source] takes and that a [RuleError] gives.
func Fields() []string {
	all := make([]string, 0, fieldCount-1)
	for _, f := range fields[fieldNone+1:] {
		all = append(all, f.name)
	}
	return all
}

// number takes a positive value as it is and a negative one as off; zero and NaN
// set nothing.
func number[T int | int64 | float64 | time.Duration](dst *T, v T) bool {
	switch {
	case v > 0:
		*dst = v
	case v < 0:
		*dst = 0
	default:
		return false
	}
	return true
}

func flag(dst, v *bool) bool {
	if v == nil {
		return false
	}
	*dst = *v
	return true
}

func pointed[T any](dst **T, v *T) bool {
	if v == nil {
		return false
	}
	*dst = v
	return true
}

func text(dst *string, v string) bool {
	if v == "" {
		return false
	}
	*dst = v
	return true
}

// word takes one of a closed set. A misspelt word decides as well, for the
// cautious value: it must not leave the field to a broader rule below.
func word[T interface {
	~string
	Valid() bool
}](dst *T, v, cautious T) bool {
	switch {
	case v == "":
		return false
	case v.Valid():
		*dst = v
	default:
		*dst = cautious
	}
	return true
}

func list[T any](dst *[]T, v []T) bool {
	if v == nil {
		return false
	}
	*dst = v
	return true
}

func names[T ~string](dst *[]T, v []string) bool {
	if v == nil {
		return false
	}
	typed := make([]T, len(v))
	for i, s := range v {
		typed[i] = T(s)
	}
	*dst = typed
	return true
}
