package policy

import "time"

const reasonUnsafe = "the tool may have run, and a repeat could double its effect"

// Decide says whether the call is sent again after an attempt, and after what
// wait. It is pure and total: every attempt has a decision, and what it does not
// know stops. A nil tool has the defaults. It allocates nothing.
//
// First comes the decision table with the rules (docs/policy.md); then what
// bounds every repeat: a server's do-not-retry, the number of repeats, the cap on
// a server's wait, the budget (unless the cause is gone), the deadline. A server's wait is kept in full,
// with the backoff's jitter on top if that still ends before the deadline, so
// that clients told to wait equally long do not all come back at once.
func (t *Tool) Decide(a Attempt, s State) Decision {
	if t == nil {
		t = &unconfigured
	}
	d := t.decide(&a, &s)
	if d.Action == Repeat && !t.safeRepeat(&a, &s) {
		return t.stop(reasonUnsafe, fieldSafety)
	}
	return d
}

var unconfigured = Defaults()

// safeRepeat holds the one rule against whatever was decided before it: this
// attempt and all attempts before it must allow a repeat.
func (t *Tool) safeRepeat(a *Attempt, s *State) bool {
	return t.Safety.SafeRepeat(a.Delivery) && (s.Graver == "" || t.Safety.SafeRepeat(s.Graver))
}

func (t *Tool) decide(a *Attempt, s *State) Decision {
	r := t.ruling(a, s)
	switch {
	case !r.repeat:
		return t.stop(r.reason, r.from)
	case a.DoNotRetry:
		return t.stop("the server asks not to repeat the call", fieldNone)
	case a.SessionEnded:
		return t.stop("the session has ended", fieldNone)
	case t.Retry.Repeats <= 0:
		return t.stop("the policy allows no repeat", fieldRepeats)
	case s.Repeats >= t.Retry.Repeats:
		return t.stop("no repeats left", fieldRepeats)
	case a.HasRetryAfter && t.Retry.RetryAfterCap > 0 && a.RetryAfter > t.Retry.RetryAfterCap:
		return t.stop("the server asks for a longer wait than the policy allows", fieldRetryAfterCap)
	case t.Retry.Budget > 0 && !s.Budget && !r.cured:
		return t.stop("the retry budget is spent", fieldBudget)
	}
	wait := t.wait(r, a, s)
	switch {
	case endsInTime(wait, s):
		return Decision{Action: Repeat, Wait: wait, Reason: r.reason, Rule: t.source(r.from), Cured: r.cured}
	case a.HasRetryAfter:
		return t.stop("the server's wait cannot end before the deadline", fieldNone)
	}
	return t.stop("the wait before a repeat cannot end before the deadline", fieldNone)
}

func (t *Tool) stop(reason string, from field) Decision {
	return Decision{Action: Stop, Reason: reason, Rule: t.source(from)}
}

func (t *Tool) wait(r ruling, a *Attempt, s *State) time.Duration {
	var jitter time.Duration
	if !r.cured {
		jitter = Backoff(t.Retry.Backoff, t.Retry.BackoffCap, s.Repeats, s.Rand)
	}
	if !a.HasRetryAfter {
		return jitter
	}
	server := max(a.RetryAfter, 0)
	if both := server + jitter; both > server && endsInTime(both, s) { // not greater: overflow
		return both
	}
	return server
}

func endsInTime(wait time.Duration, s *State) bool {
	return s.Remaining == NoDeadline || wait < s.Remaining
}
