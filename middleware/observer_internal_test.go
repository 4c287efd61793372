package middleware

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Without an observer, what it would be told costs no allocation.
func TestNoObserverCostsNothing(t *testing.T) {
	c := newCore(nil)
	req := &mcp.ClientRequest[mcp.Params]{Params: &mcp.CallToolParams{Name: "pay"}}
	ctx, cl := c.begin(t.Context(), methodCallTool, req)
	n := testing.AllocsPerRun(100, func() {
		in, call := c.observeCall(ctx, cl)
		_, attempt := c.observeAttempt(in, cl)
		attempt.end(nil)
		call.end(nil)
		c.observeSession(ctx, cl, &mcp.InitializeResult{})
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
