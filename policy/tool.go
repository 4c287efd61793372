package policy

import (
	"time"

	"github.com/surecall/surecall/observe"
)

// A Tool is the policy in force for one tool of one server: every setting has a
// value. It is immutable and safe for concurrent use.
type Tool struct {
	Server, Name string
	// Rule names the rule that set the safety class, or "default", or
	// "annotations".
	Rule   string
	Safety Safety

	Retry   EffectiveRetry
	Limits  Limits // zero is no limit
	Breaker Breaker
	Limiter EffectiveLimiter
	Key     Key
	Surface Surface
	Reading observe.Reading
	// MaxResult in bytes; zero is no limit.
	MaxResult int64
}

// EffectiveRetry is [Retry] with every value resolved.
type EffectiveRetry struct {
	Repeats         int
	Backoff         time.Duration
	BackoffCap      time.Duration
	RetryAfterCap   time.Duration // zero is no cap
	Throttled       bool
	Budget          float64 // zero is no budget: unlimited
	Codes           []int64
	Statuses        []int
	Outcomes        []observe.Outcome
	ToolErrors      []string
	RefusedStatuses []int
	RefusedCodes    []int64
}

// EffectiveLimiter is [Limiter] with every value resolved; Rate 0 is no limit.
type EffectiveLimiter struct {
	Rate   float64
	Burst  int
	NoWait bool
}
