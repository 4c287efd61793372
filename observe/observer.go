package observe

import (
	"context"
	"time"
)

// An Observer follows calls while they are under way, where a [Record] tells them
// when they are over: it can put something into their context, such as a span, that
// reaches everything below. Each of its functions may be nil. They are called on the
// way of a call, by many goroutines at once, and must not block; a panic in one is
// swallowed, and the call goes on as if it had done nothing.
//
// A function that announces something returns another that is called at its end, or
// nil. That one gets nil where a panic ended what was announced.
type Observer struct {
	// SessionStarted is called when a session's handshake has succeeded.
	SessionStarted func(context.Context, SessionStart) (ended func(error))
	// CallStarted is called before anything is done about a tools/call. The call goes
	// on with the context returned, which must be derived from the one given.
	CallStarted func(context.Context, CallStart) (_ context.Context, ended func(*Record))
	// AttemptStarted is called when an attempt has been let through, before it is
	// sent; not for one that was refused here. meta is added to the _meta of its
	// requests and changes nothing that stands there.
	AttemptStarted func(context.Context, AttemptStart) (_ context.Context, meta map[string]string, ended func(*AttemptEnd))
	// BreakerChanged is called with the breaker's lock held.
	BreakerChanged func(BreakerChange)
}

// SessionStart says which session began.
type SessionStart struct {
	Started         time.Time // when the handshake began
	Server          string    // as in records
	Endpoint        string    // without query and credentials; empty without HTTP
	ProtocolVersion string
}

// CallStart says which call began.
type CallStart struct {
	Started         time.Time
	Server          string // as in records
	Endpoint        string // without query and credentials; empty without HTTP
	Tool            string
	Safety          string
	ProtocolVersion string
	SessionID       string // empty where the transport or the version has none
}

// AttemptStart says which attempt began.
type AttemptStart struct {
	Number int // from 1
	// Waits are those before the attempt; read only.
	Waits []Wait
	// Meta is the request's _meta; read only.
	Meta map[string]any
}

// AttemptEnd says what an attempt came to.
type AttemptEnd struct {
	Attempt
	RequestID   string // JSON-RPC id of the deciding request, as JSON; empty where no transport of ours saw it
	Code        *int64 // of the server's JSON-RPC error
	HTTPVersion string // such as "1.1" or "2"; empty without a response
}

// BreakerChange says that a circuit breaker went from one state to another: closed,
// half-open or open.
type BreakerChange struct {
	Server   string
	Tool     string // empty for the server's own breaker
	From, To string
}
