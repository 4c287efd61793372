package main

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
)

// A forwarded call is one call of an agent on its way to an upstream.
type forwarded struct {
	upstream, tool string // as the policy knows them
	shown          string // the tool's name for agents
	principal      string // on whose behalf, "" where nobody says
	key            string // the agent's idempotency key, or ""
}

// forward returns the handler of a tool. It never returns an error: an agent's framework
// may run a call again after one.
func (u *upstream) forward(tool, shown string) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		call := forwarded{upstream: u.name, tool: tool, shown: shown, principal: principal(req)}
		call.key, _ = req.Params.Meta[idempotency.MetaKey].(string)
		params := call.params(req)
		token, done := u.progress.follow(ctx, req)
		defer done()
		if token != nil {
			params.SetProgressToken(token)
		}
		return call.answer(u.session.Load().CallTool(call.context(ctx), params)), nil
	}
}

// traceNames are the names in _meta that concern every hop (SEP-414). What else stands
// there is between the agent and the gateway.
var traceNames = []string{"traceparent", "tracestate", "baggage"}

// params are those of the upstream call, with the arguments as they came.
func (c *forwarded) params(req *mcp.CallToolRequest) *mcp.CallToolParams {
	params := &mcp.CallToolParams{Name: c.tool, Meta: mcp.Meta{}}
	if len(req.Params.Arguments) > 0 {
		params.Arguments = req.Params.Arguments
	}
	for _, name := range traceNames {
		if v, ok := req.Params.Meta[name]; ok {
			params.Meta[name] = v
		}
	}
	return params
}

// principal is the user whom the agent's token names, or "".
func principal(req *mcp.CallToolRequest) string {
	if req.Extra == nil || req.Extra.TokenInfo == nil {
		return ""
	}
	return req.Extra.TokenInfo.UserID
}

// context carries the agent's key, and with it its intent, from which an agent with
// surecall derives the key: a call that comes again is the same call upstream. To an
// upstream all agents are the gateway, so that where users are known, each has keys of
// its own: nobody gets another's answer by another's key.
func (c *forwarded) context(ctx context.Context) context.Context {
	key := c.key
	if c.principal != "" {
		ctx = idempotency.WithPrincipal(ctx, c.principal)
		if key != "" {
			key = idempotency.DeriveKey(c.principal, key, c.upstream, c.tool)
		}
	}
	return idempotency.WithKey(ctx, key)
}

// answer is what the agent gets. An upstream's own result passes untouched, isError or
// not.
func (c *forwarded) answer(res *mcp.CallToolResult, err error) *mcp.CallToolResult {
	var failure *observe.Error
	switch found, ours := middleware.FailureOf(res); {
	case err == nil && !ours:
		return res
	case ours:
		failure = found
	case !errors.As(err, &failure):
		failure = observe.NewError(observe.Error{
			Outcome: observe.NetworkError, Delivery: observe.Unknown, Reason: "the upstream failed",
		}, err, nil)
	}
	return c.failed(failure)
}
