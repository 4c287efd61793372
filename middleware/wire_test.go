package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// fakeWire is a base transport without a network, for synctest: tools/call is
// answered by a function, everything else by the SDK's own server.
type fakeWire struct {
	sdk  http.Handler
	call func(n int, p posted) (*http.Response, error)

	mu    sync.Mutex
	posts []posted
}

// posted is one tools/call POST as the wire saw it.
type posted struct {
	at     time.Time
	req    *http.Request
	id     json.RawMessage
	tool   string
	params mcp.CallToolParams
	body   []byte
}

func (w *fakeWire) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Mcp-Method") != "tools/call" {
		rec := httptest.NewRecorder()
		w.sdk.ServeHTTP(rec, req)
		return rec.Result(), nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var msg struct {
		ID     json.RawMessage
		Params mcp.CallToolParams
	}
	if err := json.Unmarshal(body, &msg); err != nil {
		return nil, err
	}
	p := posted{at: time.Now(), req: req, id: msg.ID, tool: msg.Params.Name, params: msg.Params, body: body}
	w.mu.Lock()
	w.posts = append(w.posts, p)
	n := len(w.posts)
	w.mu.Unlock()
	return w.call(n, p)
}

func (w *fakeWire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.posts)
}

// answer is a good answer.
func (p posted) answer() (*http.Response, error) {
	return jsonAnswer(200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}`, p.id)), nil
}

// hang blocks as net/http does until the request's context ends, before a
// connection was obtained or after.
func (p posted) hang(connected bool) (*http.Response, error) {
	p.connect(connected)
	<-p.req.Context().Done()
	return nil, context.Cause(p.req.Context())
}

// connect fires the trace events of a real transport.
func (p posted) connect(obtained bool) {
	trace := httptrace.ContextClientTrace(p.req.Context())
	if trace == nil {
		return
	}
	trace.GetConn("test")
	if obtained {
		trace.GotConn(httptrace.GotConnInfo{})
	}
}

func jsonAnswer(status int, body string, header ...string) *http.Response {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader([]byte(body)))}
}

// bench is a wrapped client over a fake wire.
type bench struct {
	t       testing.TB
	wire    *fakeWire
	stack   *middleware.Stack
	session *mcp.ClientSession

	mu      sync.Mutex
	records []*observe.Record
}

// newBench connects a client over a fake wire. Rules come before those for the
// built-in tools.
func newBench(t testing.TB, call func(int, posted) (*http.Response, error), rules ...policy.Rule) *bench {
	t.Helper()
	return newBenchOf(t, nil, call, rules...)
}

// newBenchOf is newBench for a client with options.
func newBenchOf(t testing.TB, opts *mcp.ClientOptions, call func(int, posted) (*http.Response, error), rules ...policy.Rule) *bench {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "fake", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "pay"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
	b := &bench{t: t, wire: &fakeWire{
		sdk:  mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}),
		call: call,
	}}
	stack := middleware.New(&middleware.Options{
		Policy: &policy.Policy{Rules: append(rules, classes()...)},
		OnRecord: checked(t, func(_ context.Context, r *observe.Record) {
			b.mu.Lock()
			b.records = append(b.records, r)
			b.mu.Unlock()
		}),
	})
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	client.AddSendingMiddleware(stack.Middleware()...)
	hc := stack.HTTPClient(&http.Client{Transport: b.wire})
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://fake.test/mcp", HTTPClient: hc}, nil)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	b.stack, b.session = stack, cs
	return b
}

// call calls a tool; timeout 0 is no deadline.
func (b *bench) call(tool string, timeout time.Duration) (*mcp.CallToolResult, *observe.Record, error) {
	ctx := b.t.Context()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return b.callIn(ctx, tool)
}

func (b *bench) callIn(ctx context.Context, tool string) (*mcp.CallToolResult, *observe.Record, error) {
	res, err := b.session.CallTool(ctx, &mcp.CallToolParams{Name: tool})
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.records) - 1; i >= 0; i-- {
		if b.records[i].Tool == tool {
			return res, b.records[i], err
		}
	}
	b.t.Fatalf("no record of %s (error %v)", tool, err)
	return nil, nil, nil
}

// wrote fires the trace event of a written request.
func (p posted) wrote() {
	if trace := httptrace.ContextClientTrace(p.req.Context()); trace != nil && trace.WroteRequest != nil {
		trace.WroteRequest(httptrace.WroteRequestInfo{})
	}
}
