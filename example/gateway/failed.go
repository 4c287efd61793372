package main

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// A report is what an agent's program can read of a failed upstream call, in the result's
// _meta under middleware.MetaOutcome. Its first three members are those of a result that
// surecall makes for the model within one process.
type report struct {
	Outcome    observe.Outcome  `json:"outcome"`
	Delivery   observe.Delivery `json:"delivery"`
	RepeatSafe bool             `json:"repeatSafe"`

	Server       string `json:"server"`
	Status       int    `json:"status,omitempty"` // of HTTP
	Code         int64  `json:"code,omitempty"`   // of JSON-RPC
	RetryAfterMs int64  `json:"retryAfterMs,omitempty"`
}

// failed is the result that tells an agent of a call without a usable answer: never a
// success, and never an error of the protocol or of HTTP. To the agent's client it is a
// complete answer with isError, which frameworks show to the model instead of calling
// again; a ledger there keeps it for the call, and a repeat of the same intent gets the
// same words.
func (c *forwarded) failed(failure *observe.Error) *mcp.CallToolResult {
	e := *failure
	e.Tool, e.Server = c.shown, c.upstream
	e.RepeatSafe = e.RepeatSafe && !c.needsSameKey(&e)
	r := report{
		Outcome: e.Outcome, Delivery: e.Delivery, RepeatSafe: e.RepeatSafe,
		Server: e.Server, Status: e.Status, RetryAfterMs: e.RetryAfter.Milliseconds(),
	}
	if e.RPC != nil {
		r.Code = e.RPC.Code
	}
	return &mcp.CallToolResult{
		Meta:    mcp.Meta{middleware.MetaOutcome: r},
		Content: []mcp.Content{&mcp.TextContent{Text: e.ModelText()}},
		IsError: true,
	}
}

// needsSameKey reports whether a repeat is harmless only under the key that the agent
// gave this call. Its next call has another one, unless it is the same intent: whoever
// reads "a repeat is safe" does not choose the key.
func (c *forwarded) needsSameKey(e *observe.Error) bool {
	ran := e.Delivery == observe.Unknown || e.Delivery == observe.Answered
	return c.key != "" && e.Safety == string(policy.Keyed) && ran
}
