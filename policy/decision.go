package policy

import (
	"time"

	"github.com/surecall/surecall/observe"
)

// Action is what is done after an attempt.
type Action string

const (
	// Stop ends the call with what the attempt came to.
	Stop Action = "stop"
	// Repeat sends the call again after the decision's wait.
	Repeat Action = "repeat"
)

// A Decision is the answer of [Tool.Decide].
type Decision struct {
	Action Action
	// Wait before the repeat; zero with Stop.
	Wait time.Duration
	// Cured says that the cause of the failure is gone, such as a lost session that has
	// been renewed: the repeat adds no load to a server in trouble, and costs no budget.
	Cured bool
	// Reason in words, for people: one of a fixed set of texts, never words of a
	// server.
	Reason string
	// Rule that gave the decision: a rule's name, "default", or "annotations"
	// where it rests on a safety that the server's hints raised.
	Rule string
}

// An Attempt is what Decide is told about the attempt that just ended.
type Attempt struct {
	Outcome observe.Outcome
	// Delivery is the gravest of the attempt's POSTs, after [Tool.Declares].
	Delivery observe.Delivery
	// Status is the HTTP status, or 0.
	Status int
	// Code is the JSON-RPC error code; HasCode says whether there is one.
	Code    int64
	HasCode bool
	// EchoedID says that the error carried the request's id.
	EchoedID bool
	// ToolErrorText is the text of an isError result, or empty.
	ToolErrorText string
	// RetryAfter is the server's wait; HasRetryAfter says whether there is one.
	RetryAfter    time.Duration
	HasRetryAfter bool
	// DoNotRetry is a server's explicit word that the call must not be repeated.
	DoNotRetry bool
	// SessionEnded says that nothing more can be sent in the call's session.
	SessionEnded bool
}

// NoDeadline is the value of [State.Remaining] for a call without a deadline.
const NoDeadline time.Duration = -1

// A State is what Decide is told about the call so far.
type State struct {
	// Repeats already made.
	Repeats int
	// Remaining time until the deadline, or [NoDeadline]. Zero, and every other
	// negative value, is a deadline that has passed: nothing is repeated.
	Remaining time.Duration
	// Budget says that the retry budget has a token (see [Budget.Has]). It is not
	// looked at where the policy has no budget.
	Budget bool
	// Healed says that the lost session has been renewed below the SDK; HealSpent
	// that an earlier repeat of this call already rested on that.
	Healed, HealSpent bool
	// Refreshed says that the tool's definition has been fetched afresh after a
	// header mismatch; RefreshSpent that an earlier repeat of this call already
	// rested on that.
	Refreshed, RefreshSpent bool
	// Graver is the gravest delivery of the attempts before this one, empty before
	// the first; a call that was unknown once stays in question.
	Graver observe.Delivery
	// Rand is uniform in [0,1), for the jitter.
	Rand float64
}
