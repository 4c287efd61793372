package boltstore_test

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

var background = context.Background()

// rules are those of a host that knows its bank, with short waits.
func rules() *policy.Policy {
	return &policy.Policy{Rules: []policy.Rule{
		{Tool: "read_*", Settings: policy.Settings{Safety: policy.ReadOnly}},
		{Tool: "keyed*", Settings: policy.Settings{Safety: policy.Keyed}},
		{Tool: "keyed_stream", Settings: policy.Settings{Key: policy.Key{Header: "Idempotency-Key"}}},
		{Settings: policy.Settings{
			Retry:   policy.Retry{Backoff: time.Millisecond, BackoffCap: 5 * time.Millisecond, Budget: -1},
			Breaker: policy.Breaker{Failures: -1},
			Gate:    policy.GateTool,
		}},
	}}
}

// A client is a session through the whole library.
type client struct {
	*mcp.ClientSession
	http *http.Client
}

// connect opens a session; below stands between the library and the SDK.
func connect(ctx context.Context, url string, opts middleware.Options, below ...mcp.Middleware) (*client, error) {
	opts.Policy = rules()
	stack := middleware.New(&opts)
	c := &client{http: stack.HTTPClient(&http.Client{Transport: &http.Transport{}})}
	m := mcp.NewClient(&mcp.Implementation{Name: "payer", Version: "1"}, nil)
	m.AddSendingMiddleware(append(stack.Middleware(), below...)...)
	var err error
	c.ClientSession, err = m.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: c.http}, nil)
	return c, err
}

func (c *client) close() {
	_ = c.Close()
	c.http.CloseIdleConnections()
}

// call calls a tool under an intent.
func (c *client) call(ctx context.Context, tool, intent string, args map[string]any) (text string, failed *observe.Error) {
	ctx, cancel := context.WithTimeout(idempotency.WithIntent(ctx, intent), time.Minute)
	defer cancel()
	res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		if !errors.As(err, &failed) {
			failed = &observe.Error{Reason: err.Error()}
		}
		return "", failed
	}
	for _, part := range res.Content {
		if t, ok := part.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	return text, nil
}

// refusalOf is why the ledger held a call back, or nil.
func refusalOf(e *observe.Error) *idempotency.Error {
	var refused *idempotency.Error
	if e != nil {
		errors.As(e.Cause(), &refused)
	}
	return refused
}
