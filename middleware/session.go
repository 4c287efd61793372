package middleware

import (
	"context"
	"fmt"
	"net/url"
	"runtime"
	"sync"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// A server is what is known of the other end of a session. It is known by what the
// host says, never by the name that the server gives itself: a label in the
// context of Connect, else the endpoint of the handshake, else the stack's label.
type server struct {
	name     string
	scope    string // name for the ledger: "" for all servers that nobody named
	endpoint string // without query and credentials; empty where there is no HTTP
	wire     bool   // our Transport, or a connection of ours, carried the handshake
	piped    bool   // it was a connection

	// What records show: an address can hold a credential in its path.
	shownName, shownEndpoint string
}

// sessions knows the server of each session of the clients it serves. Entries go
// with their session. It is safe for concurrent use.
type sessions struct {
	mu      sync.Mutex
	servers map[weak.Pointer[mcp.ClientSession]]server
}

func newSessions() *sessions {
	return &sessions{servers: map[weak.Pointer[mcp.ClientSession]]server{}}
}

func (s *sessions) set(cs *mcp.ClientSession, srv server) {
	key := weak.Make(cs)
	s.mu.Lock()
	_, known := s.servers[key]
	s.servers[key] = srv
	s.mu.Unlock()
	if !known {
		runtime.AddCleanup(cs, s.forget, key)
	}
}

func (s *sessions) get(cs *mcp.ClientSession) server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.servers[weak.Make(cs)]
}

func (s *sessions) forget(key weak.Pointer[mcp.ClientSession]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.servers, key)
}

// A handshake travels in the context of initialize and server/discover, so that
// the Transport can say which endpoint the session has.
type handshake struct {
	mu       sync.Mutex
	endpoint string
	wire     bool
	piped    bool
	session  *httpSession // that the handshake opened, or nil
}

type handshakeKey struct{}

func handshakeFrom(ctx context.Context) *handshake {
	h, _ := ctx.Value(handshakeKey{}).(*handshake)
	return h
}

func (h *handshake) reach(u *url.URL) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.endpoint, h.wire = observe.RedactURL(u), true
}

// pipe says that the session goes over a connection without HTTP.
func (h *handshake) pipe() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wire, h.piped = true, true
}

func (h *handshake) open(s *httpSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session = s
}

// greet passes a handshake on and learns the session's server from it.
func (c *core) greet(ctx context.Context, cs *mcp.ClientSession, next func(context.Context) (mcp.Result, error)) (mcp.Result, error) {
	if cs == nil || handshakeFrom(ctx) != nil {
		return next(ctx)
	}
	h := &handshake{}
	res, err := next(context.WithValue(ctx, handshakeKey{}, h))
	h.mu.Lock()
	defer h.mu.Unlock()
	srv := server{name: observe.ServerFrom(ctx), endpoint: h.endpoint, wire: h.wire, piped: h.piped}
	if srv.name == "" {
		srv.name = srv.endpoint
	}
	srv.scope = srv.name
	if srv.name == "" && c.opts.Server == "" {
		// Two servers that nobody named must not share breakers. They do share the
		// ledger: a process that is started anew must find its calls there.
		srv.name = fmt.Sprintf("unnamed-%d", c.unnamed.Add(1))
	}
	srv.shownEndpoint = observe.RedactPath(srv.endpoint)
	if srv.shownName = srv.name; srv.name == srv.endpoint {
		srv.shownName = srv.shownEndpoint
	}
	c.sessions.set(cs, srv)
	if h.session != nil {
		h.session.belong(cs)
	}
	return res, err
}

// learn keeps what a server's tools say of themselves, for policies that trust it.
func (c *core) learn(ctx context.Context, cl *call, res mcp.Result) {
	list, ok := res.(*mcp.ListToolsResult)
	if !ok || list == nil {
		return
	}
	for _, t := range list.Tools {
		c.learnTool(cl.server.name, t)
		if ctx.Value(ownListKey{}) == nil {
			c.listed(cl.server.name, t)
		}
	}
}

func hintsOf(t *mcp.Tool) policy.Annotations {
	if t.Annotations == nil {
		return policy.Annotations{}
	}
	return policy.Annotations{ReadOnly: t.Annotations.ReadOnlyHint, Idempotent: t.Annotations.IdempotentHint}
}

// server is what is known of a session's other end.
func (c *core) server(cs *mcp.ClientSession) server {
	var srv server
	if cs != nil {
		srv = c.sessions.get(cs)
	}
	if srv.name == "" {
		srv.name, srv.scope, srv.shownName = c.opts.Server, c.opts.Server, c.opts.Server
	}
	return srv
}
