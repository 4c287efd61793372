package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// evidenceTexts collects everything that a call leaves behind in words.
type evidenceTexts struct {
	mu     sync.Mutex
	texts  map[string]string
	called bool
}

func (e *evidenceTexts) add(what, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.texts == nil {
		e.texts = map[string]string{}
	}
	e.texts[what] += text + "\n"
}

// record keeps a record in all its forms.
func (e *evidenceTexts) record(ctx context.Context, r *observe.Record) {
	raw, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	e.add("record", string(raw))
	e.add("text", r.Text())
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewJSONHandler(&log, nil), slog.NewTextHandler(&log, nil)} {
		observe.Log(slog.New(h))(ctx, r)
	}
	e.add("log line", log.String())
	e.called = true
}

// result keeps what the caller and the model get, but for a result of the tool's own.
func (e *evidenceTexts) result(res *mcp.CallToolResult, err error) {
	if err != nil {
		e.add("error", fmt.Sprintf("%v %s", err, err))
		var own *observe.Error
		if errors.As(err, &own) {
			e.add("model text of the error", own.ModelText())
		}
	}
	if own, ok := middleware.FailureOf(res); ok {
		e.add("error behind the result", own.Error())
		raw, _ := json.Marshal(res)
		e.add("model text", string(raw))
	}
}

func (e *evidenceTexts) check(t *testing.T, p *middlewaretest.Plant) {
	t.Helper()
	if !e.called {
		t.Error("no record")
	}
	for what, text := range e.texts {
		if p.Shows(text) {
			t.Errorf("%s shows the secret:\n%s", what, text)
		}
	}
}

// withHeader adds headers to all requests.
type withHeader struct {
	http.RoundTripper
	header http.Header
}

func (w withHeader) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for name, values := range w.header {
		req.Header[name] = values
	}
	return w.RoundTripper.RoundTrip(req)
}

// TestNothingLeaks drives the corpus through a wrapped client.
func TestNothingLeaks(t *testing.T) {
	plants := middlewaretest.Plants()
	if len(plants) < 60 {
		t.Fatalf("%d plants are not many", len(plants))
	}
	names := map[string]bool{}
	for _, so := range []middlewaretest.Options{
		{Version: middlewaretest.Version20260728},
		{Version: middlewaretest.Version20251125, Sessions: true},
	} {
		for _, surface := range []policy.Surface{policy.SurfaceCaller, policy.SurfaceModel} {
			for _, p := range plants {
				name := so.Version + "/" + string(surface) + "/" + p.Name
				if names[name] {
					t.Errorf("two plants are called %s", p.Name)
				}
				names[name] = true
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					callPlanted(t, so, surface, &p)
				})
			}
		}
	}
}

func callPlanted(t *testing.T, so middlewaretest.Options, surface policy.Surface, p *middlewaretest.Plant) {
	server := middlewaretest.NewServer(&so)
	t.Cleanup(server.Close)
	server.Always("pay", p.Fault)
	seen := &evidenceTexts{}
	stack := middleware.New(&middleware.Options{
		Policy:   &policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{Surface: surface, Retry: policy.Retry{Repeats: -1}}}}},
		OnRecord: checked(t, seen.record),
	})
	hc := stack.HTTPClient(nil)
	hc.Transport = withHeader{hc.Transport, p.Header}
	endpoint, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	if endpoint.RawQuery = p.Query.Encode(); p.Password != "" {
		endpoint.User = url.UserPassword("app", p.Password)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	client.AddSendingMiddleware(stack.Middleware()...)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: endpoint.String(), HTTPClient: hc}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close(); stack.Transport(nil).CloseIdleConnections(); hc.CloseIdleConnections() })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if p.Key != "" {
		ctx = idempotency.WithKey(ctx, p.Key)
	}
	seen.result(cs.CallTool(ctx, &mcp.CallToolParams{Name: "pay", Arguments: p.Arguments}))
	seen.check(t, p)
	if id := cs.ID(); id != "" {
		seen.check(t, &middlewaretest.Plant{Secret: id})
	}
}

// elsewhere is the secret of the places that no server reaches.
var elsewhere = &middlewaretest.Plant{Secret: "Zq7Rk2Vw9Xt4Lm8Np3Bc"}

// failingStore is a ledger's store that fails, with a secret in its words: when a
// call begins, or when it is settled.
type failingStore struct {
	idempotency.Store
	settling bool
}

var errStore = fmt.Errorf("dial redis://app:%s@cache.test: %s: refused", elsewhere.Secret, elsewhere.Secret)

func (s *failingStore) Find(ctx context.Context, q idempotency.Query, now time.Time) ([]idempotency.Entry, error) {
	if !s.settling {
		return nil, errStore
	}
	return s.Store.Find(ctx, q, now)
}

func (s *failingStore) Put(ctx context.Context, e idempotency.Entry, now time.Time) error {
	if s.settling && e.Revision > 0 {
		return errStore
	}
	return s.Store.Put(ctx, e, now)
}

// TestNothingLeaksFromTheNetworkOrTheHost: errors of connections, stores, hooks and
// authorization hold secrets too, in whatever form.
func TestNothingLeaksFromTheNetworkOrTheHost(t *testing.T) {
	secret := elsewhere.Secret
	raw := func(err error) http.RoundTripper {
		return roundTripFunc(func(*http.Request) (*http.Response, error) { return nil, err })
	}
	for name, call := range map[string]http.RoundTripper{
		"dial error":   raw(&url.Error{Op: "Post", URL: "https://app:" + secret + "@h.test/?t=" + secret, Err: errors.New("dial tcp: lookup " + secret)}),
		"proxy error":  raw(errors.New("proxyconnect tcp: Proxy-Authorization: Basic " + secret)),
		"tls error":    raw(errors.New("x509: certificate is valid for " + secret + ".internal")),
		"no shape":     raw(errors.New(secret)),
		"a body error": roundTripFunc(func(*http.Request) (*http.Response, error) { return brokenBody(secret), nil }),
		"status text": roundTripFunc(func(*http.Request) (*http.Response, error) {
			resp := jsonAnswer(503, "")
			resp.Status, resp.Proto = "503 "+secret, secret
			return resp, nil
		}),
		"trailer": roundTripFunc(func(*http.Request) (*http.Response, error) {
			resp := jsonAnswer(500, "")
			resp.Trailer = http.Header{"X-Secret": {secret}}
			return resp, nil
		}),
	} {
		for _, surface := range []policy.Surface{policy.SurfaceCaller, policy.SurfaceModel} {
			t.Run(name+"/"+string(surface), func(t *testing.T) {
				l := newLeakBench(t, surface, nil, call)
				l.call(t, t.Context())
				l.seen.check(t, elsewhere)
			})
		}
	}
	t.Run("cause of a context", func(t *testing.T) {
		l := newLeakBench(t, policy.SurfaceModel, nil, roundTripFunc(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, context.Cause(req.Context())
		}))
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New(secret))
		defer cancel()
		l.call(t, ctx)
		l.seen.check(t, elsewhere)
	})
	for _, settling := range []bool{false, true} {
		t.Run(fmt.Sprintf("store, settling=%t", settling), func(t *testing.T) {
			store := &failingStore{idempotency.NewMemory(nil), settling}
			l := newLeakBench(t, policy.SurfaceModel, func(o *middleware.Options) { o.Ledger = idempotency.NewLedger(store, nil) }, nil)
			l.call(t, t.Context())
			l.seen.check(t, elsewhere)
		})
	}
	t.Run("reconciler", func(t *testing.T) {
		l := newLeakBench(t, policy.SurfaceModel, func(o *middleware.Options) {
			o.Reconcile = []middleware.Reconciliation{{Look: func(context.Context, *middleware.Unresolved) (middleware.Finding, *mcp.CallToolResult, error) {
				return "", nil, errors.New("GET https://shop.test/orders?api_key=" + secret + ": 500 token=" + secret)
			}}}
		}, raw(errors.New("reset")))
		l.call(t, t.Context())
		l.seen.check(t, elsewhere)
	})
	t.Run("schema that cannot be fetched", func(t *testing.T) {
		l := newLeakBench(t, policy.SurfaceModel, func(o *middleware.Options) {
			o.Policy.Rules = append(o.Policy.Rules, policy.Rule{Settings: policy.Settings{Safety: policy.Keyed, Key: policy.Key{Argument: "key"}}})
		}, nil)
		l.wire.other = raw(errors.New(secret))
		l.call(t, t.Context())
		l.seen.check(t, elsewhere)
	})
	t.Run("authorization", func(t *testing.T) {
		l := newLeakBench(t, policy.SurfaceModel, nil, roundTripFunc(func(*http.Request) (*http.Response, error) {
			return jsonAnswer(401, `{"error":"invalid_token","error_description":"Bearer `+secret+`"}`, "WWW-Authenticate", `Bearer error_description="`+secret+`"`), nil
		}))
		l.handler.fail = &oauth2.RetrieveError{
			Response: &http.Response{Status: "400"}, Body: []byte(`{"error":"invalid_grant","refresh_token":"` + secret + `"}`),
			ErrorDescription: secret,
		}
		l.call(t, t.Context())
		l.seen.check(t, elsewhere)
	})
	t.Run("a path", func(t *testing.T) {
		l := newLeakBench(t, policy.SurfaceModel, func(o *middleware.Options) { o.Client = "host@1" }, raw(errors.New("reset")))
		l.call(t, t.Context())
		l.seen.check(t, &middlewaretest.Plant{Secret: capability})
		if text := l.seen.texts["record"]; !strings.Contains(text, `"endpoint":"http://fake.test/[redacted]/mcp"`) {
			t.Errorf("the endpoint is not as it should be: %s", text)
		}
	})
}

// TestNothingLeaksFromARenewal: neither what a server says when it refuses a new session,
// nor the id of the new one.
func TestNothingLeaksFromARenewal(t *testing.T) {
	newSession := func(t *testing.T) (*evidenceTexts, *rig, *mcp.ClientSession) {
		r := &rig{t: t, server: middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true})}
		t.Cleanup(r.server.Close)
		seen := &evidenceTexts{}
		stack := middleware.New(&middleware.Options{
			Policy:   &policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{Surface: policy.SurfaceModel}}}},
			OnRecord: checked(t, seen.record),
		})
		return seen, r, r.connect(t, stack)
	}
	call := func(t *testing.T, seen *evidenceTexts, cs *mcp.ClientSession, tool string) {
		seen.result(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool}))
	}
	t.Run("refused", func(t *testing.T) {
		seen, r, cs := newSession(t)
		r.server.ForgetSessions()
		refused := middlewaretest.Status(400)
		refused.Body = `no session for token=` + elsewhere.Secret
		r.server.AlwaysMethod("initialize", refused)
		call(t, seen, cs, "pay")
		seen.check(t, elsewhere)
		if text := seen.texts["text"]; !strings.Contains(text, "it was not renewed") {
			t.Errorf("the text does not tell of the renewal:\n%s", text)
		}
	})
	t.Run("the new id", func(t *testing.T) {
		seen, r, cs := newSession(t)
		r.server.ForgetSessions()
		call(t, seen, cs, "pay")
		if text := seen.texts["text"]; !strings.Contains(text, "the lost session was renewed") {
			t.Errorf("the text does not tell of the renewal:\n%s", text)
		}
		if err := cs.Ping(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		entries := r.server.Entries()
		id := entries[len(entries)-1].Session
		if id == "" || id == cs.ID() {
			t.Fatalf("the session %q was not renewed", id)
		}
		r.server.Always("send_mail", middlewaretest.StatusError(400, -32000, "who is "+id))
		call(t, seen, cs, "send_mail")
		if text := seen.texts["text"]; !strings.Contains(text, "who is [redacted]") {
			t.Errorf("the server's words are not there:\n%s", text)
		}
		seen.check(t, &middlewaretest.Plant{Secret: id})
		seen.check(t, &middlewaretest.Plant{Secret: cs.ID()})
	})
}

// TestNothingLeaksOverStdio: lines that are no answer, and answers that are none.
func TestNothingLeaksOverStdio(t *testing.T) {
	shaped, carried := elsewhere.Secret, "grandmother's blue umbrella"
	for _, noise := range []string{
		`listening with token=` + shaped,
		`{"level":"debug","authorization":"Bearer ` + shaped + `","note":"` + carried + `"}`,
		`{"jsonrpc":"2.0","id":%id%,"error":{"code":-32000,"message":"password=` + shaped + ` ` + carried + `","data":{"token":"` + shaped + `","note":"` + carried + `"}}}`,
		`{"jsonrpc":"2.0","id":%id%,"result":"token=` + shaped + ` ` + carried + `"}`,
		`{"jsonrpc":"2.0","id":"` + carried + `","result":{}}`,
		`{"jsonrpc":"2.0","id":%id%,"error":{"message":"api_key=` + shaped + ` ` + carried,
	} {
		serverIn, clientOut := io.Pipe()
		clientIn, serverOut := io.Pipe()
		s := newLineServer("2025-11-25", serverOut)
		go func() {
			s.serve(serverIn)
			serverOut.Close()
		}()
		seen := &evidenceTexts{}
		stack := middleware.New(&middleware.Options{
			Policy:   &policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{Surface: policy.SurfaceModel}}}},
			OnRecord: checked(t, seen.record),
		})
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		client.AddSendingMiddleware(stack.Middleware()...)
		cs, err := client.Connect(t.Context(), stack.IOTransport(clientIn, clientOut), nil)
		if err != nil {
			t.Fatal(err)
		}
		s.interfere(noise)
		seen.result(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay", Arguments: orders{Pad: carried}}))
		_ = cs.Close()
		seen.check(t, elsewhere)
		seen.check(t, &middlewaretest.Plant{Secret: carried})
		if text := seen.texts["text"]; !strings.HasPrefix(text, "pay  stdio") || strings.Contains(text, "POST") {
			t.Errorf("the text speaks of HTTP:\n%s", text)
		}
	}
}

// TestHideEmail: e-mail addresses are shown to operators, unless they are not to be.
func TestHideEmail(t *testing.T) {
	address := &middlewaretest.Plant{Secret: "jo.doe@mail.example.org"}
	for _, hide := range []bool{false, true} {
		l := newLeakBench(t, policy.SurfaceCaller, func(o *middleware.Options) { o.HideEmail = hide }, roundTripFunc(func(*http.Request) (*http.Response, error) {
			return jsonAnswer(500, "ask "+address.Secret, "Content-Type", "text/plain"), nil
		}))
		l.call(t, t.Context())
		if shows := address.Shows(l.seen.texts["record"]); shows == hide {
			t.Errorf("hidden: %t, shows: %t", hide, shows)
		}
	}
}
