package main

import (
	"context"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
)

type runKey struct{}

// withRun names the run that a tool runner called with the context makes. The id is the
// host's: a new one for each message of the user, and the same one for a runner that is
// resumed. "" makes each call an intent of its own.
func withRun(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, runKey{}, id)
}

// intents makes what a run asks of a tool an intent: the run's id and the fingerprint of
// the call name it, so that a runner that is resumed carries out the same decision. The
// runner (v2.16.0) does not tell a tool the id of the model's call.
//
// So two equal calls in one run are one decision: the second is answered with the answer
// to the first. Where that is not what the model means, name the tool among those that
// are distinct: each of its calls is then an intent of its own, and a resumed runner makes
// it again.
//
// Copy it, and add it to the client after the stack's middlewares, so that it stands
// outside of them.
func intents(server string, distinct ...string) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			run, _ := ctx.Value(runKey{}).(string)
			call, ok := req.GetParams().(*mcp.CallToolParams)
			if !ok || run == "" || slices.Contains(distinct, call.Name) {
				return next(ctx, method, req)
			}
			fingerprint, err := idempotency.FingerprintOf(server, call.Name, call.Arguments)
			if err != nil {
				return nil, err
			}
			return next(idempotency.WithIntent(ctx, run+"/"+fingerprint.String()), method, req)
		}
	}
}
