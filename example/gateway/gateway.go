package main

import (
	"context"
	"log"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
)

// A gateway is a server to its agents and a client to its upstreams. One stack serves
// them all: they share policy and ledger, while breakers, limiters and budgets are kept
// for each upstream by its name.
type gateway struct {
	server    *mcp.Server
	upstreams []*upstream
}

func newGateway(stack *middleware.Stack, specs []spec, log *log.Logger) *gateway {
	g := &gateway{server: mcp.NewServer(&mcp.Implementation{Name: "surecall-gateway", Version: "1"}, &mcp.ServerOptions{
		// Said also while no upstream has answered yet.
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
	})}
	for _, s := range specs {
		g.upstreams = append(g.upstreams, newUpstream(stack, s, g.server, log))
	}
	return g
}

// handler serves agents at every path, in the newest version of the protocol that they
// speak, and without sessions: a restart of the gateway loses nothing for them. A call
// goes on when its agent has gone (no PropagateRequestCancellation), so that its outcome
// gets known, and can be asked for with the same key.
//
// Whoever reaches it may call. Put auth.RequireBearerToken around it, and calls are kept
// apart by the token's user.
func (g *gateway) handler() http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return g.server },
		&mcp.StreamableHTTPOptions{Stateless: true})
}

// run keeps the upstreams connected, each by itself, until ctx ends.
func (g *gateway) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, u := range g.upstreams {
		all.Go(func() { u.keep(ctx) })
	}
	all.Wait()
}
