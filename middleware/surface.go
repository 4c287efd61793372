package middleware

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/observe"
)

// MetaOutcome is the name in a result's _meta under which a result that this
// library made, in the place of an answer, says what the call came to.
const MetaOutcome = "io.github.surecall/outcome"

// Surface decides who sees a call without a usable answer. By default the caller
// gets the error; where the policy says that the model should see it, the caller
// gets an IsError result with a short text instead. A server's own isError result
// passes untouched, and the caller's own cancellation stays an error.
//
// A result made here can be told from a server's own: GetError returns the
// *observe.Error, which no result from the wire can carry (see also [MetaOutcome]).
func Surface(opts *Options) mcp.Middleware { return newCore(opts).surface }

func (c *core) surface(next mcp.MethodHandler) mcp.MethodHandler {
	if c.opts.Shadow {
		return next
	}
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, cl := c.begin(ctx, method, req)
		res, err := next(ctx, method, req)
		if cl == nil || !cl.isTool() || err == nil {
			return res, err
		}
		cl.last(ctx, res, err)
		failure := cl.failure(ctx)
		if !cl.tool.Surface.ShowsModel(failure.Layer()) || failure.Outcome == observe.Canceled {
			return nil, failure
		}
		cl.text = failure.ModelText()
		return modelResult(failure, cl.text), nil
	}
}

// modelResult is the result that tells the model of a failure.
func modelResult(e *observe.Error, text string) *mcp.CallToolResult {
	res := &mcp.CallToolResult{
		Meta: mcp.Meta{MetaOutcome: map[string]any{
			"outcome": e.Outcome, "delivery": e.Delivery, "repeatSafe": e.RepeatSafe,
		}},
		Content: []mcp.Content{&mcp.TextContent{Text: text}},
	}
	res.SetError(e)
	return res
}

// FailureOf returns the error behind a result that Surface made for the model, and
// false for a server's own result.
func FailureOf(res *mcp.CallToolResult) (*observe.Error, bool) {
	if res == nil {
		return nil, false
	}
	var e *observe.Error
	return e, errors.As(res.GetError(), &e)
}
