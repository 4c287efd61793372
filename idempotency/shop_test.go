package idempotency_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
)

// shopServer is a server with tools that count how often they ran.
type shopServer struct {
	*mcp.Server
	ran  atomic.Int32
	hold chan struct{} // held tools wait for it

	questions atomic.Int32 // that asks has to put before it runs
}

func newShopServer(store idempotency.Store, opts *idempotency.DeduplicateOptions) *shopServer {
	s := &shopServer{
		Server: mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil),
		hold:   make(chan struct{}),
	}
	s.questions.Store(1)
	s.AddReceivingMiddleware(recovered, idempotency.Deduplicate(store, opts))
	schema := &struct {
		Type string `json:"type"`
	}{"object"}
	for name, handler := range map[string]mcp.ToolHandler{
		"order": s.order, "refund": s.order, "fails": s.fails, "refuses": s.refuses, "breaks": s.breaks,
		"panics": s.panics, "held": s.held, "asks": s.asks, "asks, held": s.asksHeld,
	} {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: schema}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return handler(ctx, req)
		})
	}
	return s
}

// recovered keeps the server alive when a tool panics.
func recovered(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				res, err = nil, fmt.Errorf("%v", p)
			}
		}()
		return next(ctx, method, req)
	}
}

func (s *shopServer) order(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	n := s.ran.Add(1)
	return &mcp.CallToolResult{
		Meta:              mcp.Meta{"run": float64(n)},
		Content:           []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("order %d", n)}},
		StructuredContent: json.RawMessage(`{"id":9007199254740993}`),
	}, nil
}

func (s *shopServer) fails(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	res := &mcp.CallToolResult{}
	res.SetError(fmt.Errorf("failure %d", s.ran.Add(1)))
	return res, nil
}

func (s *shopServer) refuses(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return nil, &jsonrpc.Error{Code: -31001, Message: fmt.Sprintf("refusal %d", s.ran.Add(1)), Data: json.RawMessage(`{"a":1}`)}
}

func (s *shopServer) breaks(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return nil, fmt.Errorf("break %d", s.ran.Add(1))
}

func (s *shopServer) panics(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	panic(fmt.Sprintf("panic %d", s.ran.Add(1)))
}

// held stops halfway if its request is cancelled.
func (s *shopServer) held(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	s.ran.Add(1)
	select {
	case <-s.hold:
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "held"}}}, nil
	case <-ctx.Done():
		res := &mcp.CallToolResult{}
		res.SetError(fmt.Errorf("halfway: %w", ctx.Err()))
		return res, nil
	}
}

// asks runs once it has been answered all its questions, one in each round.
func (s *shopServer) asks(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if question := s.question(req); question != nil {
		return question, nil
	}
	return s.order(ctx, req)
}

func (s *shopServer) asksHeld(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if question := s.question(req); question != nil {
		return question, nil
	}
	return s.held(ctx, req)
}

// question is the next one to be put, or nil.
func (s *shopServer) question(req *mcp.CallToolRequest) *mcp.CallToolResult {
	answered, _ := strconv.Atoi(req.Params.RequestState)
	if len(req.Params.InputResponses) > 0 {
		answered++
	}
	if answered >= int(s.questions.Load()) {
		return nil
	}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"sure": &mcp.ElicitParams{
		Message: "sure?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`),
	}}, RequestState: strconv.Itoa(answered)}
}

// A connection is how a client reaches the server, with a token that says who it is.
type connection func(t *testing.T, s *mcp.Server, token string) mcp.Transport

func inMemory(t *testing.T, s *mcp.Server, _ string) mcp.Transport {
	ours, theirs := mcp.NewInMemoryTransports()
	ss, err := s.Connect(context.WithoutCancel(t.Context()), ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ss.Wait() })
	return theirs
}

func overHTTP(opts *mcp.StreamableHTTPOptions) connection {
	return func(t *testing.T, s *mcp.Server, token string) mcp.Transport {
		handler := auth.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
			return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
		}, nil)(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, opts))
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		return &mcp.StreamableClientTransport{
			Endpoint: server.URL, HTTPClient: &http.Client{Transport: bearer{token, server.Client().Transport}},
		}
	}
}

type bearer struct {
	token string
	base  http.RoundTripper
}

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+b.token)
	return b.base.RoundTrip(req)
}

var connections = map[string]connection{
	"in memory":        inMemory,
	"HTTP, 2025-11-25": overHTTP(nil),
	"HTTP, 2026-07-28": overHTTP(&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}),
}

type shopper struct {
	*mcp.ClientSession
	asked atomic.Int32
}

func (s *shopServer) connect(t *testing.T, over connection, token string) *shopper {
	t.Helper()
	return s.connectWith(t, over, token, nil)
}

// connectWith says how the client goes through rounds.
func (s *shopServer) connectWith(t *testing.T, over connection, token string, rounds *mcp.MultiRoundTripOptions) *shopper {
	t.Helper()
	c := &shopper{}
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
		MultiRoundTrip: rounds,
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			c.asked.Add(1)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
		},
	})
	session, err := client.Connect(t.Context(), over(t, s.Server, token), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	c.ClientSession = session
	return c
}

// call tells a call's answer in a word: its text, "error: " and its text, or the
// code and message of a protocol error; and "replay: " before it. A question is
// "asked".
func (c *shopper) call(ctx context.Context, tool string, key any, args any) string {
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	if key != nil {
		params.Meta = mcp.Meta{idempotency.MetaKey: key}
	}
	return c.told(ctx, params)
}

// round makes one round of a call by hand, with the keys that this library gives it.
func (c *shopper) round(ctx context.Context, tool, key string, n int) string {
	params := &mcp.CallToolParams{Name: tool, Meta: mcp.Meta{idempotency.MetaKey: idempotency.RoundKey(key, n)}}
	if n > 1 {
		params.Meta[idempotency.MetaCallKey] = key
		params.InputResponses = mcp.InputResponseMap{"sure": &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}}
		params.RequestState = strconv.Itoa(n - 2)
	}
	return c.told(ctx, params)
}

func (c *shopper) told(ctx context.Context, params *mcp.CallToolParams) string {
	res, err := c.CallTool(ctx, params)
	var rpc *jsonrpc.Error
	switch {
	case errors.As(err, &rpc):
		return strings.TrimSpace(fmt.Sprintf("%d %s %s", rpc.Code, rpc.Message, rpc.Data))
	case err != nil:
		return err.Error()
	case res.NeedsInput():
		return "asked"
	}
	text := res.Content[0].(*mcp.TextContent).Text
	if res.IsError {
		text = "error: " + text
	}
	if since, ok := res.Meta[idempotency.MetaReplay].(string); ok {
		if at, err := time.Parse(time.RFC3339, since); err != nil || time.Since(at) > time.Hour {
			return "a replay since " + since
		}
		text = "replay: " + text
	}
	return text
}
