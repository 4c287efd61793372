package main

import (
	"fmt"
	"math"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// advice says what a person can do about a call; nothing after a success.
func advice(r *observe.Record) string {
	if text := remedy(r); text != "" {
		return text + " " + repetition(r)
	}
	if r.Outcome == observe.ToolSuccess {
		return ""
	}
	return repetition(r)
}

// remedy is what can be done about the cause.
func remedy(r *observe.Record) string {
	switch r.Outcome {
	case observe.ToolError:
		return "Read what the tool says; the arguments may need correcting."
	case observe.InputRequired:
		return "The server waits for somebody's answers: see -elicit."
	case observe.ExtensionResult:
		return "What this result means is up to the extension."
	case observe.JSONRPCError:
		return codeRemedy(r)
	case observe.HTTPError:
		return statusRemedy(r)
	case observe.SessionLost:
		if r.Healed {
			return "The server had forgotten the session, which has been renewed."
		}
		return "Connect again: the session is gone."
	case observe.UnexpectedContent, observe.Redirected:
		return "Check the address: a proxy or a sign-in page may have answered."
	case observe.MalformedJSON, observe.InvalidEnvelope, observe.InvalidToolResult:
		return "The server's answer breaks the protocol: its maker should know."
	case observe.Timeout:
		return "Give the call more time (-timeout), or find out what holds the server up."
	}
	return ""
}

func codeRemedy(r *observe.Record) string {
	switch code := r.JSONRPC.ErrorCode; {
	case code == nil:
	case *code == -32602:
		return "Check the name (-list) and correct the arguments."
	case *code == -32601:
		return "The server does not know the method: check the protocol version."
	case *code == -32020:
		return "The server needs headers made from the arguments: use -list before -call."
	}
	return ""
}

func statusRemedy(r *observe.Record) string {
	switch lastStatus(r) {
	case 401, 403:
		return "Sign in or have access granted: see -header."
	case 404:
		return "Check the address."
	}
	return ""
}

func lastStatus(r *observe.Record) int {
	if n := len(r.HTTPStatuses); n > 0 {
		return r.HTTPStatuses[n-1]
	}
	return 0
}

// repetition says whether the call may be made again.
func repetition(r *observe.Record) string {
	harmless := policy.Safety(r.Safety).Harmless()
	again := "calling again is safe"
	if r.RetryAfterMs != nil && *r.RetryAfterMs > 0 {
		again += fmt.Sprintf(" after %.0f s", math.Ceil(float64(*r.RetryAfterMs)/1000))
	}
	switch {
	case r.Outcome == observe.SessionLost && r.Delivery == observe.Refused && !harmless:
		// A 404 can be written after the tool ran.
		return "If the server is to be believed, the tool has not run."
	case r.Delivery == observe.NotSent, r.Delivery == observe.Refused:
		return "Nothing has happened: " + again + "."
	case harmless:
		return "A repeat of this tool is harmless: " + again + "."
	case r.Delivery == observe.Answered:
		return "The tool may have had an effect: do not repeat the call unchanged."
	}
	return "Do not call again before checking on the server whether it took effect."
}
