package middleware_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// wires are connections in memory, so that a server can be reached, restarted and
// taken away within a synctest bubble. They are a net.Listener.
type wires struct {
	conns chan net.Conn
	gone  chan struct{}

	mu   sync.Mutex
	open []net.Conn
	down bool
}

func newWires() *wires { return &wires{conns: make(chan net.Conn), gone: make(chan struct{})} }

func (w *wires) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	w.mu.Lock()
	down := w.down
	w.mu.Unlock()
	if down {
		return nil, errors.New("nobody listens")
	}
	ours, theirs := net.Pipe()
	select {
	case w.conns <- theirs:
	case <-w.gone:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = append(w.open, theirs)
	return ours, nil
}

// cut closes every connection.
func (w *wires) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.open {
		_ = c.Close()
	}
	w.open = nil
}

// setDown says whether nobody answers.
func (w *wires) setDown(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
}

func (w *wires) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.gone:
		return nil, net.ErrClosed
	}
}

func (w *wires) Close() error   { close(w.gone); return nil }
func (w *wires) Addr() net.Addr { return &net.TCPAddr{} }

// healRig is a wrapped client at a server in memory.
type healRig struct {
	*rig
	wires   *wires
	base    http.RoundTripper
	changed int // list_changed notifications that arrived
}

// inBubble runs a test with a wrapped client at a 2025-11-25 server with sessions.
func inBubble(t *testing.T, so middlewaretest.Options, opts middleware.Options, f func(r *healRig), rules ...policy.Rule) {
	so.Sessions = true
	inBubbleWithout(t, so, opts, f, rules...)
}

// inBubbleWithout runs a test at a server that need not have sessions.
func inBubbleWithout(t *testing.T, so middlewaretest.Options, opts middleware.Options, f func(r *healRig), rules ...policy.Rule) {
	synctest.Test(t, func(t *testing.T) {
		so.Version = middlewaretest.Version20251125
		r := &healRig{rig: &rig{t: t, server: middlewaretest.NewUnstarted(&so)}, wires: newWires()}
		web := &http.Server{Handler: r.server.Handler()}
		var serving sync.WaitGroup
		serving.Go(func() { _ = web.Serve(r.wires) })
		base := &http.Transport{DialContext: r.wires.dial}
		r.base = base

		opts.Policy = &policy.Policy{Rules: append(rules, classes()...)}
		if err := opts.Policy.Validate(); err != nil {
			t.Fatal(err)
		}
		opts.OnRecord = checked(t, func(_ context.Context, rec *observe.Record) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.records = append(r.records, rec)
		})
		r.stack = middleware.New(&opts)
		r.session = r.connect(r.stack)
		f(r)

		_ = r.session.Close()
		_ = web.Close()
		r.server.Close()
		base.CloseIdleConnections()
		serving.Wait()
	})
}

const healEndpoint = "http://server.test/mcp"

// connect connects a client, a bare one where stack is nil.
func (r *healRig) connect(stack *middleware.Stack) *mcp.ClientSession {
	return r.connectWith(stack, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.changed++
		},
	})
}

// connectWith connects a client with options.
func (r *healRig) connectWith(stack *middleware.Stack, opts *mcp.ClientOptions) *mcp.ClientSession {
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	hc := &http.Client{Transport: r.base}
	if stack != nil {
		client.AddSendingMiddleware(stack.Middleware()...)
		hc.Transport = callerToken{stack.Transport(r.base)}
	}
	cs, err := client.Connect(r.t.Context(), &mcp.StreamableClientTransport{Endpoint: healEndpoint, HTTPClient: hc}, nil)
	if err != nil {
		r.t.Fatalf("connect: %v", err)
	}
	synctest.Wait()
	return cs
}

// callerToken is a host's own layer above ours, which adds each caller's credentials.
type callerToken struct{ next http.RoundTripper }

type tokenKey struct{}

func (c callerToken) RoundTrip(req *http.Request) (*http.Response, error) {
	if token, ok := req.Context().Value(tokenKey{}).(string); ok {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", token)
	}
	return c.next.RoundTrip(req)
}

// restart makes the server forget its sessions and cut its connections.
func (r *healRig) restart() {
	r.server.ForgetSessions()
	r.wires.cut()
	synctest.Wait()
}

// sent are the entries of a JSON-RPC method, or of an HTTP method.
func (r *healRig) sent(method string) []middlewaretest.Entry {
	var all []middlewaretest.Entry
	for _, e := range r.server.Entries() {
		if e.Method == method || e.Method == "" && e.HTTPMethod == method {
			all = append(all, e)
		}
	}
	return all
}

// handshakes checks how many sessions the server was asked for.
func (r *healRig) handshakes(want int) {
	r.t.Helper()
	if n := r.server.Counts().Initializes; n != want {
		r.t.Errorf("%d handshakes, want %d", n, want)
	}
}

// tell checks what a call came to.
func tell(t *testing.T, rec *observe.Record, err error, o observe.Outcome, d observe.Delivery, healed bool) {
	t.Helper()
	if rec.Outcome != o || rec.Delivery != d || rec.Healed != healed || (err == nil) != o.Usable() {
		t.Errorf("want %s, %s, healed %t: err %v, record %+v", o, d, healed, err, rec)
	}
}
