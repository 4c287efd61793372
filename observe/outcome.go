package observe

// Outcome names what one attempt, or a whole call, came to. The set is closed:
// every tools/call ends in exactly one of the constants below. The first eight
// are those of the article that this project started from; an HTTP client that
// has a complete body at hand needs no others.
type Outcome string

const (
	// ToolSuccess: one complete, valid result with isError absent or false.
	ToolSuccess Outcome = "TOOL_SUCCESS"
	// ToolError: one complete, valid result with isError true.
	ToolError Outcome = "TOOL_ERROR"
	// InputRequired: the server asked for more input (resultType
	// "input_required", MCP 2026-07-28, multi round-trip requests). The call is
	// not over and has not failed.
	InputRequired Outcome = "INPUT_REQUIRED"
	// JSONRPCError: one complete, valid JSON-RPC error response.
	JSONRPCError Outcome = "JSONRPC_ERROR"
	// MalformedJSON: the body is not one JSON document that this client can read.
	MalformedJSON Outcome = "MALFORMED_JSON"
	// InvalidEnvelope: JSON, but not a JSON-RPC response to this request.
	InvalidEnvelope Outcome = "INVALID_ENVELOPE"
	// InvalidToolResult: a JSON-RPC result that is not a tool result.
	InvalidToolResult Outcome = "INVALID_TOOL_RESULT"
	// HTTPError: a status outside 2xx. A JSON-RPC error in its body does not
	// change the outcome; its code is kept.
	HTTPError Outcome = "HTTP_ERROR"

	// ExtensionResult: one complete result whose resultType belongs to an
	// extension that the host declared. It is passed through and never counted
	// as a success: what it means is the extension's affair.
	ExtensionResult Outcome = "EXTENSION_RESULT"

	// NetworkError: no HTTP response; or, without HTTP, a broken connection.
	NetworkError Outcome = "NETWORK_ERROR"
	// StreamIncomplete: a 2xx that ended without a terminal response (a body cut
	// short, an SSE stream that ended, an empty body, 202 or 204 to a call).
	StreamIncomplete Outcome = "STREAM_INCOMPLETE"
	// UnexpectedContent: a 2xx of a media type that is neither JSON nor SSE, such
	// as a login page.
	UnexpectedContent Outcome = "UNEXPECTED_CONTENT"
	// Redirected: a redirect that is not followed for a tool call.
	Redirected Outcome = "REDIRECTED"
	// SessionLost: the server no longer knows the session.
	SessionLost Outcome = "SESSION_LOST"
	// ResultTooLarge: the answer is larger than the policy's result limit.
	ResultTooLarge Outcome = "RESULT_TOO_LARGE"

	// Timeout: a limit or the caller's deadline ran out.
	Timeout Outcome = "TIMEOUT"
	// Canceled: the caller gave up.
	Canceled Outcome = "CANCELED"
	// BreakerOpen: refused locally, the circuit breaker is open.
	BreakerOpen Outcome = "BREAKER_OPEN"
	// RateLimited: refused locally, by the rate limiter or by the gate that a
	// server's 429 closed.
	RateLimited Outcome = "RATE_LIMITED"
	// Blocked: refused locally, because sending could repeat an effect.
	Blocked Outcome = "BLOCKED"
)

// Outcomes lists every outcome, in the order of their layers from the tool
// down to the client.
func Outcomes() []Outcome {
	return []Outcome{
		ToolSuccess, ToolError, InputRequired, ExtensionResult,
		JSONRPCError, MalformedJSON, InvalidEnvelope, InvalidToolResult,
		HTTPError, NetworkError, StreamIncomplete, UnexpectedContent,
		Redirected, SessionLost, ResultTooLarge,
		Timeout, Canceled, BreakerOpen, RateLimited, Blocked,
	}
}

// Layer says where the outcome was decided. The zero Outcome has no layer.
func (o Outcome) Layer() Layer {
	switch o {
	case ToolSuccess, ToolError:
		return LayerApplication
	case InputRequired, ExtensionResult:
		return LayerInteraction
	case JSONRPCError, MalformedJSON, InvalidEnvelope, InvalidToolResult:
		return LayerProtocol
	case HTTPError, NetworkError, StreamIncomplete, UnexpectedContent, Redirected, SessionLost, ResultTooLarge:
		return LayerTransport
	case Timeout, Canceled, BreakerOpen, RateLimited, Blocked:
		return LayerLocal
	}
	return ""
}

// Usable reports whether the outcome comes with a result that goes to the
// caller as it is.
func (o Outcome) Usable() bool {
	switch o {
	case ToolSuccess, ToolError, InputRequired, ExtensionResult:
		return true
	}
	return false
}

// Answered reports whether the outcome stands for one complete, valid JSON-RPC
// response.
func (o Outcome) Answered() bool { return o.Usable() || o == JSONRPCError }

// Layer is the place in which an outcome was decided.
type Layer string

const (
	LayerApplication Layer = "application" // the tool itself
	LayerInteraction Layer = "interaction" // the call goes on with somebody's input
	LayerProtocol    Layer = "protocol"    // JSON-RPC and MCP
	LayerTransport   Layer = "transport"   // HTTP, TCP, a process's pipes
	LayerLocal       Layer = "local"       // this client
)
