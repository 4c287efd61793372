package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// A chaosProcess is a client with a ledger of its own over the common store.
type chaosProcess struct {
	world  *chaosWorld
	client *mcp.Client
	http   *http.Client

	news atomic.Int64 // of the server's own that arrived, in a steady world

	mu      sync.Mutex
	session *chaosSession
	dead    []*chaosSession
}

type chaosSession struct {
	*mcp.ClientSession
	began, died time.Time
	failure     error // that told of its end
}

type chaosRecordKey struct{}

func newChaosProcess(w *chaosWorld, rules *policy.Policy, ledger *idempotency.Ledger) *chaosProcess {
	p := &chaosProcess{world: w}
	stack := middleware.New(&middleware.Options{
		Policy: rules,
		Ledger: ledger,
		OnRecord: func(ctx context.Context, r *observe.Record) {
			if said, ok := ctx.Value(chaosRecordKey{}).(*chaosSaid); ok {
				said.record = r
			}
		},
	})
	opts := &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
		},
	}
	if w.steady {
		opts.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { p.news.Add(1) }
	}
	p.client = mcp.NewClient(&mcp.Implementation{Name: "chaos", Version: "1"}, opts)
	p.client.AddSendingMiddleware(stack.Middleware()...)
	var base *http.Client
	if w.options.HTTP2 {
		base = &http.Client{Transport: &http.Transport{TLSClientConfig: w.server.TLS(), ForceAttemptHTTP2: true}}
	}
	p.http = stack.HTTPClient(base)
	return p
}

// connect opens a session; connections are dropped meanwhile.
func (p *chaosProcess) connect() error {
	var err error
	for range 100 {
		s := &chaosSession{began: time.Now()}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		s.ClientSession, err = p.client.Connect(ctx, &mcp.StreamableClientTransport{
			Endpoint: p.world.server.URL(), HTTPClient: p.http, OAuthHandler: &authorizer{},
		}, nil)
		cancel()
		if err == nil {
			p.session = s
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("%s: connect: %w", p.world.name, err)
}

func (p *chaosProcess) current() *chaosSession {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session
}

func (p *chaosProcess) ended() []*chaosSession {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*chaosSession(nil), p.dead...)
}

// renew does what frameworks do when a session seems to be lost: ping, and connect
// anew if that fails.
func (p *chaosProcess) renew(session *chaosSession) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != session {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if session.failure = session.Ping(ctx, nil); !lost(session.failure) {
		return nil
	}
	session.died = time.Now()
	p.dead = append(p.dead, session)
	return p.connect()
}

func (p *chaosProcess) close() {
	for _, s := range append(p.ended(), p.current()) {
		_ = s.Close() // the server may have forgotten it
	}
	p.http.CloseIdleConnections()
}
