package main

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
)

// A kitchen is a server that misbehaves, and a wrapped client that is connected to
// it.
type kitchen struct {
	server  *middlewaretest.Server
	http    *http.Client
	session *mcp.ClientSession
	record  *observe.Record // of the latest call
	order   int             // the argument that tells calls apart
}

// open starts the server and connects the client. This is all there is to wrapping
// a client: an HTTP client for its transport, middlewares for itself.
func open(ctx context.Context) (*kitchen, error) {
	k := &kitchen{server: middlewaretest.NewServer(nil)}
	stack := middleware.New(&middleware.Options{
		Policy:   rules(),
		OnRecord: func(_ context.Context, r *observe.Record) { k.record = r },
	})
	k.http = stack.HTTPClient(nil)
	client := mcp.NewClient(&mcp.Implementation{Name: "quickstart", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: agree,
	})
	client.AddSendingMiddleware(stack.Middleware()...)
	var err error
	k.session, err = client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: k.server.URL(), HTTPClient: k.http}, nil)
	if err != nil {
		k.server.Close()
		return nil, err
	}
	return k, nil
}

// agree is the user.
func agree(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
}

// make makes one call and says what came of it.
func (k *kitchen) make(ctx context.Context, c call) row {
	if c.gone {
		k.shutDown()
	}
	if c.within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.within)
		defer cancel()
	}
	k.record = &observe.Record{}
	k.server.Script(c.tool, c.faults...)
	effects, arrived := k.server.Effects(c.tool), k.server.Posts(c.tool)
	if !c.again {
		k.order++
	}
	params := &mcp.CallToolParams{Name: c.tool, Arguments: map[string]any{"order": k.order}}
	params.SetProgressToken(c.tool)
	res, err := k.session.CallTool(ctx, params)
	return row{
		call:    c,
		record:  k.record,
		effects: k.server.Effects(c.tool) - effects,
		arrived: k.server.Posts(c.tool) - arrived,
		result:  res,
		err:     err,
	}
}

func (k *kitchen) shutDown() {
	k.server.Close()
	k.http.CloseIdleConnections()
}

func (k *kitchen) close() {
	_ = k.session.Close()
	k.shutDown()
}
