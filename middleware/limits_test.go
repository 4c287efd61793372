package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

func limits(l policy.Limits) policy.Rule {
	return policy.Rule{Settings: policy.Settings{Limits: l}}
}

// TestLimitsPauseBetweenRounds: a person may think longer than any limit of a POST
// (2026-07-28).
func TestLimitsPauseBetweenRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := user{thinks: time.Minute}
		b := newBenchOf(t, u.options(), func(n int, p posted) (*http.Response, error) {
			if n == 1 {
				return p.asks()
			}
			return p.answer()
		}, limits(policy.Limits{Connect: time.Second, Headers: time.Second, Silence: time.Second, Attempt: time.Second}))
		defer b.session.Close()
		if _, rec, err := b.call("pay", 0); err != nil || u.asked.Load() != 1 || rec.PostCount != 2 || len(rec.Attempts) != 1 {
			t.Errorf("err %v, record %+v", err, rec)
		}
	})
}

// TestLimitsPauseForServerRequests: nor do they run while the server's own request on
// the call's stream waits for a person (before 2026-07-28); afterwards they do.
func TestLimitsPauseForServerRequests(t *testing.T) {
	for _, l := range []policy.Limits{{Silence: 400 * time.Millisecond}, {Attempt: 400 * time.Millisecond}} {
		t.Run(fmt.Sprint(l), func(t *testing.T) {
			t.Parallel()
			u := user{thinks: 900 * time.Millisecond}
			r := newRig(t, middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true}, never, limits(l))
			r.session = r.connectAs(t, u.options())
			if _, rec, err := r.call("ask", time.Minute); err != nil || rec.PostCount != 1 {
				t.Errorf("err %v, record %+v", err, rec)
			}
			if u.asked.Load() != 1 || r.server.Effects("ask") != 1 || r.server.Posts("ask") != 1 {
				t.Errorf("asked %d times, %d effects", u.asked.Load(), r.server.Effects("ask"))
			}
			// A server that has its answer and then says nothing.
			r.server.SetTool(middlewaretest.Tool{Name: "ask", Ask: "Go on?", Run: func(ctx context.Context, _ middlewaretest.Call) middlewaretest.Result {
				select {
				case <-ctx.Done():
				case <-time.After(5 * time.Second):
				}
				return middlewaretest.Result{}
			}})
			start := time.Now()
			if _, rec, _ := r.call("ask", time.Minute); rec.Outcome != observe.Timeout || time.Since(start) > 3*time.Second {
				t.Errorf("after %v: record %+v", time.Since(start), rec)
			}
			r.stillServes(middlewaretest.Fault{})
		})
	}
}

// TestProgressExtends: progress begins the attempt's limit anew where the policy says
// so, the call asks for it where the caller has not, and the caller's deadline stands.
func TestProgressExtends(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		const limit = 400 * time.Millisecond
		for _, c := range []struct {
			name     string
			extends  bool
			token    any // the caller's
			deadline time.Duration
			outcome  observe.Outcome
		}{
			{"off", false, nil, time.Minute, observe.Timeout},
			{"on", true, nil, time.Minute, observe.ToolSuccess},
			{"on, the caller's token", true, "mine", time.Minute, observe.ToolSuccess},
			{"on, until the deadline", true, nil, 600 * time.Millisecond, observe.Timeout},
		} {
			r := newRig(t, so, never, limits(policy.Limits{Attempt: limit, Progress: &c.extends}))
			var mu sync.Mutex
			var heard []any
			r.session = r.connectAs(t, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) {
				mu.Lock()
				heard = append(heard, n.Params.ProgressToken)
				mu.Unlock()
			}})
			r.server.SetTool(middlewaretest.Tool{Name: "work", Streams: true, Run: func(_ context.Context, c middlewaretest.Call) middlewaretest.Result {
				for i := range 6 {
					time.Sleep(limit / 3)
					c.Progress(i, 6)
				}
				return middlewaretest.Result{Text: "done"}
			}})
			ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
			params := &mcp.CallToolParams{Name: "work"}
			if c.token != nil {
				params.Meta = mcp.Meta{"progressToken": c.token}
			}
			_, err := r.session.CallTool(ctx, params)
			cancel()
			rec := r.records[len(r.records)-1]
			if rec.Outcome != c.outcome || errors.Is(err, context.DeadlineExceeded) != (c.deadline < time.Minute) || r.server.Posts("work") != 1 {
				t.Errorf("%s: err %v, record %+v", c.name, err, rec)
			}
			sent := r.server.Entries()[slices.IndexFunc(r.server.Entries(), func(e middlewaretest.Entry) bool { return e.Tool == "work" })].Meta["progressToken"]
			switch {
			case (sent != nil) != (c.extends || c.token != nil), c.token != nil && string(sent) != `"mine"`:
				t.Errorf("%s: token %s", c.name, sent)
			case params.Meta["progressToken"] != c.token:
				t.Errorf("%s: the caller's params have changed", c.name)
			}
			mu.Lock()
			if (len(heard) > 0) != (c.token != nil) {
				t.Errorf("%s: the host heard %v", c.name, heard)
			}
			mu.Unlock()
		}
	})
}

// TestProgressOfAnother: progress of another call, or a comment, extends nothing.
func TestProgressOfAnother(t *testing.T) {
	for name, text := range map[string]string{
		"another": "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"x\",\"progress\":1}}\n\n",
		"comment": ": still here\n\n",
	} {
		f := middlewaretest.Stream(name, text, middlewaretest.EndComplete)
		f.Repeat = 20 * time.Millisecond
		r := newRig(t, middlewaretest.Options{}, never, limits(policy.Limits{Attempt: 100 * time.Millisecond, Progress: new(true)}))
		r.server.Script("pay", f)
		if _, rec, _ := r.call("pay", 3*time.Second); rec.Outcome != observe.Timeout || rec.DurationMs > 2000 {
			t.Errorf("%s: record %+v", name, rec)
		}
	}
}

// TestLimitCancelsOnTheServer: when a limit of ours runs out the server is told: by the
// notification up to 2025-11-25, by the closed stream from 2026-07-28 on.
func TestLimitCancelsOnTheServer(t *testing.T) {
	for name, l := range map[string]policy.Limits{
		"headers": {Headers: 50 * time.Millisecond}, "silence": {Silence: 50 * time.Millisecond}, "attempt": {Attempt: 50 * time.Millisecond},
	} {
		for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				closed, cancelled := make(chan bool, 1), make(chan string, 9)
				h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					body, _ := io.ReadAll(req.Body)
					if strings.Contains(string(body), "notifications/cancelled") {
						cancelled <- string(body) + req.Header.Get("Mcp-Session-Id") + req.Header.Get("Authorization")
						w.WriteHeader(http.StatusAccepted)
						return
					}
					if l.Headers == 0 {
						w.Header().Set("Content-Type", "text/event-stream")
						w.WriteHeader(200)
						_ = http.NewResponseController(w).Flush()
					}
					<-req.Context().Done()
					closed <- true
				}))
				defer h.Close()
				guard := middleware.NewTransport(nil, &middleware.Options{Policy: &policy.Policy{Rules: []policy.Rule{limits(l)}}})
				defer guard.CloseIdleConnections()
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL, strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay"}}`))
				req.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {version}, "Mcp-Session-Id": {"s"}, "Authorization": {"a"}}
				if resp, err := guard.RoundTrip(req); err == nil {
					text, _ := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					if !strings.Contains(string(text), "TIMEOUT") {
						t.Errorf("answer %s", text)
					}
				} else if e := failure(t, err); e.Outcome != observe.Timeout {
					t.Errorf("error %v", err)
				}
				<-closed
				if version >= middlewaretest.Version20260728 {
					select {
					case text := <-cancelled:
						t.Errorf("notified: %s", text)
					case <-time.After(50 * time.Millisecond):
					}
					return
				}
				var told string
				select {
				case told = <-cancelled:
				case <-time.After(5 * time.Second):
					t.Fatal("not notified")
				}
				var msg struct {
					Params struct{ RequestID json.RawMessage }
				}
				text, end, _ := strings.Cut(told, "}}")
				if err := json.Unmarshal([]byte(text+"}}"), &msg); err != nil || string(msg.Params.RequestID) != "7" || end != "sa" {
					t.Errorf("notified %s%s: %v", text, end, err)
				}
			})
		}
	}
}

// TestLimitsKeepTheSession: whichever limit strikes, in whichever phase, the session
// lives, with the call in flight beside it, and the server is told once.
func TestLimitsKeepTheSession(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		for fault, l := range map[string]policy.Limits{
			"hang":                     {Headers: 200 * time.Millisecond},
			"hang-executed":            {Attempt: 200 * time.Millisecond},
			"silent-after-headers":     {Silence: 200 * time.Millisecond},
			"silent-in-body":           {Attempt: 200 * time.Millisecond},
			"sse-silent":               {Silence: 200 * time.Millisecond},
			"sse-progress-then-silent": {Silence: 200 * time.Millisecond},
			"sse-comments-forever":     {Attempt: 200 * time.Millisecond},
		} {
			rule := limits(l)
			rule.Tool = "pay"
			r := newRig(t, so, never, rule)
			r.stillServes(middlewaretest.Fault{}) // a connection
			beside := r.beside()
			f := catalogued(t, fault)
			r.server.Script("pay", f)
			_, rec, err := r.call("pay", time.Minute)
			if rec.Outcome != observe.Timeout || rec.Delivery != observe.Unknown || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: err %v, record %+v", fault, err, rec)
			}
			if err := <-beside; err != nil {
				t.Errorf("%s: the call beside it: %v", fault, err)
			}
			r.stillServes(middlewaretest.Fault{})
			want := 0
			if so.Version == middlewaretest.Version20251125 {
				want = 1
			}
			for range 100 {
				if r.server.Counts().Cancelled >= want {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			effects := 0
			if f.Runs() {
				effects = 1
			}
			if n := r.server.Counts().Cancelled; n != want || r.server.Posts("pay") != 1 || r.server.Effects("pay") != effects {
				t.Errorf("%s: %d cancellations, %d POSTs, %d effects", fault, n, r.server.Posts("pay"), r.server.Effects("pay"))
			}
		}
	})
}

// TestCancelDuringEveryWait: the caller's own cancellation returns at once, whatever
// the call waits for.
func TestCancelDuringEveryWait(t *testing.T) {
	ok := func(_ int, p posted) (*http.Response, error) { return p.answer() }
	for name, c := range map[string]struct {
		rule   policy.Rule
		call   func(int, posted) (*http.Response, error)
		before func(*bench)
		posts  int
	}{
		"backoff": {policy.Rule{Settings: policy.Settings{Safety: policy.ReadOnly, Retry: policy.Retry{Backoff: 8 * time.Minute, BackoffCap: 8 * time.Minute}}},
			unavailable(9), nil, 1},
		"server's wait": {policy.Rule{}, func(int, posted) (*http.Response, error) { return jsonAnswer(429, "", "Retry-After", "59"), nil }, nil, 1},
		"gate": {never, func(int, posted) (*http.Response, error) { return jsonAnswer(429, "", "Retry-After", "59"), nil },
			func(b *bench) { _, _, _ = b.call("send_mail", 0) }, 1},
		"limiter": {policy.Rule{Settings: policy.Settings{Limiter: policy.Limiter{Rate: 0.01}}}, ok,
			func(b *bench) { _, _, _ = b.call("pay", 0) }, 1},
		"ledger": {policy.Rule{}, func(_ int, p posted) (*http.Response, error) { return p.hang(true) },
			func(b *bench) {
				ctx, cancel := context.WithTimeout(idempotency.WithIntent(context.Background(), "i"), 5*time.Minute)
				context.AfterFunc(ctx, cancel)
				go func() { _, _ = b.session.CallTool(ctx, &mcp.CallToolParams{Name: "pay"}) }()
				synctest.Wait()
			}, 1},
		"answer":  {policy.Rule{}, func(_ int, p posted) (*http.Response, error) { return p.hang(true) }, nil, 1},
		"connect": {limits(policy.Limits{Connect: time.Hour}), func(_ int, p posted) (*http.Response, error) { return p.hang(false) }, nil, 1},
		"body": {policy.Rule{}, func(_ int, p posted) (*http.Response, error) {
			return &http.Response{StatusCode: 200, ContentLength: -1, Header: http.Header{"Content-Type": {"application/json"}}, Body: silentBody{p.req.Context()}}, nil
		}, nil, 1},
		"stream": {policy.Rule{}, func(_ int, p posted) (*http.Response, error) {
			return &http.Response{StatusCode: 200, ContentLength: -1, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: silentBody{p.req.Context()}}, nil
		}, nil, 1},
		"user": {policy.Rule{}, func(_ int, p posted) (*http.Response, error) { return p.asks() }, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := user{thinks: time.Hour}
				b := newBenchOf(t, u.options(), c.call, c.rule)
				defer b.session.Close()
				if c.before != nil {
					c.before(b)
				}
				ctx, cancel := context.WithCancel(idempotency.WithIntent(t.Context(), "i"))
				var canceled time.Time
				time.AfterFunc(100*time.Millisecond, func() { canceled = time.Now(); cancel() })
				_, rec, err := b.callIn(ctx, "pay")
				if late := time.Since(canceled); canceled.IsZero() || late > 20*time.Millisecond {
					t.Errorf("returned %v after the cancel", late)
				}
				if !errors.Is(err, context.Canceled) || rec.Outcome != observe.Canceled || b.wire.count() != c.posts {
					t.Errorf("%d POSTs, err %v, record %+v", b.wire.count(), err, rec)
				}
			})
		})
	}
}

// TestCancelWhileResuming: the wait before a stream is resumed ends too (before
// 2026-07-28).
func TestCancelWhileResuming(t *testing.T) {
	f := middlewaretest.Stream("cut", "id: %stream%_0\nretry: 20000\ndata:\n\n", middlewaretest.EndClose)
	r := newRig(t, middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true})
	r.server.Script("pay", f)
	ctx, cancel := context.WithCancel(t.Context())
	var canceled atomic.Int64
	time.AfterFunc(100*time.Millisecond, func() { canceled.Store(time.Now().UnixNano()); cancel() })
	_, rec, err := r.callIn(ctx, "pay", nil)
	if late := time.Since(time.Unix(0, canceled.Load())); late > 250*time.Millisecond || !errors.Is(err, context.Canceled) || rec.Outcome != observe.Canceled {
		t.Errorf("%v after the cancel: err %v, record %+v", late, err, rec)
	}
	r.stillServes(middlewaretest.Fault{})
}

// signIn is an authorization handler that takes its time.
type signIn struct{ takes time.Duration }

func (s signIn) TokenSource(context.Context) (oauth2.TokenSource, error) { return nil, nil }
func (s signIn) Authorize(ctx context.Context, _ *http.Request, resp *http.Response) error {
	_ = resp.Body.Close()
	return waitIn(ctx, s.takes)
}

// TestLimitsPauseForAuthorization: signing in may take longer than any limit of a POST,
// which then neither ends the call nor the session.
func TestLimitsPauseForAuthorization(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		const limit = 300 * time.Millisecond
		r := newRig(t, so, never, limits(policy.Limits{Headers: limit, Silence: limit, Attempt: limit}))
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		client.AddSendingMiddleware(r.stack.Middleware()...)
		hc := r.stack.HTTPClient(nil)
		t.Cleanup(hc.CloseIdleConnections)
		cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: r.server.URL(), HTTPClient: hc, OAuthHandler: signIn{3 * limit}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		r.session = cs
		r.server.Script("pay", middlewaretest.Status(401))
		_, rec, err := r.call("pay", time.Minute)
		if err != nil || len(rec.Attempts) != 1 || rec.PostCount != 2 || r.server.Effects("pay") != 1 || r.keysOf("pay") != 1 {
			t.Errorf("err %v, record %+v", err, rec)
		}
		r.stillServes(middlewaretest.Fault{})
	})
}

// TestCallLimitKeepsTheSession: the limit of the whole call ends it like the caller's
// deadline: the server is told, and the session lives.
func TestCallLimitKeepsTheSession(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		for _, fault := range []string{"hang", "silent-in-body", "sse-silent"} {
			r := newRig(t, so, never, policy.Rule{Tool: "pay", Settings: policy.Settings{Limits: policy.Limits{Call: 200 * time.Millisecond}}})
			r.server.Script("pay", catalogued(t, fault))
			_, rec, err := r.callIn(t.Context(), "pay", nil)
			if rec.Outcome != observe.Timeout || rec.Delivery != observe.Unknown || errors.Is(err, context.DeadlineExceeded) || rec.DurationMs > 2000 {
				t.Errorf("%s: err %v, record %+v", fault, err, rec)
			}
			for range 100 {
				if r.server.Counts().Cancelled > 0 {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if so.Version == middlewaretest.Version20251125 && r.server.Counts().Cancelled != 1 {
				t.Errorf("%s: %d cancellations", fault, r.server.Counts().Cancelled)
			}
			r.stillServes(middlewaretest.Fault{})
		}
	})
}

// TestLimitsGoOn: the limits go on once a server's request was answered, however its id is
// written, and on 2026-07-28, where no server may ask, they do not stand still at all.
func TestLimitsGoOn(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		for _, request := range []string{`"id":1.0,"method":"ping"`, `"id":1e2,"method":"ping"`, `"id":"u","method":"no/such"`, `"id":"n","method":"sampling/createMessage","params":{}`, `"id":"p","method":"elicitation/create","params":"x"`} {
			r := newRig(t, so, never, limits(policy.Limits{Silence: 200 * time.Millisecond}))
			r.server.Script("pay", middlewaretest.Stream("asks", "data: {\"jsonrpc\":\"2.0\","+request+"}\n\n", middlewaretest.EndSilent))
			_, rec, err := r.call("pay", 30*time.Second)
			if e := failure(t, err); e.Outcome != observe.Timeout || rec.DurationMs > 5000 {
				t.Errorf("%s: %v, record %+v", request, err, rec)
			}
		}
		// A person who takes their time holds nothing up any more than that.
		if so.Version == middlewaretest.Version20260728 {
			r := newRig(t, so, never, limits(policy.Limits{Silence: 200 * time.Millisecond}))
			r.session = r.connectAs(t, (&user{thinks: 3 * time.Second}).options())
			r.server.Script("pay", middlewaretest.Stream("asks", "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"elicitation/create\",\"params\":{\"message\":\"?\"}}\n\n", middlewaretest.EndSilent))
			if _, rec, err := r.call("pay", 30*time.Second); rec.Outcome != observe.Timeout || rec.DurationMs > 2500 {
				t.Errorf("%v, record %+v", err, rec)
			}
		}
	})
}

// TestProgressWithoutEnd: a server that reports progress without end does not hold a call
// that nothing else bounds.
func TestProgressWithoutEnd(t *testing.T) {
	for attempt, hard := range map[time.Duration]time.Duration{time.Second: 10 * time.Minute, 2 * time.Minute: 20 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(_ int, p posted) (*http.Response, error) {
				body, w := io.Pipe()
				go func() {
					event := fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%q,\"progress\":1}}\n\n", p.params.Meta["progressToken"])
					for waitIn(p.req.Context(), attempt/2) == nil {
						_, _ = io.WriteString(w, event)
					}
					_ = w.CloseWithError(p.req.Context().Err())
				}()
				return &http.Response{StatusCode: 200, ContentLength: -1, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
			}, never, limits(policy.Limits{Attempt: attempt, Call: -1, Progress: new(true)}))
			defer b.session.Close()
			start := time.Now()
			_, rec, err := b.call("pay", 0)
			if took := time.Since(start); err == nil || rec.Outcome != observe.Timeout || took > hard+time.Second || took < hard {
				t.Errorf("took %v, err %v, record %+v", took, err, rec)
			}
		})
	}
}

// noWayBack is a network on which the request that resumes a stream gets no connection.
type noWayBack struct{ *http.Transport }

func (n noWayBack) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Last-Event-ID") == "" {
		return n.Transport.RoundTrip(req)
	}
	httptrace.ContextClientTrace(req.Context()).GetConn("server")
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// TestLimitsOfAResumption: connecting, headers and silence are limited for the request that
// resumes a stream as they are for the call (before 2026-07-28).
func TestLimitsOfAResumption(t *testing.T) {
	so := middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true}
	f := middlewaretest.Stream("cut", "id: %stream%_0\nretry: 100\ndata:\n\n", middlewaretest.EndClose)
	for name, l := range map[string]policy.Limits{
		"headers": {Headers: 300 * time.Millisecond},
		"silence": {Silence: 300 * time.Millisecond},
	} {
		r := newRig(t, so, never, limits(l))
		r.server.Script("pay", f)
		r.server.ScriptMethod("GET", middlewaretest.Hang())
		_, rec, err := r.call("pay", 20*time.Second)
		if e := failure(t, err); e.Outcome != observe.Timeout || rec.DurationMs > 5000 || !strings.Contains(e.Error(), name+" limit") || rec.SSE.Close != "limit" {
			t.Errorf("%s: %v, record %+v", name, err, rec)
		}
		r.stillServes(middlewaretest.Fault{})
	}

	r := newRig(t, so, never, limits(policy.Limits{Connect: 300 * time.Millisecond}))
	r.session = r.connectOver(t, nil, noWayBack{new(http.Transport)})
	r.server.Script("pay", f)
	_, rec, err := r.call("pay", 20*time.Second)
	if e := failure(t, err); e.Outcome != observe.Timeout || rec.Delivery != observe.Unknown || rec.DurationMs > 5000 || !strings.Contains(e.Error(), "connect limit") {
		t.Errorf("connect: %v, record %+v", err, rec)
	}
}
