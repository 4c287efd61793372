package policy

import "time"

// Backoff is the wait before the repeat that follows n earlier ones: exponential
// with full jitter, r * min(limit, base * 2^n), for r uniform in [0,1). A base of
// zero or less is no wait, a limit of zero or less no bound; a doubling that
// would overflow stops growing. An r outside [0,1] is taken as the nearer end.
func Backoff(base, limit time.Duration, n int, r float64) time.Duration {
	ceiling := backoffCeiling(base, limit, n)
	switch {
	case r >= 1:
		return ceiling
	case r > 0:
		return time.Duration(r * float64(ceiling))
	}
	return 0
}

func backoffCeiling(base, limit time.Duration, n int) time.Duration {
	const longest = time.Duration(1<<63 - 1)
	if limit <= 0 {
		limit = longest
	}
	ceiling := max(base, 0)
	for ; n > 0 && ceiling > 0 && ceiling < limit; n-- {
		if ceiling > longest/2 {
			return limit
		}
		ceiling *= 2
	}
	return min(ceiling, limit)
}
