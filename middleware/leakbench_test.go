package middleware_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/policy"
)

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// capability is a credential in a URL's path.
const capability = "5f2c81e09ab34d6f9e7712c40d8a6b13"

// leakBench is a wrapped client over a fake wire, at an address that is a capability.
type leakBench struct {
	seen    evidenceTexts
	wire    *leakWire
	handler *failingHandler
	session *mcp.ClientSession
}

// leakWire answers calls by one RoundTripper, and everything else after the handshake
// by another.
type leakWire struct {
	fake  *fakeWire
	call  http.RoundTripper
	other http.RoundTripper
}

func (w *leakWire) RoundTrip(req *http.Request) (*http.Response, error) {
	switch method := req.Header.Get("Mcp-Method"); {
	case method == "tools/call" && w.call != nil:
		return w.call.RoundTrip(req)
	case method != "tools/call" && w.other != nil:
		return w.other.RoundTrip(req)
	}
	return w.fake.RoundTrip(req)
}

// failingHandler authorizes nobody, where it is told to fail.
type failingHandler struct{ fail error }

func (h *failingHandler) TokenSource(context.Context) (oauth2.TokenSource, error) { return nil, nil }

func (h *failingHandler) Authorize(context.Context, *http.Request, *http.Response) error {
	return h.fail
}

var _ auth.OAuthHandler = (*failingHandler)(nil)

func newLeakBench(t *testing.T, surface policy.Surface, change func(*middleware.Options), call http.RoundTripper) *leakBench {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "fake", Version: "1"}, nil)
	sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	l := &leakBench{handler: &failingHandler{fail: errors.New("no")}}
	l.wire = &leakWire{call: call, fake: &fakeWire{sdk: sdk, call: func(_ int, p posted) (*http.Response, error) { return p.answer() }}}
	opts := &middleware.Options{
		Policy:   &policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{Surface: surface, Retry: policy.Retry{Repeats: -1}}}}},
		OnRecord: checked(t, l.seen.record),
	}
	if change != nil {
		change(opts)
	}
	stack := middleware.New(opts)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	client.AddSendingMiddleware(stack.Middleware()...)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint:     "http://fake.test/" + capability + "/mcp",
		HTTPClient:   stack.HTTPClient(&http.Client{Transport: l.wire}),
		OAuthHandler: l.handler,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	l.session = cs
	return l
}

func (l *leakBench) call(t *testing.T, ctx context.Context) {
	t.Helper()
	l.seen.result(l.session.CallTool(ctx, &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{}}))
}

// brokenBody is an answer whose body ends in an error.
func brokenBody(text string) *http.Response {
	resp := jsonAnswer(200, "")
	resp.ContentLength = -1
	resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"jsonrpc":`), iotest.ErrReader(errors.New(text))))
	return resp
}
