package main

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/adk/v2/agent"

	"github.com/surecall/surecall/idempotency"
)

// intents makes each tool call of an ADK agent an intent of its own: the session's id
// and the call's id name it, so that whoever makes the call again (ADK's toolset after
// an error, a run that is resumed) carries out the same decision. Calls are made on
// behalf of the session's user.
//
// Copy it, and add it to the client after the stack's middlewares, so that it stands
// outside of them: ADK (v2.2.0) calls the session with the tool's own context.
func intents(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if call, ok := ctx.(agent.Context); ok && call.FunctionCallID() != "" {
			ctx = idempotency.WithPrincipal(ctx, call.UserID())
			ctx = idempotency.WithIntent(ctx, call.SessionID()+"/"+call.FunctionCallID())
		}
		return next(ctx, method, req)
	}
}
