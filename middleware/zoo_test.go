package middleware_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// The zoo of ways in which a call repeats today. A visit is made twice, by the SDK's
// client alone and by one with this library, each to a server of its own, whose
// effects are counted.

// A visit is what happens, and how often the tool may run.
type visit struct {
	options    middlewaretest.Options
	rules      []policy.Rule
	handler    auth.OAuthHandler
	base       func(http.RoundTripper) http.RoundTripper // below everything
	tool       string                                    // default pay
	act        func(v *visitor)
	bare, ours int // effects
}

func (v visit) compare(t *testing.T) {
	t.Helper()
	if v.tool == "" {
		v.tool = "pay"
	}
	for _, wrapped := range []bool{false, true} {
		who, want := "the bare client", v.bare
		if wrapped {
			who, want = "ours", v.ours
		}
		if n := v.effects(t, wrapped); n != want {
			t.Errorf("%s: %d effects, want %d", who, n, want)
		}
	}
}

func (v visit) effects(t *testing.T, wrapped bool) int {
	g := &visitor{t: t, visit: v, server: middlewaretest.NewServer(&v.options), store: idempotency.NewMemory(nil), wrapped: wrapped}
	defer g.server.Close()
	g.start()
	defer func() { g.stop() }()
	v.act(g)
	return g.server.Effects(v.tool)
}

// A visitor is a process with a client, whose store outlives it.
type visitor struct {
	visit
	t       *testing.T
	server  *middlewaretest.Server
	store   idempotency.Store
	wrapped bool

	client  *mcp.Client
	http    *http.Client
	session *mcp.ClientSession
}

// start begins a process: nothing is left of an earlier one but the store.
func (v *visitor) start() {
	base := &http.Transport{TLSClientConfig: v.server.TLS(), ForceAttemptHTTP2: v.options.HTTP2}
	v.http = &http.Client{Transport: base}
	if v.base != nil {
		v.http.Transport = v.base(base)
	}
	v.client = mcp.NewClient(&mcp.Implementation{Name: "zoo", Version: "1"}, nil)
	if v.wrapped {
		stack := middleware.New(&middleware.Options{
			Policy: &policy.Policy{Rules: append(v.rules, classes()...)},
			Ledger: idempotency.NewLedger(v.store, nil),
		})
		v.client.AddSendingMiddleware(stack.Middleware()...)
		v.http = stack.HTTPClient(v.http)
	}
	v.connect()
}

func (v *visitor) stop() {
	_ = v.session.Close()
	v.http.CloseIdleConnections()
}

// connect opens a session, in the place of an earlier one.
func (v *visitor) connect() {
	v.t.Helper()
	if v.session != nil {
		_ = v.session.Close()
	}
	var err error
	transport := &mcp.StreamableClientTransport{Endpoint: v.server.URL(), HTTPClient: v.http, OAuthHandler: v.handler}
	if v.session, err = v.client.Connect(v.t.Context(), transport, nil); err != nil {
		v.t.Fatal(err)
	}
}

func (v *visitor) call(ctx context.Context) (*mcp.CallToolResult, error) {
	return v.session.CallTool(ctx, &mcp.CallToolParams{Name: v.tool, Arguments: map[string]any{"order": "7"}})
}

// warmUp leaves a connection to be used again.
func (v *visitor) warmUp() {
	if _, err := v.session.CallTool(v.t.Context(), &mcp.CallToolParams{Name: "read_weather"}); err != nil {
		v.t.Fatal(err)
	}
}

// callAsADK calls as mcptoolset of google.golang.org/adk/v2 v2.2.0 does: after one
// of four errors it pings, connects anew if that fails, and calls again.
func (v *visitor) callAsADK() (*mcp.CallToolResult, error) {
	res, err := v.call(v.t.Context())
	for _, target := range []error{mcp.ErrConnectionClosed, mcp.ErrSessionMissing, io.ErrClosedPipe, io.EOF} {
		if !errors.Is(err, target) {
			continue
		}
		if v.session.Ping(v.t.Context(), nil) != nil {
			v.connect()
		}
		return v.call(v.t.Context())
	}
	return res, err
}

// callAsEino calls as session.Session of eino-ext's officialmcp v0.1.1 does: after one
// of two errors it connects anew and calls again.
func (v *visitor) callAsEino() (*mcp.CallToolResult, error) {
	res, err := v.call(v.t.Context())
	if errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, mcp.ErrSessionMissing) {
		v.connect()
		return v.call(v.t.Context())
	}
	return res, err
}

// blocked checks that ours was not sent, and that nobody is invited to repeat it.
func (v *visitor) blocked(err error) {
	v.t.Helper()
	if !v.wrapped {
		return
	}
	var e *observe.Error
	if !errors.As(err, &e) || e.Outcome != observe.Blocked || e.Delivery != observe.NotSent || e.RepeatSafe || callsAgain(err) {
		v.t.Errorf("not blocked: %v", err)
	}
}

// keyHeader adds an idempotency key header, which net/http takes for a licence to
// send a POST again when its connection turns out to be dead (Go 1.26).
type keyHeader struct{ http.RoundTripper }

func (k keyHeader) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Idempotency-Key", `"k"`)
	return k.RoundTripper.RoundTrip(req)
}

func (k keyHeader) CloseIdleConnections() { k.RoundTripper.(*http.Transport).CloseIdleConnections() }

func withKeyHeader(base http.RoundTripper) http.RoundTripper { return keyHeader{base} }

// TestZooKeyHeader: net/http repeats by itself.
func TestZooKeyHeader(t *testing.T) {
	keyed := policy.Rule{Tool: "pay", Settings: policy.Settings{
		Safety: policy.Keyed, Key: policy.Key{Header: "Idempotency-Key"}, Retry: policy.Retry{Repeats: -1},
	}}
	for name, rules := range map[string][]policy.Rule{"below us": nil, "ours": {keyed}} {
		for _, dies := range []middlewaretest.Fault{middlewaretest.Reset().Executed(), middlewaretest.Close().Executed()} {
			t.Run(name+"/"+dies.Name, func(t *testing.T) {
				visit{base: withKeyHeader, rules: rules, bare: 2, ours: 1, act: func(v *visitor) {
					v.warmUp()
					v.server.Script("pay", dies)
					_, err := v.call(t.Context())
					if (err != nil) != v.wrapped {
						t.Errorf("wrapped %t: %v", v.wrapped, err)
					}
				}}.compare(t)
			})
		}
	}
}

// TestZooProtocolError: on HTTP/2 net/http repeats any POST after a reset with
// PROTOCOL_ERROR, without a key.
func TestZooProtocolError(t *testing.T) {
	visit{options: middlewaretest.Options{HTTP2: true}, bare: 2, ours: 1, act: func(v *visitor) {
		v.server.Script("pay", catalogued(t, "h2-protocol-error-executed"))
		_, err := v.call(t.Context())
		if (err != nil) != v.wrapped {
			t.Errorf("wrapped %t: %v", v.wrapped, err)
		}
	}}.compare(t)
}

func catalogued(t *testing.T, name string) middlewaretest.Fault {
	t.Helper()
	f, ok := middlewaretest.FaultNamed(name)
	if !ok {
		t.Fatalf("no fault %s", name)
	}
	return f
}

// TestZooEOF: a framework takes a connection that was cut for one that has to be
// renewed, finds the session alive, and calls again. To the bare client's model the
// second payment is a plain success.
func TestZooEOF(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		visit{options: so, bare: 2, ours: 1, act: func(v *visitor) {
			v.server.Script("pay", middlewaretest.Close().Executed())
			_, err := v.callAsADK()
			if (err != nil) != v.wrapped {
				t.Errorf("wrapped %t: %v", v.wrapped, err)
			}
		}}.compare(t)
	})
}

// TestZooSessionLost: the tool runs, and the 404 of a server that has forgotten the
// session comes after it. Frameworks connect anew and call again. A keyed tool takes
// the second call for the first one.
func TestZooSessionLost(t *testing.T) {
	for name, call := range map[string]func(*visitor) (*mcp.CallToolResult, error){"adk": (*visitor).callAsADK, "eino": (*visitor).callAsEino} {
		for _, tool := range []string{"pay", "pay_keyed"} {
			t.Run(name+"/"+tool, func(t *testing.T) {
				so := middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true}
				visit{options: so, tool: tool, bare: 2, ours: 1, act: func(v *visitor) {
					v.server.Script(tool, catalogued(t, "session-forgotten-executed"))
					_, err := call(v)
					if !v.wrapped || tool != "pay" {
						return
					}
					if err == nil {
						t.Error("the loss passed for a success")
					}
					v.connect() // and if it calls again all the same
					_, err = v.call(t.Context())
					v.blocked(err)
				}}.compare(t)
			})
		}
	}
}

// TestZooResumedRunner: the tools ran, the model's API failed, and the caller resumes
// the runner, which runs them again with the ids that they had.
func TestZooResumedRunner(t *testing.T) {
	for name, f := range map[string]middlewaretest.Fault{
		"after an answer": {}, "after an error": catalogued(t, "jsonrpc-32603-executed"), "after a cut": middlewaretest.Reset().Executed(),
	} {
		t.Run(name, func(t *testing.T) {
			visit{bare: 2, ours: 1, act: func(v *visitor) {
				v.server.Script("pay", f)
				ctx := idempotency.WithIntent(t.Context(), "conversation-1/call-7")
				first, err := v.call(ctx)
				again, errAgain := v.call(ctx)
				switch {
				case !v.wrapped:
				case name == "after a cut":
					v.blocked(errAgain)
				case name == "after an error":
					sameAnswer(t, first, err, again, errAgain)
				case again.Meta[idempotency.MetaReplay] == nil:
					t.Errorf("not marked as a replay: %+v", again)
				}
			}}.compare(t)
		})
	}
}

// TestZooModelAsksAgain: the model reads of a failure and decides to try again, with
// equal arguments and an id of its own.
func TestZooModelAsksAgain(t *testing.T) {
	for _, name := range []string{"reset-executed", "status-503-executed", "sse-empty", "body-login-page"} {
		t.Run(name, func(t *testing.T) {
			visit{bare: 2, ours: 1, act: func(v *visitor) {
				v.server.Script("pay", catalogued(t, name))
				if _, err := v.call(idempotency.WithIntent(t.Context(), "call-7")); err == nil {
					t.Error("no failure")
				}
				if !v.wrapped {
					v.connect() // the login page has ended the session
				}
				_, err := v.call(idempotency.WithIntent(t.Context(), "call-8"))
				v.blocked(err)
			}}.compare(t)
		})
	}
}

// TestZooRedirect: a 307 makes net/http send the body again. Within the origin it is
// believed to mean that the tool has not run; to another origin it is not followed.
func TestZooRedirect(t *testing.T) {
	for name, c := range map[string]struct {
		fault      middlewaretest.Fault
		refused    bool // by ours
		bare, ours int
	}{
		"same origin":                      {middlewaretest.Redirect(307, false), false, 1, 1},
		"same origin, a lie":               {middlewaretest.Redirect(307, false).Executed(), false, 2, 2},
		"other origin":                     {middlewaretest.Redirect(307, true), true, 1, 0},
		"other origin, after the tool ran": {middlewaretest.Redirect(307, true).Executed(), true, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			visit{bare: c.bare, ours: c.ours, act: func(v *visitor) {
				v.server.Script("pay", c.fault)
				if _, err := v.call(t.Context()); (err != nil) != (v.wrapped && c.refused) {
					t.Errorf("wrapped %t: %v", v.wrapped, err)
				}
			}}.compare(t)
		})
	}
}

// TestZooAuthorization: after a 401 the SDK authorizes and sends the POST again,
// which is believed. A server that had run the tool all the same knows the second
// one by its key.
func TestZooAuthorization(t *testing.T) {
	for name, c := range map[string]struct {
		tool       string
		fault      middlewaretest.Fault
		bare, ours int
	}{
		"unsafe":        {"pay", middlewaretest.Status(401), 1, 1},
		"unsafe, a lie": {"pay", middlewaretest.Status(401).Executed(), 2, 2},
		"keyed, a lie":  {"pay_keyed", middlewaretest.Status(401).Executed(), 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			visit{handler: &authorizer{}, tool: c.tool, bare: c.bare, ours: c.ours, act: func(v *visitor) {
				v.server.Script(c.tool, c.fault)
				if _, err := v.call(t.Context()); err != nil || v.server.Posts(c.tool) != 2 {
					t.Errorf("wrapped %t: %d POSTs, %v", v.wrapped, v.server.Posts(c.tool), err)
				}
			}}.compare(t)
		})
	}
}

// TestZooDeadProcess: a process dies while its call is under way; what it leaves in
// the ledger is a started call. The next process is asked for the same, by the same
// intent or as an equal call.
func TestZooDeadProcess(t *testing.T) {
	for _, intent := range []string{"conversation-1/call-7", ""} {
		t.Run("intent "+intent, func(t *testing.T) {
			visit{bare: 2, ours: 1, act: func(v *visitor) {
				v.server.Script("pay", middlewaretest.Hang().Executed())
				ctx := idempotency.WithIntent(t.Context(), intent)
				dies, bury := v.leaveBehind(ctx)
				v.start()
				_, err := v.call(ctx)
				v.blocked(err)
				bury()
				<-dies
			}}.compare(t)
		})
	}
}

// leaveBehind makes a call in a process that will not live to see its end, and
// returns when the tool has run. The call goes on until bury is called: a process
// that is gone writes nothing more.
func (v *visitor) leaveBehind(ctx context.Context) (dies <-chan struct{}, bury func()) {
	ctx, cancel := context.WithCancel(ctx)
	old := *v
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = old.call(ctx)
	}()
	for v.server.Effects(v.tool) == 0 {
		time.Sleep(time.Millisecond)
	}
	v.session = nil
	return done, func() { cancel(); <-done; old.stop() }
}
