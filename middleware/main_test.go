package middleware_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// rig is a wrapped client connected to a server that misbehaves.
type rig struct {
	t       *testing.T
	server  *middlewaretest.Server
	stack   *middleware.Stack
	session *mcp.ClientSession

	mu      sync.Mutex
	records []*observe.Record
	asked   int
	onAsk   func() // when the user is asked; may be nil
}

// classes are the safety classes of the server's built-in tools.
func classes() []policy.Rule {
	return []policy.Rule{
		{Name: "reads", Tool: "read_*", Settings: policy.Settings{Safety: policy.ReadOnly}},
		{Name: "slow", Tool: "slow", Settings: policy.Settings{Safety: policy.ReadOnly}},
		{Name: "labels", Tool: "set_label", Settings: policy.Settings{Safety: policy.Idempotent}},
		{Name: "keyed", Tool: "pay_keyed", Settings: policy.Settings{Safety: policy.Keyed}},
	}
}

// newRig starts a server and connects a wrapped client to it. Rules come before
// those for the built-in tools.
func newRig(t *testing.T, so middlewaretest.Options, rules ...policy.Rule) *rig {
	t.Helper()
	r := &rig{t: t, server: middlewaretest.NewServer(&so)}
	t.Cleanup(r.server.Close)
	r.stack = middleware.New(&middleware.Options{
		Policy: &policy.Policy{Rules: append(rules, classes()...)},
		OnRecord: checked(t, func(_ context.Context, rec *observe.Record) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.records = append(r.records, rec)
		}),
	})
	r.session = r.connect(t, r.stack)
	return r
}

func (r *rig) connect(t *testing.T, stack *middleware.Stack) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			r.mu.Lock()
			r.asked++
			r.mu.Unlock()
			if r.onAsk != nil {
				r.onAsk()
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
		},
	})
	var base *http.Client
	if r.server.Options().HTTP2 {
		base = r.server.Client()
	}
	if stack != nil {
		client.AddSendingMiddleware(stack.Middleware()...)
		base = stack.HTTPClient(base)
	}
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: r.server.URL(), HTTPClient: base}, nil)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() {
		_ = cs.Close()
		if base != nil {
			base.CloseIdleConnections()
		}
	})
	return cs
}

// call calls a tool within a deadline and returns what came back, with the record.
func (r *rig) call(tool string, within time.Duration) (*mcp.CallToolResult, *observe.Record, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), within)
	defer cancel()
	return r.callIn(ctx, tool, map[string]any{"size": 10})
}

func (r *rig) callIn(ctx context.Context, tool string, args map[string]any) (*mcp.CallToolResult, *observe.Record, error) {
	res, err := r.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.records) == 0 {
		r.t.Fatal("no record")
	}
	for i := len(r.records) - 1; i >= 0; i-- {
		if r.records[i].Tool == tool {
			return res, r.records[i], err
		}
	}
	r.t.Fatalf("no record of %s", tool)
	return nil, nil, nil
}
