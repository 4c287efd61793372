package policy

import (
	"time"

	"github.com/surecall/surecall/observe"
)

// A Policy is a list of rules. The zero value, and a nil pointer, mean the
// defaults: every tool is unsafe, and nothing with a possible effect is ever
// repeated. A policy must not be modified once it is in use; it is then safe for
// concurrent use.
//
// Precedence in one sentence: for each setting on its own, the first rule that
// matches the tool and sets it decides; what no rule sets has its default.
type Policy struct {
	Rules []Rule
}

// A Rule sets something for the tools it matches.
type Rule struct {
	// Name is what records and reasons call the rule. Empty means "rules[i]". The
	// name "defaults" is that of a last rule which matches every tool.
	Name string
	// Server is a glob over the server's name (see [Match]); empty matches every
	// server.
	Server string
	// Tool is a glob over the tool's name; empty matches every tool.
	Tool string

	Settings

	origin *origin // where the rule was read from; nil where it is written in Go
}

// Settings are the things a rule can set. A zero field is not set by that rule.
// A negative duration or number turns the thing off: no limit, no repeat, no
// breaker (off in a file). A list is taken whole, never merged; an empty one that is not nil
// sets "none".
type Settings struct {
	// Safety class of the tool. Default [Unsafe].
	Safety Safety
	// TrustAnnotations lets the server's readOnlyHint and idempotentHint raise an
	// unset safety to ReadOnly or Idempotent. Default false: annotations are
	// untrusted unless the server is (MCP 2026-07-28, tools).
	TrustAnnotations *bool

	Retry   Retry
	Limits  Limits
	Session Session
	Breaker Breaker
	Limiter Limiter
	// Gate says whom a 429 with a wait holds back. Default [GateServer].
	Gate Gate
	Key  Key
	// Reconcile names a tool that finds out what became of a call whose outcome is
	// unknown. Default none; an empty one sets "none". It is taken whole, never merged,
	// and has no effect on tools whose repeat is harmless in any case.
	Reconcile *Reconcile

	// Surface says what the model sees of a failure. Default [SurfaceCaller].
	Surface Surface
	// Strict refuses answers that deviate harmlessly from the specifications.
	// Default false.
	Strict *bool
	// Tolerate lists deviations that are accepted in any case (the names of
	// observe.Deviation).
	Tolerate []string `form:"deviation"`
	// ResultTypes lists values of resultType that belong to extensions the host
	// declared.
	ResultTypes []string
	// MaxResult is the largest answer in bytes. Default 64 MiB; negative is no
	// limit.
	MaxResult int64 `form:"size" off:"no limit"`
}

// Retry says what is repeated, how often and after what wait.
type Retry struct {
	// Repeats is the number of repeats beyond the first attempt. Default 2;
	// negative is none.
	Repeats int `off:"no repeat"`
	// Backoff is the wait before the first repeat; it doubles with each repeat,
	// with full jitter: the wait is uniform between 0 and that value. Default
	// 200 ms; negative is no wait.
	Backoff time.Duration `off:"no wait"`
	// BackoffCap bounds the backoff. Default 5 s; negative is no bound.
	BackoffCap time.Duration `off:"no cap"`
	// RetryAfterCap bounds a server's wait: a longer one stops the call, it is never
	// shortened. Default 60 s; negative is no bound.
	RetryAfterCap time.Duration `off:"no cap"`
	// Signals lists the dialects in which a server's wait is read (the names of
	// [Signal]). Default all. A server's word not to repeat a call is read in any case.
	Signals []string `form:"signal"`
	// Announce tells the server with each attempt its number, and the time that is left,
	// in _meta. Default false.
	Announce *bool
	// Throttled lets 429 and 425 be believed to strike before execution, so that
	// even an unsafe tool is repeated. Default true. Where it is false they count
	// as unknown: harmless tools are still repeated, unsafe ones are not.
	Throttled *bool
	// Healed lets an unsafe tool be repeated once when its lost session has been
	// renewed: the server's 404 is believed to mean that the tool was not run.
	// Default false. Harmless tools are repeated in any case.
	Healed *bool
	// Budget is the size of the retry budget of a server and tool, in repeats; a
	// repeat costs 1, a success returns 0.1. Default 10; negative is no budget,
	// that is, unlimited.
	Budget float64 `off:"an unlimited budget"`

	// Codes are JSON-RPC error codes that are repeated, for tools whose repeat is
	// harmless. They match JSONRPC_ERROR and an HTTP_ERROR that carries the code.
	Codes []int64
	// Statuses are HTTP statuses that are repeated beyond the default table, for
	// tools whose repeat is harmless.
	Statuses []int
	// Outcomes are outcomes that are repeated beyond the default table, for tools
	// whose repeat is harmless (the names of observe.Outcome).
	Outcomes []string `form:"outcome"`
	// ToolErrors are substrings of an isError result's text that make it
	// repeatable, for tools whose repeat is harmless.
	ToolErrors []string

	// RefusedStatuses are HTTP statuses that the operator declares to mean, on
	// this server, that the tool was not run. They are repeated for every class.
	RefusedStatuses []int
	// RefusedCodes are JSON-RPC codes with the same meaning.
	RefusedCodes []int64
}

// Limits bound the time of a call. They run for each POST; the whole call is
// bounded by Call, or by the caller's own deadline where there is one. In a
// [Tool], zero is no limit.
type Limits struct {
	// Connect bounds getting a connection. Default 10 s.
	Connect time.Duration `off:"no limit"`
	// Headers bounds the wait for response headers once the request is written.
	// Default none: a server that answers in JSON sends headers last.
	Headers time.Duration `off:"no limit"`
	// Silence bounds the time without a byte on a response body. Default 5 min.
	Silence time.Duration `off:"no limit"`
	// Attempt bounds one POST with its answer; over stdio, one request from the moment
	// it is to be written. Default none.
	Attempt time.Duration `off:"no limit"`
	// Call bounds the whole call when the caller gives no deadline. Default 10 min.
	Call time.Duration `off:"no limit"`
	// Progress lets the server's progress notifications for the call begin Attempt anew,
	// never Call or the caller's deadline. Silence is over with any byte, progress
	// included; so the call asks for progress (MCP, progress: progressToken) unless the
	// caller has done so. Where neither bounds the call it is bounded by [Limits.Hard].
	// Default false.
	Progress *bool
}

// Extended reports whether progress extends the limits.
func (l Limits) Extended() bool { return l.Progress != nil && *l.Progress }

// Hard bounds the whole call where the caller gives no deadline; 0 is no limit. It is
// Call; without that, where progress extends the limits, the default of Call or ten times
// Attempt, whichever is longer: no server may hold a call for as long as it likes.
func (l Limits) Hard() time.Duration {
	if l.Call > 0 || !l.Extended() {
		return max(l.Call, 0)
	}
	return max(Defaults().Limits.Call, 10*l.Attempt)
}

// Session says what is done when a server has lost a session (MCP 2025-11-25 and
// earlier). It is a matter of the server: only rules without a tool count, those whose
// tool glob is empty or "*".
type Session struct {
	// Heal lets a lost session be renewed below the SDK, by the handshake that opened
	// it. Default true. Where it is false the session stays lost, and the host has to
	// connect again.
	Heal *bool
	// Timeout bounds one renewal: the check that the session is lost, the handshake,
	// and what the host restores. Callers wait no longer than their own deadlines, nor
	// than [Limits].Attempt.
	// Default 10 s; negative is no limit.
	Timeout time.Duration `off:"no limit"`
}

// Breaker settings hold for the tool and, for failures to connect, for the
// server. In a [Tool], the zero value is no breaker.
type Breaker struct {
	// Failures in a row that open the breaker. Default 5; negative is no breaker.
	Failures int `off:"no breaker"`
	// Open is how long it stays open before one probe. Default 30 s.
	Open time.Duration
}

// Limiter is a token bucket for a server and tool. Default none.
type Limiter struct {
	// Rate in calls a second; 0 is not set, negative is no limit.
	Rate float64 `form:"rate" off:"no limit"`
	// Burst is the size of the bucket. Default 1 where a rate is set.
	Burst int
	// NoWait fails at once instead of waiting for a token. Default false.
	NoWait *bool
}

// Key says where the idempotency key goes, and how equal calls are guarded.
type Key struct {
	// Header names an HTTP header that carries the key too, for keyed tools only;
	// empty is not set. Its value is a structured-field string (RFC 9651).
	Header string
	// Meta is the key's name in _meta, where every call carries it. Default
	// "io.github.surecall/idempotency-key"; commerce protocols use "idempotency-key".
	Meta string `unset:"io.github.surecall/idempotency-key"`
	// Argument names the argument that carries the key too, for tools that have one: a
	// property, or a JSON Pointer (RFC 6901) such as "/payment/idempotency_key". A
	// value that the caller has set is kept, and is the call's key. A tool whose input
	// schema has no such property is not called. Empty is not set.
	Argument string
	// Guard is how long a call whose outcome is unknown stands in the way of an equal
	// one: an unsafe one is not sent, a keyed one adopts its key. Default 10 min;
	// negative is no guard.
	Guard time.Duration `off:"no guard"`
}

// Gate says which calls wait when a server has answered 429 and named a wait.
// Values other than the constants below are treated as [GateServer]. A gate is
// closed for at most retry.retry_after_cap.
type Gate string

const (
	// GateServer holds back every call to that server, whatever its session and
	// credentials. It is the default.
	GateServer Gate = "server"
	// GateTool holds back calls of the same tool on that server.
	GateTool Gate = "tool"
	// GateOff holds back no other call; the call that was refused waits by itself.
	GateOff Gate = "off"
)

// Valid reports whether g is one of the constants.
func (g Gate) Valid() bool { return g == GateServer || g == GateTool || g == GateOff }

// Surface says who sees protocol and transport failures. Values other than the
// constants below are treated as [SurfaceCaller].
type Surface string

const (
	// SurfaceCaller returns them to the caller as an error. It is the default.
	SurfaceCaller Surface = "caller"
	// SurfaceModel turns them into an IsError result that the model reads.
	SurfaceModel Surface = "model"
	// SurfaceModelProtocol does so for what a server answered (layer protocol), and
	// leaves the rest to the caller.
	SurfaceModelProtocol Surface = "model_protocol"
	// SurfaceModelTransport does so for everything else (layers transport and local).
	SurfaceModelTransport Surface = "model_transport"
)

// Valid reports whether s is one of the constants above.
func (s Surface) Valid() bool {
	switch s {
	case SurfaceCaller, SurfaceModel, SurfaceModelProtocol, SurfaceModelTransport:
		return true
	}
	return false
}

// ShowsModel reports whether the model sees a failure of that layer.
func (s Surface) ShowsModel(l observe.Layer) bool {
	switch s {
	case SurfaceModel:
		return true
	case SurfaceModelProtocol:
		return l == observe.LayerProtocol
	case SurfaceModelTransport:
		return l != observe.LayerProtocol
	}
	return false
}
