package observe

import (
	"encoding/json"
	"time"
)

// RecordSchema names the form of a [Record] and its version. The version goes up
// when a member goes or changes its meaning; members may come at any time, and a
// reader ignores those it does not know. The JSON Schema (draft 2020-12) is
// observe/record.schema.json.
const RecordSchema = "io.github.surecall/record/1"

// A Record tells the whole story of one tools/call. Its JSON form is an interface,
// see [RecordSchema]; [Record.Text] is the form for people. Every member is always
// there; one that has nothing to say is null, empty or zero. A record that was handed
// out is not changed any more, and whoever gets it must not change it either: others
// may be reading it.
type Record struct {
	Schema          string    `json:"schema"` // RecordSchema
	Time            time.Time `json:"time"`   // when the call began, UTC
	Client          string    `json:"client"`
	Server          string    `json:"server"`
	Endpoint        string    `json:"endpoint"` // without query and credentials
	Scenario        string    `json:"scenario"` // the host's label
	ProtocolVersion string    `json:"protocolVersion"`
	Method          string    `json:"method"`
	Tool            string    `json:"tool"`
	Safety          string    `json:"safety"`
	Rule            string    `json:"rule"`

	Outcome  Outcome  `json:"outcome"`
	Layer    Layer    `json:"layer"`
	Delivery Delivery `json:"delivery"`
	// Reason says in a few words what was seen: ours, never the server's.
	Reason string `json:"reason"`

	// PostCount counts the POSTs that our RoundTripper was asked to make for the
	// call, those that failed before sending included; over a connection of ours
	// without HTTP, the requests.
	PostCount    int       `json:"postCount"`
	HTTPStatuses []int     `json:"httpStatuses"`
	ContentTypes []string  `json:"contentTypes"`
	JSONRPC      RPCRecord `json:"jsonrpc"`
	ResultType   *string   `json:"resultType"`
	IsError      *bool     `json:"isError"`
	SSE          *Stream   `json:"sse"`
	RetryOrigin  Origin    `json:"retryOrigin"`
	RetryAfterMs *int64    `json:"retryAfterMs"`
	Location     string    `json:"location"` // the origin that a redirect named
	Decision     Choice    `json:"decision"`
	// Would lists what the policy would have decided, in order, where the stack only
	// watches (shadow mode); null elsewhere.
	Would    []Choice  `json:"would"`
	Attempts []Attempt `json:"attempts"`
	// Healed says that a lost session was renewed during the call.
	Healed bool `json:"healed"`
	// Breaker is the state of the circuit breaker that lets less through, the tool's
	// or the server's: closed, half-open or open; empty where there is none.
	Breaker string `json:"breaker"`
	// Limiter is the state of the tool's rate limiter; null where there is none.
	Limiter *Limiter `json:"limiter"`
	// IdempotencyKey is a short hash of the key, enough to compare.
	IdempotencyKey string `json:"idempotencyKey"`
	// Ledger says what the ledger made of the call; null for calls that bypass it.
	Ledger     *LedgerRecord `json:"ledger"`
	Deviations []Deviation   `json:"deviations"`
	// Excerpt is the redacted beginning of an unusable body, 512 bytes at most;
	// never a part of a result.
	Excerpt string `json:"excerpt"`
	// Arguments and Result are what the host's own redactor made of them; null unless
	// the host opted in for this tool.
	Arguments  *string `json:"arguments"`
	Result     *string `json:"result"`
	DurationMs float64 `json:"durationMs"`
	// ModelText is what the model would see, when that is ours.
	ModelText string `json:"modelText"`
}

// LedgerRecord is the ledger's side of a record.
type LedgerRecord struct {
	Step LedgerStep `json:"step"`
	// Kind says why a call was blocked, or that settling it failed ("store").
	Kind string `json:"kind,omitempty"`
	// Since is when the earlier call was begun that this one repeats.
	Since *time.Time `json:"since,omitempty"`
	// Reconciled tells each time that the host was asked what became of a call in
	// doubt: this one, or an earlier one that stood in its way.
	Reconciled []Look `json:"reconciled,omitempty"`
	// Settled is the state in which the call was left.
	Settled string `json:"settled,omitempty"`
}

// A Look is one time that the host was asked what became of a call in doubt.
type Look struct {
	// Finding is the host's answer: happened, did_not_happen or cannot_tell.
	Finding string `json:"finding"`
	// Since is when the call in doubt was begun.
	Since time.Time `json:"since"`
	// Equal says that it was an equal call, not this one.
	Equal bool `json:"equal,omitempty"`
	// Error is what kept the host from finding out, redacted.
	Error      string  `json:"error,omitempty"`
	DurationMs float64 `json:"durationMs"`
}

// LedgerStep says what the ledger did with a call.
type LedgerStep string

const (
	LedgerBegun    LedgerStep = "begun"    // let pass, but nothing was sent: see the attempts
	LedgerSent     LedgerStep = "sent"     // let pass, and sent
	LedgerAdopted  LedgerStep = "adopted"  // let pass with the key of an equal call in doubt
	LedgerReplayed LedgerStep = "replayed" // answered as it was before, nothing sent
	LedgerBlocked  LedgerStep = "blocked"  // refused, nothing sent
)

// RPCRecord is the JSON-RPC side of a record.
type RPCRecord struct {
	ID json.RawMessage `json:"id"` // of the last POST
	// AnswerID is the id of its answer where that is another one.
	AnswerID     string `json:"answerId,omitempty"`
	ErrorCode    *int64 `json:"errorCode"`
	ErrorMessage string `json:"errorMessage"` // redacted
	ErrorData    string `json:"errorData"`    // redacted JSON text
}

// A Choice is a decision, and why.
type Choice struct {
	// Action is "repeat" or "stop"; in [Record.Would] also "refuse", "wait" and
	// "replay", for what would have been done before sending, and "renew" (the session)
	// and "refresh" (the tool's definition) for what would have been done then.
	Action string `json:"action"`
	Reason string `json:"reason"`
	// Rule that gave the decision: a rule's name, "default" or "annotations".
	Rule   string  `json:"rule"`
	WaitMs float64 `json:"waitMs"`
}

// An Attempt is one pass through the retry loop.
type Attempt struct {
	// StartMs is when the attempt began, after its waits, counted from the call's
	// beginning.
	StartMs  float64  `json:"startMs"`
	Outcome  Outcome  `json:"outcome"`
	Layer    Layer    `json:"layer"`
	Delivery Delivery `json:"delivery"`
	Reason   string   `json:"reason"`
	// PostCount counts the POSTs of the attempt, or without HTTP the requests: more than
	// one with rounds, after an authorization, or after a redirect.
	PostCount  int    `json:"postCount"`
	Posts      []Sent `json:"posts"`
	HTTPStatus int    `json:"httpStatus"`
	// Reconciled is what the host found out about the attempt, where it asked.
	Reconciled string `json:"reconciled,omitempty"`
	// WaitMs is the time waited before the attempt, and Waits says what for.
	WaitMs     float64 `json:"waitMs"`
	Waits      []Wait  `json:"waits"`
	DurationMs float64 `json:"durationMs"`
	// Breaker is the state of the circuit breakers after the attempt.
	Breaker string `json:"breaker"`
	// Decision is what followed from the attempt; all empty where no loop decides.
	Decision Choice `json:"decision"`
}

// A Wait is one wait before an attempt, or between two POSTs of it.
type Wait struct {
	For WaitReason `json:"for"`
	Ms  float64    `json:"ms"`
}

// WaitReason says what an attempt, or a POST of it, waited for.
type WaitReason string

const (
	WaitBackoff WaitReason = "backoff" // our own, between attempts
	WaitServer  WaitReason = "server"  // the server's Retry-After to this call
	WaitGate    WaitReason = "gate"    // the server's Retry-After to another call
	WaitLimiter WaitReason = "limiter" // a token of the rate limiter
	WaitSession WaitReason = "session" // the renewal of the session, which the server had lost
	WaitPutOff  WaitReason = "put_off" // the server put the attempt off without a question
)

// Sent is one POST of an attempt, or one request without HTTP. Its delivery says whether it was sent: not_sent is
// the proof that it was not.
type Sent struct {
	// StartMs is when the POST began, after its waits, counted from the call's
	// beginning.
	StartMs float64 `json:"startMs"`
	// Waits are those within the attempt, before this POST.
	Waits []Wait `json:"waits"`
	// Round of a multi-round-trip call, from 1.
	Round int `json:"round"`
	// Origin is who sent the round's request again, if this is a repeat: the SDK
	// after an authorization, or net/http after a redirect.
	Origin      Origin   `json:"origin"`
	Outcome     Outcome  `json:"outcome"` // empty if the POST had not come to its end
	Delivery    Delivery `json:"delivery"`
	Status      int      `json:"status"`
	ContentType string   `json:"contentType"`
	// Bytes of the body that were read.
	Bytes int64   `json:"bytes"`
	SSE   *Stream `json:"sse"`
	// Replays counts how often net/http wrote the request again by itself.
	Replays int `json:"replays"`
	// Healed says that the session, which the server had lost, was renewed while the POST
	// waited, or because of its answer.
	Healed     bool        `json:"healed"`
	Deviations []Deviation `json:"deviations"`
	DurationMs float64     `json:"durationMs"`
}

// Limiter is the state of a rate limiter.
type Limiter struct {
	Rate   float64 `json:"rate"`   // calls a second
	Tokens float64 `json:"tokens"` // left after the call; negative while others wait
}

// Origin says who repeated a call.
type Origin string

const (
	OriginNone       Origin = "none"
	OriginMiddleware Origin = "middleware" // our retry loop
	OriginSDK        Origin = "sdk"        // the SDK, after an authorization
	OriginNetHTTP    Origin = "net/http"   // a transport below us, or a redirect followed
	OriginCaller     Origin = "caller"     // an equal call came again
	OriginUser       Origin = "user"       // the host said so in the context
)
