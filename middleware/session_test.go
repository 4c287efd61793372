package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// both are the two protocol versions, the older one with sessions.
func both() []middlewaretest.Options {
	return []middlewaretest.Options{
		{Version: middlewaretest.Version20260728},
		{Version: middlewaretest.Version20251125, Sessions: true},
	}
}

func onBoth(t *testing.T, f func(t *testing.T, so middlewaretest.Options)) {
	for _, so := range both() {
		t.Run(so.Version, func(t *testing.T) { t.Parallel(); f(t, so) })
	}
}

// TestRefusedCancellation: a server that dislikes the notifications/cancelled after
// a timeout takes the session of the bare client, and a payment in flight with it.
func TestRefusedCancellation(t *testing.T) {
	for _, status := range []int{400, 404, 500} {
		r := newRig(t, middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true})
		r.server.AlwaysMethod("notifications/cancelled", middlewaretest.Status(status))
		beside := make(chan error, 1)
		go func() {
			_, err := r.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"ms": 400}})
			beside <- err
		}()
		r.server.Script("pay", middlewaretest.Hang())
		if _, rec, _ := r.call("pay", 50*time.Millisecond); rec.Outcome != observe.Timeout {
			t.Errorf("%d: record %+v", status, rec)
		}
		if err := <-beside; err != nil {
			t.Errorf("%d: the call in flight: %v", status, err)
		}
		if n := r.server.Counts().Cancelled; n != 1 {
			t.Errorf("%d: %d cancellations reached the server", status, n)
		}
		r.stillServes(middlewaretest.Fault{})
	}
}

// TestRefusedList: one bad tools/list ends the session of the bare client.
func TestRefusedList(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		r := newRig(t, so)
		for _, f := range []middlewaretest.Fault{
			middlewaretest.Body("login", "text/html", "<html>sign in</html>"),
			middlewaretest.Status(400), middlewaretest.Status(404),
			middlewaretest.Body("malformed", "application/json", "{"),
		} {
			r.server.ScriptMethod("tools/list", f)
			_, err := r.session.ListTools(t.Context(), nil)
			var e *observe.Error
			if !errors.As(err, &e) {
				t.Errorf("%s: %v", f.Name, err)
			}
			r.stillServes(middlewaretest.Fault{})
		}
		r.server.ScriptMethod("tools/list", middlewaretest.Status(503), middlewaretest.Status(502))
		if list, err := r.session.ListTools(t.Context(), nil); err != nil || len(list.Tools) == 0 {
			t.Errorf("tools/list after 503 and 502: %v", err)
		}
		if _, rec, err := r.call("pay", time.Minute); err != nil || rec.Breaker != "closed" {
			t.Errorf("%v, %+v", err, rec)
		}
	})
}

// TestHandshakeIsRepeated: one 503 does not hide a server.
func TestHandshakeIsRepeated(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		r := &rig{t: t, server: middlewaretest.NewServer(&so)}
		defer r.server.Close()
		method := "server/discover"
		if so.Sessions {
			method = "initialize"
		}
		r.server.ScriptMethod(method, middlewaretest.Status(503))
		cs := r.connect(t, middleware.New(nil))
		if got := cs.InitializeResult().ProtocolVersion; got != so.Version {
			t.Errorf("negotiated %s", got)
		}
	})
}

// TestTransportAlone: without the middlewares the transport still guards, and
// reports through the error.
func TestTransportAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		server := middlewaretest.NewServer(&so)
		defer server.Close()
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		hc := &http.Client{Transport: middleware.NewTransport(nil, nil)}
		defer hc.CloseIdleConnections()
		cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL(), HTTPClient: hc}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		for _, f := range middlewaretest.Faults() {
			want := f.Expected(&so)
			if !f.Applies(&so) || f.Needs&(middlewaretest.NeedsDeadline|middlewaretest.NeedsLimit) != 0 || f.ForgetSessions || f.Round > 0 || want.Outcome == "INPUT_REQUIRED" || f.EveryRound {
				continue
			}
			server.Script("pay", f)
			_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"})
			e, ok := middleware.ErrorFrom(err)
			switch {
			case ok && (string(e.Outcome) != want.Outcome || string(e.Delivery) != want.Delivery):
				t.Errorf("%s: %s %s, want %+v", f.Name, e.Outcome, e.Delivery, want)
			case !ok && want.Outcome == "INVALID_TOOL_RESULT" && err != nil:
				// What only the SDK finds wrong is an error of the SDK's own.
			case !ok && !observe.Outcome(want.Outcome).Answered():
				t.Errorf("%s: %v is no error of ours, want %+v", f.Name, err, want)
			}
			server.ClearScripts()
			// Without a loop nobody makes up for a connection that the fault left dead.
			hc.CloseIdleConnections()
			if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_weather"}); err != nil {
				t.Fatalf("%s: a good call afterwards: %v", f.Name, err)
			}
		}
	})
}

// authorizer gives a token after the first 401.
type authorizer struct {
	asked  atomic.Int64
	refuse bool
}

func (a *authorizer) TokenSource(context.Context) (oauth2.TokenSource, error) { return nil, nil }
func (a *authorizer) Authorize(_ context.Context, _ *http.Request, resp *http.Response) error {
	a.asked.Add(1)
	resp.Body.Close()
	if a.refuse {
		return errors.New("the user declined")
	}
	return nil
}

var _ auth.OAuthHandler = (*authorizer)(nil)

// TestAuthorization: an OAuth handler sees its 401, and the second POST is the same
// attempt with the same key.
func TestAuthorization(t *testing.T) {
	for _, handler := range []*authorizer{nil, {}, {refuse: true}} {
		onBoth(t, func(t *testing.T, so middlewaretest.Options) {
			r := &rig{t: t, server: middlewaretest.NewServer(&so)}
			defer r.server.Close()
			stack := middleware.New(&middleware.Options{OnRecord: checked(t, func(_ context.Context, rec *observe.Record) { r.records = append(r.records, rec) })})
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			client.AddSendingMiddleware(stack.Middleware()...)
			hc := stack.HTTPClient(nil)
			defer hc.CloseIdleConnections()
			transport := &mcp.StreamableClientTransport{Endpoint: r.server.URL(), HTTPClient: hc}
			h := &authorizer{}
			if handler != nil {
				h.refuse = handler.refuse
				transport.OAuthHandler = h
			}
			cs, err := client.Connect(t.Context(), transport, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer cs.Close()
			r.session = cs
			r.server.Script("pay", middlewaretest.Status(401))
			_, rec, err := r.call("pay", time.Minute)
			if handler == nil || handler.refuse {
				if rec.Outcome != observe.HTTPError || rec.Delivery != observe.Refused || rec.PostCount != 1 || r.server.Effects("pay") != 0 {
					t.Errorf("err %v, record %+v", err, rec)
				}
			} else {
				if err != nil || len(rec.Attempts) != 1 || rec.PostCount != 2 || rec.RetryOrigin != observe.OriginSDK || h.asked.Load() != 1 || r.server.Effects("pay") != 1 {
					t.Errorf("err %v, record %+v", err, rec)
				}
				keys := map[string]bool{}
				for _, e := range r.server.Entries() {
					if e.Tool == "pay" {
						keys[e.Key] = true
					}
				}
				if len(keys) != 1 || keys[""] {
					t.Errorf("keys %v", keys)
				}
			}
			if _, rec, err := r.call("read_weather", time.Minute); err != nil {
				t.Errorf("a call afterwards: %v %+v", err, rec)
			}
		})
	}
}

// TestAuthorizationOfARound: a 401 in a later round is no further round: the second POST
// carries the round's key, and takes no token of the limiter.
func TestAuthorizationOfARound(t *testing.T) {
	h := &authorizer{}
	r := newRig(t, middlewaretest.Options{}, never, policy.Rule{Tool: "ask", Settings: policy.Settings{Safety: policy.Keyed, Limiter: policy.Limiter{Rate: 0.001, Burst: 2, NoWait: new(true)}}})
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, new(user).options())
	client.AddSendingMiddleware(r.stack.Middleware()...)
	hc := r.stack.HTTPClient(nil)
	defer hc.CloseIdleConnections()
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: r.server.URL(), HTTPClient: hc, OAuthHandler: h}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	r.session = cs
	r.server.Script("ask", middlewaretest.SecondRound(middlewaretest.Status(401)))
	_, rec, err := r.call("ask", time.Minute)
	if err != nil || len(rec.Attempts) != 1 || rec.PostCount != 3 || h.asked.Load() != 1 || r.server.Effects("ask") != 1 {
		t.Errorf("err %v, record %+v", err, rec)
	}
	r.checkRoundKeys("ask", 1, 2, 2)
}

// TestKeyedReplay: with a key header net/http sends a POST again by itself when a
// reused connection dies; two effects for one RoundTrip.
func TestKeyedReplay(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		for _, ending := range []middlewaretest.Fault{middlewaretest.Reset().Executed(), middlewaretest.Close().Executed()} {
			r := newRig(t, so, policy.Rule{Tool: "pay_keyed", Settings: policy.Settings{
				Safety: policy.Keyed, Key: policy.Key{Header: "Idempotency-Key"}, Retry: policy.Retry{Repeats: -1},
			}})
			r.stillServes(middlewaretest.Fault{}) // a connection to reuse
			r.server.Script("pay_keyed", ending)
			_, rec, _ := r.call("pay_keyed", time.Minute)
			if rec.Outcome != observe.NetworkError || rec.Delivery != observe.Unknown || r.server.Posts("pay_keyed") != 1 {
				t.Errorf("%s: %d POSTs arrived, record %+v", ending.Name, r.server.Posts("pay_keyed"), rec)
			}
		}
	})
}

// TestKeyedRepeat: our own repeat carries the same key in both places, and the
// server's one execution is what the call gets.
func TestKeyedRepeat(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		r := newRig(t, so, policy.Rule{Tool: "pay_keyed", Settings: policy.Settings{Key: policy.Key{Header: "Idempotency-Key"}}})
		r.server.Script("pay_keyed", middlewaretest.Reset().Executed())
		_, rec, err := r.call("pay_keyed", time.Minute)
		if err != nil || rec.Outcome != observe.ToolSuccess || r.server.Effects("pay_keyed") != 1 || r.server.Posts("pay_keyed") != 2 {
			t.Errorf("err %v, %d effects, record %+v", err, r.server.Effects("pay_keyed"), rec)
		}
		seen := map[string]int{}
		for _, e := range r.server.Entries() {
			if e.Tool == "pay_keyed" {
				seen[e.Key]++
				seen[e.Header.Get("Idempotency-Key")]++
			}
		}
		if len(seen) != 2 {
			t.Errorf("keys %v", seen)
		}
	})
}

// TestKeyHeaderOnlyForKeyed: a key header on another tool would arm whatever stands
// between.
func TestKeyHeaderOnlyForKeyed(t *testing.T) {
	r := newRig(t, middlewaretest.Options{}, policy.Rule{Settings: policy.Settings{Key: policy.Key{Header: "Idempotency-Key"}}})
	_, _, _ = r.call("pay", time.Minute)
	_, _, _ = r.call("read_weather", time.Minute)
	for _, e := range r.server.Entries() {
		if e.Header.Get("Idempotency-Key") != "" {
			t.Errorf("%s carries the header", e.Tool)
		}
	}
}

// TestRoundsAreResumed: a repeat goes on from the round that failed, and the user
// is asked once.
func TestRoundsAreResumed(t *testing.T) {
	for _, c := range []struct {
		safety policy.Safety
		fault  middlewaretest.Fault
	}{
		{policy.Idempotent, middlewaretest.Status(503)},
		{policy.Idempotent, middlewaretest.Reset()},
		{policy.Keyed, middlewaretest.Reset().Executed()},
		{policy.Unsafe, middlewaretest.Status(429)},
	} {
		r := newRig(t, middlewaretest.Options{}, policy.Rule{Tool: "ask", Settings: policy.Settings{Safety: c.safety}})
		r.server.SetTool(middlewaretest.Tool{Name: "ask", Ask: "Go ahead?", Keyed: c.safety == policy.Keyed})
		r.server.Script("ask", middlewaretest.SecondRound(c.fault))
		_, rec, err := r.call("ask", time.Minute)
		if err != nil || rec.Outcome != observe.ToolSuccess || len(rec.Attempts) != 2 {
			t.Errorf("%s: err %v, record %+v", c.fault.Name, err, rec)
		}
		if r.asked != 1 || r.server.Effects("ask") != 1 || r.server.Posts("ask") != 3 {
			t.Errorf("%s: asked %d times, %d effects, %d POSTs", c.fault.Name, r.asked, r.server.Effects("ask"), r.server.Posts("ask"))
		}
	}
}

// TestProgressArrivesAtOnce: a stream stays a stream.
func TestProgressArrivesAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		so.Stream = true
		server := middlewaretest.NewServer(&so)
		defer server.Close()
		step := make(chan struct{})
		server.SetTool(middlewaretest.Tool{Name: "steps", Streams: true, Run: func(_ context.Context, c middlewaretest.Call) middlewaretest.Result {
			for i := range 3 {
				c.Progress(i, 3)
				<-step
			}
			return middlewaretest.Result{Text: "done"}
		}})
		stack := middleware.New(nil)
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
			// The tool goes on only when its progress has been seen.
			ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { step <- struct{}{} },
		})
		client.AddSendingMiddleware(stack.Middleware()...)
		hc := stack.HTTPClient(nil)
		defer hc.CloseIdleConnections()
		cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL(), HTTPClient: hc}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		params := &mcp.CallToolParams{Name: "steps"}
		params.SetProgressToken("p1")
		if _, err := cs.CallTool(ctx, params); err != nil {
			t.Error(err)
		}
	})
}

// TestClosedSession: a call on a session that is closed is refused before sending,
// at once, and frameworks see that they have to reconnect.
func TestClosedSession(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		r := newRig(t, so)
		if err := r.session.Close(); err != nil {
			t.Fatal(err)
		}
		_, rec, err := r.call("pay", time.Minute)
		if rec.Outcome != observe.SessionLost || rec.Delivery != observe.NotSent || len(rec.Attempts) != 1 || !errors.Is(err, mcp.ErrConnectionClosed) {
			t.Errorf("err %v, record %+v", err, rec)
		}
	})
}

// TestHostThatFollowsNothing: a host's client that hands redirects out keeps its
// session too.
func TestHostThatFollowsNothing(t *testing.T) {
	server := middlewaretest.NewServer(nil)
	defer server.Close()
	hc := middleware.New(nil).HTTPClient(&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }})
	defer hc.CloseIdleConnections()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL(), HTTPClient: hc}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	server.Script("pay", middlewaretest.Redirect(307, false))
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"}); err == nil {
		t.Error("a redirect passed for an answer")
	}
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"}); err != nil {
		t.Errorf("a call afterwards: %v", err)
	}
}
