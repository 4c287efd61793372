package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// a user answers every question, after some thought, and counts them.
type user struct {
	thinks time.Duration
	asked  atomic.Int64
}

func (u *user) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		u.asked.Add(1)
		if err := waitIn(ctx, u.thinks); err != nil {
			return nil, err
		}
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
	}}
}

// asks is an answer with a question to the user.
func (p posted) asks() (*http.Response, error) {
	return p.inputRequired(`"inputRequests":{"q":{"method":"elicitation/create","params":{"message":"Go on?","requestedSchema":{"type":"object","properties":{"approve":{"type":"boolean"}}}}}}`)
}

// inputRequired is an input_required answer with these members.
func (p posted) inputRequired(members string) (*http.Response, error) {
	return jsonAnswer(200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required","requestState":"s%s",%s}}`, p.id, p.id, members)), nil
}

// TestRoundsAreFree: a round is neither an attempt nor a repeat: it costs no budget and
// no backoff.
func TestRoundsAreFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u user
		b := newBenchOf(t, u.options(), func(n int, p posted) (*http.Response, error) {
			switch {
			case n <= 3:
				return p.asks()
			case n == 5:
				return jsonAnswer(503, ""), nil
			}
			return p.answer()
		}, policy.Rule{Settings: policy.Settings{Retry: policy.Retry{Repeats: 1, Budget: 1}}})
		defer b.session.Close()
		start := time.Now()
		_, rec, err := b.call("read_weather", 0)
		if err != nil || len(rec.Attempts) != 1 || rec.PostCount != 4 || u.asked.Load() != 3 || time.Since(start) != 0 {
			t.Errorf("asked %d times, took %v, err %v, record %+v", u.asked.Load(), time.Since(start), err, rec)
		}
		if _, rec, err = b.call("read_weather", 0); err != nil || len(rec.Attempts) != 2 {
			t.Errorf("the budget's one repeat: err %v, record %+v", err, rec)
		}
	})
}

// TestThinkingHoldsNoBreaker: the probe of a half-open breaker is settled by the first
// answer, not when the user has answered.
func TestThinkingHoldsNoBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := user{thinks: 5 * time.Minute}
		b := newBenchOf(t, u.options(), func(n int, p posted) (*http.Response, error) {
			switch n {
			case 1:
				return jsonAnswer(500, ""), nil
			case 2:
				return p.asks()
			}
			return p.answer()
		}, never, policy.Rule{Tool: "pay", Settings: policy.Settings{Breaker: policy.Breaker{Failures: 1, Open: time.Second}, Key: policy.Key{Guard: -1}}})
		defer b.session.Close()
		_, _, _ = b.call("pay", 0)
		time.Sleep(2 * time.Second)
		probe := make(chan error, 1)
		go func() {
			_, err := b.session.CallTool(context.Background(), &mcp.CallToolParams{Name: "pay"})
			probe <- err
		}()
		synctest.Wait()
		if _, rec, err := b.call("pay", time.Minute); err != nil || rec.Breaker != "closed" {
			t.Errorf("beside the probe: %v, record %+v", err, rec)
		}
		if err := <-probe; err != nil || u.asked.Load() != 1 {
			t.Errorf("the probe: %v", err)
		}
	})
}

// TestLaterRoundsAreAdmitted: rounds pass limiter and gate like calls, though the SDK
// sends them.
func TestLaterRoundsAreAdmitted(t *testing.T) {
	limiter := func(l policy.Limiter) policy.Rule {
		return policy.Rule{Tool: "pay", Settings: policy.Settings{Limiter: l}}
	}
	rounds := func(n int, p posted) (*http.Response, error) {
		if n == 1 {
			return p.asks()
		}
		return p.answer()
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBenchOf(t, new(user).options(), rounds, limiter(policy.Limiter{Rate: 0.1}))
		defer b.session.Close()
		_, rec, err := b.call("pay", 0)
		if err != nil || len(rec.Attempts) != 1 {
			t.Fatalf("err %v, record %+v", err, rec)
		}
		if apart := b.wire.posts[1].at.Sub(b.wire.posts[0].at); apart != 10*time.Second {
			t.Errorf("rounds %v apart", apart)
		} else if a := rec.Attempts[0]; len(a.Posts[0].Waits) != 0 || !slices.Equal(a.Posts[1].Waits, []observe.Wait{{For: observe.WaitLimiter, Ms: 10000}}) || a.Posts[1].StartMs != 10000 {
			t.Errorf("the record of the wait: %+v", a)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBenchOf(t, new(user).options(), rounds, limiter(policy.Limiter{Rate: 0.1, NoWait: new(true)}))
		defer b.session.Close()
		_, rec, err := b.call("pay", 0)
		e := failure(t, err)
		if rec.Outcome != observe.RateLimited || rec.Delivery != observe.Answered || e.RetryAfter != 10*time.Second || b.wire.count() != 1 {
			t.Errorf("error %+v, record %+v", e, rec)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBenchOf(t, new(user).options(), rounds, limiter(policy.Limiter{Rate: 0.001}), policy.Rule{Settings: policy.Settings{Limits: policy.Limits{Attempt: time.Second, Call: -1}}})
		defer b.session.Close()
		checkCancel(t, b, time.Minute, 1)
	})
	synctest.Test(t, func(t *testing.T) {
		u := user{thinks: 3 * time.Second}
		b := newBenchOf(t, u.options(), func(n int, p posted) (*http.Response, error) {
			if p.tool == "send_mail" {
				return jsonAnswer(429, "", "Retry-After", "30"), nil
			}
			return rounds(n, p)
		}, never)
		defer b.session.Close()
		go func() {
			time.Sleep(time.Second)
			_, _ = b.session.CallTool(context.Background(), &mcp.CallToolParams{Name: "send_mail"})
		}()
		if _, rec, err := b.call("pay", 0); err != nil || rec.DurationMs < 31_000 {
			t.Errorf("the gate was not asked: %v, record %+v", err, rec)
		}
	})
}

// checkCancel calls pay and cancels after a time, in a wait.
func checkCancel(t *testing.T, b *bench, after time.Duration, posts int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var canceled time.Time
	time.AfterFunc(after, func() { canceled = time.Now(); cancel() })
	_, rec, err := b.callIn(ctx, "pay")
	if late := time.Since(canceled); canceled.IsZero() || late > 20*time.Millisecond {
		t.Errorf("returned %v after the cancel", late)
	}
	if !errors.Is(err, context.Canceled) || rec.Outcome != observe.Canceled || b.wire.count() != posts {
		t.Errorf("%d POSTs, err %v, record %+v", b.wire.count(), err, rec)
	}
}

func failure(t *testing.T, err error) *observe.Error {
	t.Helper()
	var e *observe.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v", err)
	}
	return e
}

// shedding are the two forms in which a server puts a call off.
var shedding = map[string]string{"empty": `"inputRequests":{}`, "null": `"inputRequests":null`}

// TestSheddingIsWaitedOut: a server that puts the call off is asked again with its
// state after growing waits, and the user is not asked for it.
func TestSheddingIsWaitedOut(t *testing.T) {
	for name, members := range shedding {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var u user
				b := newBenchOf(t, u.options(), func(n int, p posted) (*http.Response, error) {
					switch {
					case n == 1:
						return p.asks()
					case n <= 6:
						return p.inputRequired(members)
					}
					return p.answer()
				}, policy.Rule{Settings: policy.Settings{Retry: policy.Retry{Repeats: -1}}})
				defer b.session.Close()
				_, rec, err := b.call("pay", 0)
				if err != nil || rec.Outcome != observe.ToolSuccess || len(rec.Attempts) != 1 || rec.PostCount != 7 || u.asked.Load() != 1 {
					t.Fatalf("asked %d times, err %v, record %+v", u.asked.Load(), err, rec)
				}
				for i, p := range b.wire.posts[2:] {
					full := 200 * time.Millisecond << i
					if wait := p.at.Sub(b.wire.posts[i+1].at); wait < full/2 || wait > full {
						t.Errorf("wait %d: %v", i, wait)
					}
					if want := "s" + string(b.wire.posts[i+1].id); p.params.RequestState != want || len(p.params.InputResponses) != 1 {
						t.Errorf("POST %d: state %s, responses %v", i, p.params.RequestState, p.params.InputResponses)
					}
				}
			})
		})
	}
}

// TestSheddingEnds: shedding without end, or up to the deadline, is no success.
func TestSheddingEnds(t *testing.T) {
	for name, members := range shedding {
		for _, c := range []struct {
			within time.Duration
			posts  int
		}{{0, 11}, {time.Second, 4}} {
			t.Run(fmt.Sprint(name, c.within), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, func(_ int, p posted) (*http.Response, error) { return p.inputRequired(members) },
						policy.Rule{Settings: policy.Settings{Retry: policy.Retry{Backoff: 200 * time.Millisecond, BackoffCap: time.Second}}})
					defer b.session.Close()
					start := time.Now()
					res, rec, err := b.call("pay", c.within)
					if err != nil || !res.NeedsInput() || res.RequestState == "" || !res.IsError {
						t.Fatalf("err %v, result %+v", err, res)
					}
					if e, ok := middleware.FailureOf(res); !ok || e.Outcome != observe.InputRequired || rec.ModelText != res.Content[0].(*mcp.TextContent).Text {
						t.Errorf("failure %+v, text %q", e, rec.ModelText)
					}
					if rec.Outcome != observe.InputRequired || rec.Decision.Action != "stop" || rec.Delivery != observe.Answered || len(rec.Attempts) != 1 {
						t.Errorf("record %+v", rec)
					}
					if n := b.wire.count(); n > c.posts || n < c.posts-1 || c.within > 0 && time.Since(start) >= c.within {
						t.Errorf("%d POSTs in %v", n, time.Since(start))
					}
				})
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ int, p posted) (*http.Response, error) { return p.inputRequired(shedding["null"]) },
			policy.Rule{Settings: policy.Settings{Retry: policy.Retry{Backoff: time.Hour, BackoffCap: time.Hour}, Limits: policy.Limits{Call: -1}}})
		defer b.session.Close()
		checkCancel(t, b, time.Minute, 1)
	})
}

// TestRoundsThatFail: rounds without end, and questions that nobody can answer, are no
// results, and nothing is asked or sent in vain.
func TestRoundsThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		version      string
		mute         bool // the client has no handler
		asked, posts int
	}{
		"rounds-endless":         {posts: 10, asked: 9},
		"rounds-unknown-request": {posts: 1},
		"rounds-question":        {posts: 1, mute: true},
		"rounds-on-2025-11-25":   {version: middlewaretest.Version20251125, posts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, middlewaretest.Options{Version: c.version}, never)
			if c.mute {
				r.session = r.connectAs(t, nil)
			}
			r.server.Script("pay", catalogued(t, name))
			_, rec, err := r.call("pay", time.Minute)
			if e := failure(t, err); e.Outcome != observe.InvalidToolResult || rec.Outcome != observe.InvalidToolResult || rec.Delivery != observe.Unknown {
				t.Errorf("error %+v, record %+v", e, rec)
			}
			if r.asked != c.asked || r.server.Posts("pay") != c.posts || r.server.Effects("pay") != 0 {
				t.Errorf("asked %d times, %d POSTs, %d effects", r.asked, r.server.Posts("pay"), r.server.Effects("pay"))
			}
		})
	}
}

// connectAs connects a client with options through the stack.
func (r *rig) connectAs(t *testing.T, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	return r.connectOver(t, opts, nil)
}

// connectOver connects a client with options through the stack, over a network.
func (r *rig) connectOver(t *testing.T, opts *mcp.ClientOptions, base http.RoundTripper) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	client.AddSendingMiddleware(r.stack.Middleware()...)
	hc := r.stack.HTTPClient(&http.Client{Transport: base})
	t.Cleanup(hc.CloseIdleConnections)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: r.server.URL(), HTTPClient: hc}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

// TestHostsOwnRounds: a host that conducts the rounds itself gets the question as a
// result and goes on, as the same intent and key; each round has the key that it would
// have had in the SDK's loop, and a repeat of a round that of the round.
func TestHostsOwnRounds(t *testing.T) {
	for _, safety := range []policy.Safety{policy.Keyed, policy.Unsafe} {
		t.Run(string(safety), func(t *testing.T) {
			r := newRig(t, middlewaretest.Options{}, policy.Rule{Tool: "ask", Settings: policy.Settings{Safety: safety, Retry: policy.Retry{Repeats: -1}}})
			r.session = r.ownRounds(t)
			r.server.SetTool(middlewaretest.Tool{Name: "ask", Ask: "Go ahead?", Keyed: safety == policy.Keyed})
			fault := middlewaretest.Status(429)
			if safety == policy.Keyed {
				fault = middlewaretest.Reset().Executed()
			}
			third := middlewaretest.SecondRound(fault)
			third.Round = 3
			r.server.Script("ask", third)
			ctx := idempotency.WithIntent(t.Context(), "i")
			p := &mcp.CallToolParams{Name: "ask", Arguments: map[string]any{"order": 1}}
			for round := 1; round <= 2; round++ {
				res, err := r.session.CallTool(ctx, p)
				if err != nil || !res.NeedsInput() || len(res.InputRequests) != 1 || res.IsError {
					t.Fatalf("round %d: %v %+v", round, err, res)
				}
				p = answered(p, res)
			}
			if _, err := r.session.CallTool(ctx, p); err == nil {
				t.Fatal("round 3 did not fail")
			}
			res, err := r.session.CallTool(ctx, p)
			if err != nil || res.NeedsInput() {
				t.Fatalf("round 3 again: %v %+v", err, res)
			}
			if _, err := r.session.CallTool(ctx, p); err != nil || r.server.Posts("ask") != 4 || r.server.Effects("ask") != 1 || r.asked != 0 {
				t.Errorf("the intent again: %v, %d POSTs, %d effects, asked %d times", err, r.server.Posts("ask"), r.server.Effects("ask"), r.asked)
			}
			r.checkRoundKeys("ask", 1, 2, 3, 3)
		})
	}
}

// TestHostBeginsAnew: a host that has lost the answers begins with round one, whatever
// the ledger remembers, and comes to the same keys.
func TestHostBeginsAnew(t *testing.T) {
	r := newRig(t, middlewaretest.Options{}, policy.Rule{Tool: "ask", Settings: policy.Settings{Safety: policy.Keyed, Retry: policy.Retry{Repeats: -1}}})
	r.session = r.ownRounds(t)
	r.server.SetTool(middlewaretest.Tool{Name: "ask", Ask: "Go ahead?", Keyed: true})
	r.server.Script("ask", middlewaretest.SecondRound(middlewaretest.Reset().Executed()))
	ctx := idempotency.WithIntent(t.Context(), "i")
	for range 2 {
		p := &mcp.CallToolParams{Name: "ask"}
		res, err := r.session.CallTool(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = r.session.CallTool(ctx, answered(p, res))
	}
	if r.server.Effects("ask") != 1 {
		t.Errorf("%d effects", r.server.Effects("ask"))
	}
	r.checkRoundKeys("ask", 1, 2, 1, 2)
}

// ownRounds connects a client that leaves the rounds to its host.
func (r *rig) ownRounds(t *testing.T) *mcp.ClientSession {
	t.Helper()
	return r.connectAs(t, &mcp.ClientOptions{
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			r.asked++
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
	})
}

// answered are the params with which a host goes on after a question.
func answered(p *mcp.CallToolParams, res *mcp.CallToolResult) *mcp.CallToolParams {
	next := *p
	next.RequestState, next.InputResponses = res.RequestState, mcp.InputResponseMap{}
	for name := range res.InputRequests {
		next.InputResponses[name] = &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}
	}
	return &next
}

// checkRoundKeys checks that the POSTs of a tool carried the keys of these rounds of
// one call.
func (r *rig) checkRoundKeys(tool string, rounds ...int) {
	r.t.Helper()
	var key string
	var i int
	for _, e := range r.server.Entries() {
		if e.Tool != tool {
			continue
		}
		if key == "" {
			key = e.Key
		}
		if i >= len(rounds) || key == "" || e.Key != idempotency.RoundKey(key, rounds[i]) {
			r.t.Errorf("POST %d: key %s", i, e.Key)
		} else if call := string(e.Meta[idempotency.MetaCallKey]); rounds[i] > 1 && call != strconv.Quote(key) {
			r.t.Errorf("POST %d: call key %s", i, call)
		}
		i++
	}
	if i != len(rounds) {
		r.t.Errorf("%d POSTs, want %d", i, len(rounds))
	}
}

// TestRoundsWithoutHTTP: where there is no wire to look at, the SDK's own words say that
// its loop has given up.
func TestRoundsWithoutHTTP(t *testing.T) {
	question := mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "Go on?", RequestedSchema: map[string]any{"type": "object"}}}
	for name, c := range map[string]struct {
		requests mcp.InputRequestMap
		opts     *mcp.ClientOptions
		outcome  observe.Outcome
		calls    int64
	}{
		"endless":    {question, new(user).options(), observe.InvalidToolResult, 10},
		"no handler": {question, nil, observe.InvalidToolResult, 1},
		"empty map":  {mcp.InputRequestMap{}, nil, observe.InputRequired, 3},
	} {
		t.Run(name, func(t *testing.T) {
			server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
			var calls atomic.Int64
			server.AddTool(&mcp.Tool{Name: "pay", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				calls.Add(1)
				return &mcp.CallToolResult{InputRequests: c.requests, RequestState: "s"}, nil
			})
			here, there := mcp.NewInMemoryTransports()
			ss, err := server.Connect(t.Context(), there, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer ss.Close()
			var rec *observe.Record
			stack := middleware.New(&middleware.Options{OnRecord: func(_ context.Context, x *observe.Record) { rec = x }})
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, c.opts)
			client.AddSendingMiddleware(stack.Middleware()...)
			cs, err := client.Connect(t.Context(), here, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer cs.Close()
			_, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"})
			if e := failure(t, err); e.Outcome != c.outcome || rec.Outcome != c.outcome || rec.Decision.Action != "stop" || calls.Load() != c.calls {
				t.Errorf("%d calls, record %+v, error %v", calls.Load(), rec, err)
			}
		})
	}
}

// TestHostsOwnRoundsWithoutLedger: nobody counts the rounds of calls that bypass the
// ledger, but a later round never has the key of the first.
func TestHostsOwnRoundsWithoutLedger(t *testing.T) {
	r := newRig(t, middlewaretest.Options{}, never, policy.Rule{Tool: "ask", Settings: policy.Settings{Safety: policy.Idempotent}})
	r.session = r.ownRounds(t)
	third := middlewaretest.SecondRound(middlewaretest.Status(503))
	third.Round = 3
	r.server.Script("ask", third)
	ctx := idempotency.WithIntent(t.Context(), "i")
	p := &mcp.CallToolParams{Name: "ask"}
	for range 2 {
		res, err := r.session.CallTool(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		p = answered(p, res)
	}
	_, _ = r.session.CallTool(ctx, p)
	r.checkRoundKeys("ask", 1, 2, 2)
}

// overheard keeps what the calls carried that went by.
type overheard struct {
	http.RoundTripper
	mu    sync.Mutex
	calls []mcp.CallToolParams
}

func (o *overheard) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	var msg struct {
		Method string
		Params mcp.CallToolParams
	}
	if json.Unmarshal(body, &msg) == nil && msg.Method == "tools/call" {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.calls = append(o.calls, msg.Params)
	}
	return o.RoundTripper.RoundTrip(req)
}

func (o *overheard) CloseIdleConnections() { o.RoundTripper.(*http.Transport).CloseIdleConnections() }

// TestSheddingInALaterRound: a server that puts off the round which carries the answers
// gets them again, with its state, whether it gave one with the put-off or not: the user
// is asked once. A host that conducts the rounds itself loses nothing either.
func TestSheddingInALaterRound(t *testing.T) {
	for name, result := range map[string]string{
		"no state, empty":    `{"resultType":"input_required","inputRequests":{}}`,
		"no state at all":    `{"resultType":"input_required"}`,
		"a state of its own": `{"resultType":"input_required","requestState":"busy"}`,
	} {
		for _, own := range []bool{false, true} {
			t.Run(fmt.Sprint(name, own), func(t *testing.T) {
				r := newRig(t, middlewaretest.Options{}, never)
				var u user
				wire, opts := &overheard{RoundTripper: new(http.Transport)}, u.options()
				opts.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: own}
				r.session = r.connectOver(t, opts, wire)
				put := middlewaretest.SecondRound(middlewaretest.ResultBody("put-off", result))
				put.Execute = middlewaretest.Never
				r.server.Script("pay", put)
				p := &mcp.CallToolParams{Name: "pay"}
				res, err := r.session.CallTool(t.Context(), p)
				if own {
					if err != nil || len(res.InputRequests) != 1 {
						t.Fatalf("round 1: %v %+v", err, res)
					}
					res, err = r.session.CallTool(t.Context(), answered(p, res))
				}
				if err != nil || res.NeedsInput() || res.IsError {
					t.Fatalf("err %v, result %+v", err, res)
				}
				want := map[bool]int64{false: 1}[own]
				if len(wire.calls) != 3 || r.server.Effects("pay") != 1 || u.asked.Load() != want {
					t.Fatalf("%d POSTs, %d effects, asked %d times", len(wire.calls), r.server.Effects("pay"), u.asked.Load())
				}
				state := wire.calls[1].RequestState
				if name == "a state of its own" {
					state = "busy"
				}
				if last := wire.calls[2]; len(last.InputResponses) != 1 || last.RequestState != state || state == "" {
					t.Errorf("the last round carried the state %q and %d answers", last.RequestState, len(last.InputResponses))
				}
			})
		}
	}
}

// TestQuestionsWithoutEnd: a server gets no more questions for putting the call off, or
// failing, between them.
func TestQuestionsWithoutEnd(t *testing.T) {
	for name, between := range map[string]func(posted) (*http.Response, error){
		"shedding": func(p posted) (*http.Response, error) { return p.inputRequired(shedding["empty"]) },
		"503":      func(posted) (*http.Response, error) { return jsonAnswer(503, ""), nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var u user
				b := newBenchOf(t, u.options(), func(n int, p posted) (*http.Response, error) {
					if n%7 == 0 {
						return between(p)
					}
					return p.asks()
				}, policy.Rule{Settings: policy.Settings{Safety: policy.Idempotent, Retry: policy.Retry{Repeats: 5}}})
				defer b.session.Close()
				_, rec, err := b.call("pay", 0)
				if e := failure(t, err); e.Outcome != observe.InvalidToolResult || rec.Delivery != observe.Unknown || u.asked.Load() != 9 || b.wire.count() != 11 {
					t.Errorf("asked %d times, %d POSTs, err %v, record %+v", u.asked.Load(), b.wire.count(), err, rec)
				}
			})
		})
	}
}
