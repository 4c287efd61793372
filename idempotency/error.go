package idempotency

import (
	"fmt"
	"time"
)

// A Kind says why a call was not begun.
type Kind string

// The kinds of [Error].
const (
	// KindUnknown: the same call was made before, and may have taken effect.
	KindUnknown Kind = "unknown"
	// KindEqual: an equal call was made a short time ago, and may have taken effect.
	KindEqual Kind = "equal"
	// KindMismatch: the intent or the key belongs to another call.
	KindMismatch Kind = "mismatch"
	// KindNotKept: the same call was made before and was answered, but its answer was
	// not kept.
	KindNotKept Kind = "not_kept"
	// KindRunning: the same call is running, and the context ended before its answer.
	KindRunning Kind = "running"
	// KindStore: the ledger could not be read or written.
	KindStore Kind = "store"
)

// An Error says why a call was not begun. Nothing was sent.
type Error struct {
	Kind Kind
	// Reason says in one or two sentences, fit for people and models, what is known
	// and what to do. It holds no names, keys or texts of others.
	Reason string
	// Since is when the earlier call was begun; zero for KindStore.
	Since time.Time
	// Until is when the guard's window ends, for KindEqual; else zero.
	Until time.Time
	// IsError says, for KindNotKept, that the answer was an error.
	IsError bool
	// Server and Tool are those of the call.
	Server, Tool string

	cause error
}

// Error says the tool, the reason and the cause.
func (e *Error) Error() string {
	s := fmt.Sprintf("tool %q not called: %s", e.Tool, e.Reason)
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

// Unwrap returns the store's error, or the context's for KindRunning; else nil.
func (e *Error) Unwrap() error { return e.cause }
