package middleware

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/observe"
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

// What an observer adds to a request goes again with the attempt; what the attempt
// itself has changed stays.
func TestObserverTakesItsMetaBack(t *testing.T) {
	meta := map[string]string{"traceparent": "1", "taken": "2"}
	c := newCore(&Options{Observer: &observe.Observer{
		AttemptStarted: func(ctx context.Context, _ observe.AttemptStart) (context.Context, map[string]string, func(*observe.AttemptEnd)) {
			return ctx, meta, nil
		},
	}})
	req := &mcp.ClientRequest[mcp.Params]{Params: &mcp.CallToolParams{Name: "pay", Meta: mcp.Meta{"taken": "0"}}}
	ctx, cl := c.begin(t.Context(), methodCallTool, req)
	_, seen := c.observeAttempt(ctx, cl)
	if got := cl.params().Meta; len(got) != 2 || got["traceparent"] != "1" || got["taken"] != "0" {
		t.Errorf("the attempt carries %v", got)
	}
	cl.goOn(resumption{state: "s"})
	seen.end(nil)
	if p := cl.params(); len(p.Meta) != 1 || p.Meta["taken"] != "0" || p.RequestState != "s" {
		t.Errorf("after the attempt: %+v", p)
	}
}
