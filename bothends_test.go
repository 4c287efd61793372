package surecall_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/policy"
)

// A call that is made again by a process which knows nothing of the first, and takes
// another number of rounds this time, has one effect: this library's client gives each
// round a key of its own, and its server knows them for one call.
func TestBothEndsInAnyNumberOfRounds(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second bool // whether the server asks for consent
	}{
		{"asked, then not", true, false},
		{"not asked, then asked", false, true},
		{"asked twice", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asks atomic.Bool
			var effects atomic.Int64
			endpoint := serveConsent(t, &asks, &effects)
			for _, ask := range []bool{tt.first, tt.second} {
				asks.Store(ask)
				session := connectKeyed(t, endpoint)
				res, err := session.CallTool(idempotency.WithIntent(t.Context(), "s-1/call_9"), &mcp.CallToolParams{Name: "pay"})
				if err != nil || res.Content[0].(*mcp.TextContent).Text != "paid" {
					t.Fatalf("%+v, %v", res, err)
				}
			}
			if n := effects.Load(); n != 1 {
				t.Errorf("%d effects", n)
			}
		})
	}
}

// serveConsent serves a tool that may ask before it takes effect, on protocol version
// 2026-07-28, where the client goes through the rounds.
func serveConsent(t *testing.T, asks *atomic.Bool, effects *atomic.Int64) string {
	server := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	server.AddReceivingMiddleware(idempotency.Deduplicate(nil, nil))
	server.AddTool(&mcp.Tool{Name: "pay", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if asks.Load() && len(req.Params.InputResponses) == 0 {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"sure": &mcp.ElicitParams{
				Message: "sure?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`),
			}}}, nil
		}
		effects.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "paid"}}}, nil
	})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	t.Cleanup(h.Close)
	return h.URL
}

// connectKeyed connects a new client with a ledger of its own, to a server whose word
// on keys it takes.
func connectKeyed(t *testing.T, endpoint string) *mcp.ClientSession {
	stack := middleware.New(&middleware.Options{
		Policy: &policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{TrustAnnotations: new(true)}}}},
	})
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
		},
	})
	client.AddSendingMiddleware(stack.Middleware()...)
	hc := stack.HTTPClient(nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: endpoint, HTTPClient: hc}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close(); hc.CloseIdleConnections() })
	return session
}
