package middleware

import (
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Stack is everything together, in order, over one policy and one state. It is
// safe for concurrent use and may serve several clients and servers.
type Stack struct{ core *core }

// New returns a stack; opts may be nil.
func New(opts *Options) *Stack { return &Stack{core: newCore(opts)} }

// HTTPClient returns a copy of base, nil for a new client, whose transport is
// guarded by a [Transport]. Give it to the SDK's StreamableClientTransport. A base
// without a transport of its own gets one that also counts bytes, which proves
// more calls unsent.
func (s *Stack) HTTPClient(base *http.Client) *http.Client {
	client := http.Client{}
	if base != nil {
		client = *base
	}
	client.Transport = s.core.transport(client.Transport)
	return &client
}

// Transport returns the guarded transport alone.
func (s *Stack) Transport(base http.RoundTripper) *Transport { return s.core.transport(base) }

// Middleware returns the client middlewares, outermost first, for
// Client.AddSendingMiddleware. Add them in one call.
func (s *Stack) Middleware() []mcp.Middleware {
	layers := s.layers()
	chain := make([]mcp.Middleware, len(layers))
	for i, l := range layers {
		chain[i] = l.middleware
	}
	return chain
}

// List names the middlewares, outermost first.
func (s *Stack) List() []string {
	layers := s.layers()
	names := make([]string, len(layers))
	for i, l := range layers {
		names[i] = l.name
	}
	return names
}

// String is the list in one line, down to the transport.
func (s *Stack) String() string {
	return strings.Join(append(s.List(), "SDK", "Transport"), " -> ")
}

type layer struct {
	name       string
	middleware mcp.Middleware
}

// layers is the order. Record sees everything; Surface speaks after the loop has
// ended; Key stands above the loop, so that a call has one key; Admit and Attempt
// stand inside it. In shadow mode two of them are enough to watch.
func (s *Stack) layers() []layer {
	if s.core.opts.Shadow {
		return []layer{{"Record", s.core.recorded}, {"Attempt", s.core.attempt}}
	}
	return []layer{
		{"Record", s.core.recorded},
		{"Surface", s.core.surface},
		{"Key", s.core.keyed},
		{"Retry", s.core.retry},
		{"Admit", s.core.admit},
		{"Attempt", s.core.attempt},
	}
}
