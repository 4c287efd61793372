package observe

import (
	"fmt"
	"strconv"
	"strings"
)

// maxStatuses bounds the HTTP statuses that a headline shows.
const maxStatuses = 6

// Headline says what was seen, from the transport up: "HTTP 200 · JSON-RPC ok · tool
// reported an error". It is one line.
func (r *Record) Headline() string {
	parts := []string{transportPart(r), protocolPart(r), toolPart(r)}
	shown := parts[:0]
	for _, p := range parts {
		if p != "" {
			shown = append(shown, p)
		}
	}
	return strings.Join(shown, " · ")
}

// overHTTP reports whether the session was one over HTTP.
func (r *Record) overHTTP() bool { return r.Endpoint != "" }

func transportPart(r *Record) string {
	switch {
	case !r.overHTTP() && r.Delivery == NotSent:
		return "stdio, nothing sent"
	case !r.overHTTP():
		return "stdio"
	case len(r.HTTPStatuses) == 0 && r.Delivery == NotSent:
		return "nothing sent"
	case len(r.HTTPStatuses) == 0:
		return "no HTTP answer"
	}
	statuses := r.HTTPStatuses
	text := "HTTP "
	if n := len(statuses); n > maxStatuses {
		statuses, text = statuses[n-maxStatuses:], "HTTP …, "
	}
	for i, s := range statuses {
		if i > 0 {
			text += ", "
		}
		text += strconv.Itoa(s)
	}
	return text
}

// protocolPart says what came in the place of a JSON-RPC response, or that there
// was one.
func protocolPart(r *Record) string {
	switch r.Outcome {
	case ToolSuccess, ToolError, InputRequired, ExtensionResult, InvalidToolResult:
		return "JSON-RPC ok"
	case MalformedJSON:
		return "the answer is not JSON"
	case InvalidEnvelope:
		return "the answer is no JSON-RPC response to this call"
	case UnexpectedContent:
		return "an answer that is not MCP" + mediaTypes(r)
	case StreamIncomplete:
		return "the answer broke off"
	case Redirected:
		return "sent elsewhere, not followed"
	case ResultTooLarge:
		return "the answer is too large"
	case NetworkError:
		return "the connection failed"
	case Timeout:
		return "no answer in time"
	case Canceled:
		return "given up here"
	case BreakerOpen:
		return "held back by the circuit breaker"
	case RateLimited:
		return "held back by a rate limit"
	case Blocked:
		return "held back as a possible repeat"
	}
	return errorPart(r)
}

// errorPart is for JSONRPC_ERROR, HTTP_ERROR and SESSION_LOST.
func errorPart(r *Record) string {
	switch {
	case r.JSONRPC.ErrorCode != nil:
		return fmt.Sprintf("JSON-RPC error %d", *r.JSONRPC.ErrorCode)
	case r.Outcome == SessionLost && !r.overHTTP():
		return "the server has ended"
	case r.Outcome == SessionLost:
		return "the server has forgotten the session"
	}
	return "no JSON-RPC answer"
}

func mediaTypes(r *Record) string {
	if n := len(r.ContentTypes); n > 0 && r.ContentTypes[n-1] != "" {
		return ": " + plain(r.ContentTypes[n-1], maxName)
	}
	return ""
}

func toolPart(r *Record) string {
	switch r.Outcome {
	case ToolSuccess:
		return "tool succeeded"
	case ToolError:
		return "tool reported an error"
	case InputRequired:
		return "tool wants more input"
	case ExtensionResult:
		return "result of an extension"
	case InvalidToolResult:
		return "not a tool result"
	}
	return ""
}
