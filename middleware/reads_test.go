package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/policy"
)

// TestReadingMethods: one 503 does not hide what a server has to read, and nothing
// but the reading methods is sent again.
func TestReadingMethods(t *testing.T) {
	for method, c := range map[string]struct {
		posts int
		call  func(context.Context, *mcp.ClientSession) error // nil: Connect has sent it
	}{
		"initialize":      {2, nil},
		"server/discover": {2, nil},
		"ping":            {2, func(ctx context.Context, cs *mcp.ClientSession) error { return cs.Ping(ctx, nil) }},
		"completion/complete": {2, func(ctx context.Context, cs *mcp.ClientSession) error {
			_, err := cs.Complete(ctx, &mcp.CompleteParams{
				Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}, Argument: mcp.CompleteParamsArgument{Name: "who"},
			})
			return err
		}},
		"prompts/get": {2, func(ctx context.Context, cs *mcp.ClientSession) error {
			_, err := cs.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet"})
			return err
		}},
		"resources/read": {2, func(ctx context.Context, cs *mcp.ClientSession) error {
			_, err := cs.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://a"})
			return err
		}},
		"tools/list": {2, func(ctx context.Context, cs *mcp.ClientSession) error {
			_, err := cs.ListTools(ctx, nil)
			return err
		}},
		"prompts/list": {2, func(ctx context.Context, cs *mcp.ClientSession) error {
			_, err := cs.ListPrompts(ctx, nil)
			return err
		}},
		"resources/list": {2, func(ctx context.Context, cs *mcp.ClientSession) error {
			_, err := cs.ListResources(ctx, nil)
			return err
		}},
		"resources/templates/list": {2, func(ctx context.Context, cs *mcp.ClientSession) error {
			_, err := cs.ListResourceTemplates(ctx, nil)
			return err
		}},
		"logging/setLevel": {1, func(ctx context.Context, cs *mcp.ClientSession) error {
			//lint:ignore SA1019 it is one of the methods that are not repeated, deprecated or not
			return cs.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"})
		}},
		"resources/subscribe": {1, func(ctx context.Context, cs *mcp.ClientSession) error {
			return cs.Subscribe(ctx, &mcp.SubscribeParams{URI: "test://a"})
		}},
		"resources/unsubscribe": {1, func(ctx context.Context, cs *mcp.ClientSession) error {
			return cs.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: "test://a"})
		}},
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			server := &unavailableOnce{next: fullServer(), method: method}
			cs := connectTo(t, server)
			var err error
			if c.call != nil {
				err = c.call(t.Context(), cs)
			}
			if n := server.count(); n != c.posts || (err == nil) != (c.posts == 2) {
				t.Errorf("sent %d times, want %d (%v)", n, c.posts, err)
			}
			if err := cs.Ping(t.Context(), nil); err != nil {
				t.Errorf("the session: %v", err)
			}
		})
	}
}

// unavailableOnce answers 503 to the first request of a method.
type unavailableOnce struct {
	next   http.Handler
	method string

	mu sync.Mutex
	n  int
}

func (u *unavailableOnce) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var msg struct{ Method string }
	_ = json.Unmarshal(body, &msg) // a GET has no body
	if msg.Method == u.method && u.add() == 1 {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	u.next.ServeHTTP(w, r)
}

func (u *unavailableOnce) add() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n++
	return u.n
}

func (u *unavailableOnce) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.n
}

// fullServer is the SDK's own server with something to read of every kind; with
// sessions it speaks 2025-11-25 (go-sdk v1.8.0).
func fullServer() http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "full", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{}, nil
		},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	mcp.AddTool(server, &mcp.Tool{Name: "pay"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
	server.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{}, nil
	})
	read := func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test://a", Text: "a"}}}, nil
	}
	server.AddResource(&mcp.Resource{Name: "a", URI: "test://a"}, read)
	server.AddResourceTemplate(&mcp.ResourceTemplate{Name: "b", URITemplate: "test://b/{id}"}, read)
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
}

// connectTo connects a wrapped client, which repeats without a wait, to a handler.
func connectTo(t *testing.T, handler http.Handler) *mcp.ClientSession {
	t.Helper()
	h := httptest.NewServer(handler)
	t.Cleanup(h.Close)
	stack := middleware.New(&middleware.Options{Policy: &policy.Policy{Rules: []policy.Rule{
		{Settings: policy.Settings{Retry: policy.Retry{Backoff: -1}}},
	}}})
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	client.AddSendingMiddleware(stack.Middleware()...)
	hc := stack.HTTPClient(nil)
	t.Cleanup(hc.CloseIdleConnections)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: h.URL, HTTPClient: hc}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}
