package main

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
)

// A client is a session and the connections below it.
type client struct {
	*mcp.ClientSession
	http *http.Client
}

// connect opens a session, with or without surecall around the SDK.
func connect(ctx context.Context, url string, bare bool) (*client, error) {
	c := &client{http: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}}
	sdk := mcp.NewClient(&mcp.Implementation{Name: "surecall-conformance", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: acceptDefaults,
	})
	if !bare {
		stack := middleware.New(nil)
		sdk.AddSendingMiddleware(stack.Middleware()...)
		c.http = stack.HTTPClient(c.http)
	}
	var err error
	c.ClientSession, err = sdk.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: c.http}, nil)
	return c, err
}

func (c *client) close() {
	_ = c.Close()
	c.http.CloseIdleConnections()
}

// acceptDefaults is a user who accepts a form as it is: the SDK fills in the defaults
// of its schema (SEP-1034).
func acceptDefaults(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
}
