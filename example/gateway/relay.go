package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A relay passes an upstream's progress on to the agent whose call it is. The token is
// ours upstream, since two agents may choose the same.
type relay struct {
	mu    sync.Mutex
	last  int
	calls map[string]listener
}

// A listener is a call whose agent wants to hear of its progress. Its context leads to
// the call's own stream.
type listener struct {
	ctx context.Context
	req *mcp.CallToolRequest
}

func newRelay() *relay { return &relay{calls: map[string]listener{}} }

// follow returns the token for an upstream call, nil if its agent asked for none, and a
// function that ends it.
func (r *relay) follow(ctx context.Context, req *mcp.CallToolRequest) (token any, done func()) {
	if req.Params.GetProgressToken() == nil {
		return nil, func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	t := fmt.Sprintf("gateway-%d", r.last)
	r.calls[t] = listener{ctx, req}
	return t, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.calls, t)
	}
}

// pass is the upstream client's ProgressNotificationHandler.
func (r *relay) pass(_ context.Context, n *mcp.ProgressNotificationClientRequest) {
	token, _ := n.Params.ProgressToken.(string)
	r.mu.Lock()
	l, waits := r.calls[token]
	r.mu.Unlock()
	if !waits {
		return // the call is over
	}
	told := *n.Params
	told.ProgressToken = l.req.Params.GetProgressToken()
	_ = l.req.Session.NotifyProgress(l.ctx, &told) // an agent that has gone needs none
}
