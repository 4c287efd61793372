package policy

import "time"

const (
	sourceDefault     = "default"
	sourceAnnotations = "annotations"
)

// Defaults returns the policy for a tool that no rule says anything about. What
// is not named here is off or empty: no limit on headers or an attempt, no
// limiter, nothing repeated beyond the decision table.
func Defaults() Tool {
	return Tool{
		Rule:   sourceDefault,
		Safety: Unsafe,
		Retry: EffectiveRetry{
			Repeats:       2,
			Backoff:       200 * time.Millisecond,
			BackoffCap:    5 * time.Second,
			RetryAfterCap: 60 * time.Second,
			Signals:       Signals(),
			Throttled:     true,
			Budget:        10,
		},
		Limits: Limits{
			Connect: 10 * time.Second,
			Silence: 5 * time.Minute,
			Call:    10 * time.Minute,
		},
		Session:   EffectiveSession{Heal: true, Timeout: 10 * time.Second},
		Breaker:   Breaker{Failures: 5, Open: 30 * time.Second},
		Gate:      GateServer,
		Key:       Key{Guard: 10 * time.Minute},
		Surface:   SurfaceCaller,
		MaxResult: 64 << 20,
	}
}

// defaultBurst is the size of a limiter's bucket where only its rate is set.
const defaultBurst = 1
