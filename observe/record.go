package observe

import (
	"encoding/json"
	"time"
)

// A Record tells the whole story of one tools/call. Its JSON form is what
// "doctor -json" prints. Every member is always there; one that has nothing to say
// is null, empty or zero.
type Record struct {
	Time            time.Time `json:"time"`
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
	Decision     Choice    `json:"decision"`
	Attempts     []Attempt `json:"attempts"`
	// Healed says that a lost session was renewed during the call.
	Healed  bool   `json:"healed"`
	Breaker string `json:"breaker"`
	// IdempotencyKey is a short hash of the key, enough to compare.
	IdempotencyKey string `json:"idempotencyKey"`
	// Ledger says what the ledger made of the call; null for calls that bypass it.
	Ledger     *LedgerRecord `json:"ledger"`
	Deviations []Deviation   `json:"deviations"`
	// Excerpt is the redacted beginning of an unusable body, 512 bytes at most;
	// never a part of a result.
	Excerpt    string  `json:"excerpt"`
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
	LedgerSent     LedgerStep = "sent"     // begun, and sent
	LedgerAdopted  LedgerStep = "adopted"  // sent with the key of an equal call in doubt
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

// Choice is the last decision of a call.
type Choice struct {
	Action string `json:"action"`
	Reason string `json:"reason"`
}

// An Attempt is one pass through the retry loop.
type Attempt struct {
	Outcome  Outcome  `json:"outcome"`
	Layer    Layer    `json:"layer"`
	Delivery Delivery `json:"delivery"`
	// Posts counts the POSTs of the attempt: more than one with rounds, after an
	// authorization, or after a redirect.
	Posts      int `json:"posts"`
	HTTPStatus int `json:"httpStatus"`
	// Reconciled is what the host found out about the attempt, where it asked.
	Reconciled string `json:"reconciled,omitempty"`
	// WaitMs is the time waited before the attempt.
	WaitMs     float64 `json:"waitMs"`
	DurationMs float64 `json:"durationMs"`
}

// Origin says who repeated a call.
type Origin string

const (
	OriginNone       Origin = "none"
	OriginMiddleware Origin = "middleware" // our retry loop
	OriginSDK        Origin = "sdk"        // the SDK, after an authorization
	OriginNetHTTP    Origin = "net/http"   // a transport below us
	OriginCaller     Origin = "caller"     // an equal call came again
	OriginUser       Origin = "user"       // the host said so in the context
)
