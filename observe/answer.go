package observe

import (
	"encoding/json"
	"net/http"
)

// LatestProtocolVersion is the protocol version whose rules apply when an
// answer's version is not known.
const LatestProtocolVersion = "2026-07-28"

// roundsVersion is the protocol version that introduced multi round-trip requests
// and resultType, and took away requests from the server on a stream.
const roundsVersion = "2026-07-28"

// An Answer is one whole HTTP answer to one POST of a JSON-RPC request, as it
// was read, with what must be known of the request to judge it.
type Answer struct {
	// Status is the HTTP status code.
	Status int
	// Header holds the response headers; only Content-Type is looked at. A nil
	// header, or one without Content-Type, is judged as JSON: the media type is
	// then the caller's affair.
	Header http.Header
	// Body is the whole body. The verdict refers into it and does not copy.
	Body []byte

	// ID is the JSON-RPC id of the request, as JSON (7, "a").
	ID string
	// Method is the method of the request; empty means "tools/call". An answer to
	// another method is judged by status and envelope alone: any object is a
	// valid result, and [ToolSuccess] means no more than that. Only the questions of
	// prompts/get and resources/read have to be such as a client can be given.
	Method string
	// ProtocolVersion is the negotiated MCP version; empty means
	// [LatestProtocolVersion].
	ProtocolVersion string
	// HadSession says that the request carried an Mcp-Session-Id. A 404 to such a
	// request means that the session is lost.
	HadSession bool
}

// judgesTool reports whether the result has to be a tool result.
func (a *Answer) judgesTool() bool { return a.Method == "" || a.Method == "tools/call" }

// mayAsk reports whether the SDK looks for questions in the result (go-sdk v1.8.0: on
// every protocol version).
func (a *Answer) mayAsk() bool {
	return a.judgesTool() || a.Method == "prompts/get" || a.Method == "resources/read"
}

// hasRounds reports whether the protocol version has multi round-trip requests.
// Versions are dates: they compare as strings.
func (a *Answer) hasRounds() bool {
	return a.ProtocolVersion == "" || a.ProtocolVersion >= roundsVersion
}

// A Verdict is what an answer amounts to.
type Verdict struct {
	Outcome  Outcome
	Delivery Delivery
	// Reason says in a few words why the outcome is not a usable answer: a fixed
	// text, never words of the server. Empty for a usable one.
	Reason string

	// Error is the JSON-RPC error that the answer carries, also in the body of an
	// HTTP error or beside a flaw that decided the outcome.
	Error *RPCError
	// ID is the id that the answer carries, as JSON; empty if it has none, or one of
	// more than 64 bytes.
	ID string
	// EchoedID says that the answer's id is the request's.
	EchoedID bool
	// ResultType is the value of resultType, or empty.
	ResultType string
	// IsError is the value of isError, or nil where it is absent.
	IsError *bool
	// InputRequests is the number of inputRequests of an input_required result.
	InputRequests int
	// Result is the raw "result" member of a response whose envelope is right, a
	// part of the body; nil otherwise.
	Result []byte
	// Deviations are those that were met, in the order judged, without repeats. A
	// refused one is the last, and decided the outcome.
	Deviations []Deviation
}

// Layer is the layer of the verdict's outcome.
func (v *Verdict) Layer() Layer { return v.Outcome.Layer() }

// An RPCError is the error member of a JSON-RPC response (JSON-RPC 2.0, section
// 5.1).
type RPCError struct {
	Code    int64
	Message string
	// Data is the raw data member, a part of the body; nil if there is none.
	Data json.RawMessage
}
