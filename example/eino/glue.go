package main

import (
	"context"

	"github.com/cloudwego/eino/compose"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
)

type conversationKey struct{}

// withConversation names the conversation that an agent run with the context belongs
// to. Eino has no such id: it is the host's, and must be the same when the host runs
// the agent again.
func withConversation(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, conversationKey{}, id)
}

// intents makes each tool call of an Eino agent an intent of its own: the
// conversation's id and the call's id name it, so that whoever makes the call again
// carries out the same decision. The ids of the calls are the model's. Where a model
// server numbers them anew in each message, call_0 again and again, join the number of
// the message too.
//
// Copy it, and add it to the client after the stack's middlewares, so that it stands
// outside of them: Eino (v0.9.13) calls the session with the tool's own context.
func intents(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		conversation, _ := ctx.Value(conversationKey{}).(string)
		if call := compose.GetToolCallID(ctx); call != "" && conversation != "" {
			ctx = idempotency.WithIntent(ctx, conversation+"/"+call)
		}
		return next(ctx, method, req)
	}
}
