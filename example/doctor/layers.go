package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/surecall/surecall/observe"
)

// maxStatuses bounds the HTTP statuses that a headline shows.
const maxStatuses = 6

// layers says what was seen, from the transport up: "HTTP 200 · JSON-RPC ok · tool
// reported an error".
func layers(r *observe.Record) string {
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
func overHTTP(r *observe.Record) bool { return r.Endpoint != "" }

func transportPart(r *observe.Record) string {
	switch {
	case !overHTTP(r) && r.Delivery == observe.NotSent:
		return "stdio, nothing sent"
	case !overHTTP(r):
		return "stdio"
	case len(r.HTTPStatuses) == 0 && r.Delivery == observe.NotSent:
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
func protocolPart(r *observe.Record) string {
	switch r.Outcome {
	case observe.ToolSuccess, observe.ToolError, observe.InputRequired, observe.ExtensionResult, observe.InvalidToolResult:
		return "JSON-RPC ok"
	case observe.MalformedJSON:
		return "the answer is not JSON"
	case observe.InvalidEnvelope:
		return "the answer is no JSON-RPC response to this call"
	case observe.UnexpectedContent:
		return "an answer that is not MCP" + mediaTypes(r)
	case observe.StreamIncomplete:
		return "the answer broke off"
	case observe.Redirected:
		return "sent elsewhere, not followed"
	case observe.ResultTooLarge:
		return "the answer is too large"
	case observe.NetworkError:
		return "the connection failed"
	case observe.Timeout:
		return "no answer in time"
	case observe.Canceled:
		return "given up here"
	case observe.BreakerOpen:
		return "held back by the circuit breaker"
	case observe.RateLimited:
		return "held back by a rate limit"
	case observe.Blocked:
		return "held back as a possible repeat"
	}
	return errorPart(r)
}

// errorPart is for JSONRPC_ERROR, HTTP_ERROR and SESSION_LOST.
func errorPart(r *observe.Record) string {
	switch {
	case r.JSONRPC.ErrorCode != nil:
		return fmt.Sprintf("JSON-RPC error %d", *r.JSONRPC.ErrorCode)
	case r.Outcome == observe.SessionLost && !overHTTP(r):
		return "the server has ended"
	case r.Outcome == observe.SessionLost:
		return "the server has forgotten the session"
	}
	return "no JSON-RPC answer"
}

func mediaTypes(r *observe.Record) string {
	if n := len(r.ContentTypes); n > 0 && r.ContentTypes[n-1] != "" {
		return ": " + plain(r.ContentTypes[n-1], maxName)
	}
	return ""
}

func toolPart(r *observe.Record) string {
	switch r.Outcome {
	case observe.ToolSuccess:
		return "tool succeeded"
	case observe.ToolError:
		return "tool reported an error"
	case observe.InputRequired:
		return "tool wants more input"
	case observe.ExtensionResult:
		return "result of an extension"
	case observe.InvalidToolResult:
		return "not a tool result"
	}
	return ""
}

// delivery says what the evidence tells about execution.
func delivery(r *observe.Record) string {
	switch r.Delivery {
	case observe.NotSent:
		return "not_sent: nothing of the call reached a server"
	case observe.Refused:
		return "refused: the server did not run the tool"
	case observe.Answered:
		return "answered: one complete answer came"
	}
	if r.Safety == "read_only" {
		return "unknown: the tool may have run, but it only reads"
	}
	return "unknown: the tool may have run, or not"
}
