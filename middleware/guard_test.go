package middleware_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/policy"
)

const (
	listen  = `{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{}}`
	callPay = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"pay"}}`
	list    = `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{}}`
)

// roundTrip is a base transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func newRequest(t *testing.T, method, media, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://fake.test/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", "s1")
	req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	req.Header.Set("Content-Type", media)
	return req
}

// TestPassesUntouched: what is not the Transport's to guard reaches the base as the
// request that it is, and its response comes back as it is, unusable or not.
func TestPassesUntouched(t *testing.T) {
	for _, c := range []struct{ name, method, media, body string }{
		{"standalone stream", http.MethodGet, "", ""},
		{"end of the session", http.MethodDelete, "", ""},
		{"DELETE with a body", http.MethodDelete, "application/json", callPay},
		{"subscription", http.MethodPost, "application/json", listen},
		{"token request", http.MethodPost, "application/x-www-form-urlencoded", "grant_type=x"},
		{"JSON of another kind", http.MethodPost, "application/json", `{"client_name":"x"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := newRequest(t, c.method, c.media, c.body)
			if c.media != "application/json" {
				req.GetBody = nil // nor is it read to find out what it is
			}
			header := http.Header{"Content-Type": {"text/html"}, "Mcp-Session-Id": {"another"}, "Retry-After": {"60"}}
			resp := &http.Response{StatusCode: 503, Header: header.Clone(), ContentLength: -1, Body: io.NopCloser(strings.NewReader("<html>"))}
			failure := errors.New("reset")
			guard := middleware.NewTransport(roundTrip(func(got *http.Request) (*http.Response, error) {
				if got != req {
					t.Errorf("the base got another request: %+v", got)
				}
				return resp, failure
			}), nil)
			got, err := guard.RoundTrip(req)
			if got != resp || err != failure {
				t.Fatalf("response %+v, error %v", got, err)
			}
			body, err := io.ReadAll(got.Body)
			if err != nil || string(body) != "<html>" || got.StatusCode != 503 || got.ContentLength != -1 || !maps.EqualFunc(got.Header, header, slices.Equal) {
				t.Errorf("%d %v %q, %v", got.StatusCode, got.Header, body, err)
			}
		})
	}
}

// TestSubscriptionHasNoLimits: a subscription may be silent for hours and say more
// than any result may.
func TestSubscriptionHasNoLimits(t *testing.T) {
	for _, c := range []struct {
		name, body string
		whole      bool
	}{
		{"subscription", listen, true},
		{"call", callPay, false},
		{"list", list, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stream := strings.Repeat(": hour\n\n", 24)
				guard := middleware.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
					if err := waitIn(req.Context(), time.Hour); err != nil {
						return nil, err
					}
					return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, ContentLength: -1,
						Body: &hourly{ctx: req.Context(), rest: stream}}, nil
				}), &middleware.Options{Policy: &policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{
					MaxResult: 64, Limits: policy.Limits{Connect: time.Second, Headers: time.Second, Silence: time.Second, Attempt: time.Second, Call: time.Second},
				}}}}})
				resp, err := guard.RoundTrip(newRequest(t, http.MethodPost, "application/json", c.body))
				var got []byte
				if err == nil {
					got, err = io.ReadAll(resp.Body)
					_ = resp.Body.Close()
				}
				if whole := err == nil && string(got) == stream; whole != c.whole {
					t.Errorf("%d bytes of %d, %v", len(got), len(stream), err)
				}
				time.Sleep(time.Minute) // the server is told that a limit ran out, and does not answer that either
			})
		})
	}
}

// hourly is a body that gives eight bytes an hour.
type hourly struct {
	ctx  context.Context
	rest string
}

func (h *hourly) Read(b []byte) (int, error) {
	if h.rest == "" {
		return 0, io.EOF
	}
	if err := waitIn(h.ctx, time.Hour); err != nil {
		return 0, err
	}
	n := copy(b, h.rest[:min(8, len(h.rest))])
	h.rest = h.rest[n:]
	return n, nil
}

func (h *hourly) Close() error { return nil }

func waitIn(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// askedFor is an authorization handler that notes what it was asked for.
type askedFor struct {
	mu  sync.Mutex
	saw []string
}

func (a *askedFor) TokenSource(context.Context) (oauth2.TokenSource, error) { return nil, nil }
func (a *askedFor) Authorize(_ context.Context, _ *http.Request, resp *http.Response) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.saw = append(a.saw, resp.Status[:3]+" "+resp.Header.Get("Www-Authenticate"))
	return resp.Body.Close()
}

// TestAuthorizationSeesItsStatus: 401 asks for a token and 403 for more scope (MCP,
// authorization), whatever was sent; the handler gets status and challenge.
func TestAuthorizationSeesItsStatus(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		for _, c := range []struct{ version, method string }{
			{middlewaretest.Version20260728, "server/discover"},
			{middlewaretest.Version20260728, "tools/list"},
			{middlewaretest.Version20260728, "tools/call"},
			{middlewaretest.Version20251125, "initialize"},
			{middlewaretest.Version20251125, "notifications/initialized"},
			{middlewaretest.Version20251125, "tools/list"},
			{middlewaretest.Version20251125, "tools/call"},
		} {
			t.Run(http.StatusText(status)+"/"+c.version+"/"+c.method, func(t *testing.T) {
				t.Parallel()
				server := middlewaretest.NewServer(&middlewaretest.Options{Version: c.version})
				t.Cleanup(server.Close)
				asking := middlewaretest.Status(status)
				asking.Header.Set("Www-Authenticate", "Bearer scope=pay")
				server.ScriptMethod(c.method, asking)
				handler := &askedFor{}
				cs := connectAuthorized(t, server, handler)
				if _, err := cs.ListTools(t.Context(), nil); err != nil {
					t.Errorf("tools/list: %v", err)
				}
				if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"}); err != nil || server.Effects("pay") != 1 {
					t.Errorf("tools/call: %v, %d effects", err, server.Effects("pay"))
				}
				want := []string{asking.Name[len("status-"):] + " Bearer scope=pay"}
				if !slices.Equal(handler.saw, want) {
					t.Errorf("the handler saw %q, want %q", handler.saw, want)
				}
			})
		}
	}
}

func connectAuthorized(t *testing.T, server *middlewaretest.Server, handler *askedFor) *mcp.ClientSession {
	t.Helper()
	stack := middleware.New(nil)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	client.AddSendingMiddleware(stack.Middleware()...)
	hc := stack.HTTPClient(nil)
	t.Cleanup(hc.CloseIdleConnections)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL(), HTTPClient: hc, OAuthHandler: handler}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

// TestThrottledListHoldsBackCalls: a server that asks for quiet when its tools are
// listed means every request.
func TestThrottledListHoldsBackCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ int, p posted) (*http.Response, error) { return p.answer() })
		defer b.session.Close()
		sdk := b.wire.sdk
		b.wire.sdk = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Method") == "tools/list" {
				w.Header().Set("Retry-After", "5")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			sdk.ServeHTTP(w, r)
		})
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.session.ListTools(ctx, nil); err == nil || time.Since(start) != 0 {
			t.Fatalf("tools/list after %v: %v", time.Since(start), err)
		}
		if _, rec, err := b.call("pay", 0); err != nil || time.Since(start) != 5*time.Second || rec.Attempts[0].WaitMs != 5000 {
			t.Errorf("tools/call after %v: %v, %+v", time.Since(start), err, rec)
		}
	})
}
