package middlewaretest

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// path is where a started server serves MCP.
const path = "/mcp"

// A Server is an MCP server that misbehaves when told to, and keeps a ledger of
// what it received and what it did. All its methods are safe for concurrent use.
type Server struct {
	opts     Options
	ledger   *ledger
	tools    *toolbox
	keys     *keyStore
	scripts  *scripts
	sessions *sessions
	replays  *replays
	subs     *subscribers
	asked    *questions
	stage    *stage

	handshake atomic.Pointer[Handshake]

	life     context.Context // ends with Close
	end      context.CancelFunc
	handlers gate

	listener net.Listener
	http     *http.Server
	conns    connections
	served   sync.WaitGroup
	tls      *tls.Config
	client   *http.Client
	url      string
}

// NewServer starts a server on a free port of 127.0.0.1. It panics if there is
// none, as there is nothing that a test could do about it. The caller has to
// close the server.
func NewServer(opts *Options) *Server {
	s := NewUnstarted(opts)
	if err := s.Start("127.0.0.1:0"); err != nil {
		panic("middlewaretest: " + err.Error())
	}
	return s
}

// NewUnstarted makes a server that does not listen: mount its [Server.Handler],
// or call [Server.Start].
func NewUnstarted(opts *Options) *Server {
	o := opts.normalized()
	s := &Server{
		opts: o, ledger: newLedger(o.MaxEntries), tools: newToolbox(o.Tools), keys: newKeyStore(),
		scripts: newScripts(), sessions: newSessions(), replays: newReplays(), subs: newSubscribers(),
		asked: newQuestions(), stage: newStage(),
	}
	s.handshake.Store(&Handshake{})
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Start listens on a TCP address and serves until [Server.Close]. It must be
// called at most once.
func (s *Server) Start(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s.http = &http.Server{Handler: s.Handler(), ConnState: s.conns.track, ErrorLog: discardLog}
	scheme := "http"
	if s.opts.HTTP2 {
		scheme = "https"
		if l, err = s.secure(l); err != nil {
			return err
		}
	}
	s.listener = l
	s.url = scheme + "://" + l.Addr().String() + path
	s.client = s.newClient()
	s.served.Go(func() { _ = s.http.Serve(l) })
	return nil
}

// Handler serves MCP at every path. Faults of the connection need an
// [http.Hijacker] on HTTP/1.1; without one they abort the request as well as
// net/http can.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// URL is the address of the MCP endpoint of a started server.
func (s *Server) URL() string { return s.url }

// Client returns an HTTP client that trusts the server's certificate, with a
// connection pool of its own that ends with the server. It is nil before
// [Server.Start].
func (s *Server) Client() *http.Client { return s.client }

// TLS returns a copy of the configuration with which a client trusts the
// server, or nil without [Options.HTTP2].
func (s *Server) TLS() *tls.Config { return s.tls.Clone() }

// Options returns the server's options, with defaults filled in.
func (s *Server) Options() Options { return s.opts }

// Close ends the server: hanging answers, streams and connections included. It
// returns when none of its goroutines is left, and may be called again.
func (s *Server) Close() {
	s.end()
	if s.http != nil {
		_ = s.http.Close()
		s.client.CloseIdleConnections()
	}
	s.handlers.close()
	s.served.Wait()
	s.conns.wait()
}

// Connections returns the number of open connections of a started server.
func (s *Server) Connections() int { return s.conns.count() }

// DropConnections closes every open connection of a started server, as a restart
// would: answers that are on their way are cut. Together with
// [Server.ForgetSessions] it makes the server look restarted.
func (s *Server) DropConnections() { s.conns.drop() }

// Restart makes a started server look restarted: it has forgotten every session, and
// every connection is closed. Scripts, counts and the stored answers of keyed tools
// stay.
func (s *Server) Restart() {
	s.ForgetSessions()
	s.DropConnections()
}

// serve answers one HTTP request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if !s.handlers.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.handlers.leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	x := &exchange{s: s, w: w, r: r, ctx: ctx, entry: newEntry(r, now())}
	x.serve()
}

// A gate counts what is inside, and lets nothing in once it is closed.
type gate struct {
	mu     sync.Mutex
	closed bool
	inside sync.WaitGroup
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.inside.Add(1)
	}
	return !g.closed
}

func (g *gate) leave() { g.inside.Done() }

// close waits until all have left.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.inside.Wait()
}

// connections counts the open connections of an http.Server.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]bool
	gone sync.Cond
}

// track is an http.Server's ConnState hook.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open, c.gone.L = map[net.Conn]bool{}, &c.mu
	}
	switch state {
	case http.StateNew:
		c.open[conn] = true
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
		c.gone.Broadcast()
	}
}

func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// drop closes all open connections.
func (c *connections) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		_ = conn.Close()
	}
}

// wait returns when no connection is open.
func (c *connections) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.open) > 0 {
		c.gone.Wait()
	}
}
