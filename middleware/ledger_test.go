package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
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

// dark cuts the connection of the first n calls after they were sent.
func dark(n int) func(int, posted) (*http.Response, error) {
	return func(i int, p posted) (*http.Response, error) {
		if i <= n {
			p.connect(true)
			return nil, errors.New("reset")
		}
		return p.answer()
	}
}

// noRepeats keeps the loop out of what is tested.
var noRepeats = policy.Rule{Settings: policy.Settings{Retry: policy.Retry{Repeats: -1}, Breaker: policy.Breaker{Failures: -1}}}

func TestEqualCallIsBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, dark(1), noRepeats)
		defer b.session.Close()
		_, _, _ = b.call("pay", 0)
		time.Sleep(time.Minute)
		_, rec, err := b.call("pay", 0)
		var e *observe.Error
		if !errors.As(err, &e) || rec.Outcome != observe.Blocked || rec.Delivery != observe.NotSent || e.RepeatSafe || b.wire.count() != 1 {
			t.Fatalf("%d POSTs, err %v, record %+v", b.wire.count(), err, rec)
		}
		if rec.Ledger == nil || rec.Ledger.Step != observe.LedgerBlocked || rec.Ledger.Kind != "equal" || time.Since(*rec.Ledger.Since) != time.Minute {
			t.Errorf("ledger %+v", rec.Ledger)
		}
		if _, rec, err := b.callIn(idempotency.WithPrincipal(t.Context(), "other"), "pay"); err != nil {
			t.Errorf("another principal: %v %+v", err, rec)
		}
		if _, rec, err := b.callIn(idempotency.WithRepeatAllowed(t.Context()), "pay"); err != nil || rec.Ledger.Settled != "completed" {
			t.Errorf("allowed: %v %+v", err, rec)
		}
	})
}

func TestGuardWindowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, dark(1), noRepeats)
		defer b.session.Close()
		_, _, _ = b.call("pay", 0)
		time.Sleep(10*time.Minute - time.Second)
		if _, rec, _ := b.call("pay", 0); rec.Outcome != observe.Blocked {
			t.Errorf("within the window: %+v", rec)
		}
		time.Sleep(time.Second)
		if _, rec, err := b.call("pay", 0); err != nil {
			t.Errorf("after the window: %v %+v", err, rec)
		}
	})
}

func TestKeyedCallAdoptsTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, dark(1), noRepeats)
		defer b.session.Close()
		_, _, err := b.call("pay_keyed", 0)
		var e *observe.Error
		if !errors.As(err, &e) || !e.RepeatSafe {
			t.Errorf("a repeat from above is not safe: %+v", e)
		}
		_, rec, err := b.call("pay_keyed", 0)
		if err != nil || rec.Ledger.Step != observe.LedgerAdopted {
			t.Errorf("err %v, record %+v", err, rec)
		}
		keys := map[any]bool{}
		for _, p := range b.wire.posts {
			keys[p.params.Meta[idempotency.MetaKey]] = true
		}
		if len(keys) != 1 {
			t.Errorf("keys %v", keys)
		}
		if _, rec, _ := b.callIn(idempotency.WithKey(t.Context(), "own"), "pay_keyed"); rec.Ledger.Step != observe.LedgerSent {
			t.Errorf("a call with a key of its own: %+v", rec.Ledger)
		}
	})
}

// TestSameIntent walks through what becomes of an intent that comes again.
func TestSameIntent(t *testing.T) {
	for _, c := range []struct {
		name  string
		tool  string
		first func(int, posted) (*http.Response, error)
		step  observe.LedgerStep
		posts int
		kind  string
	}{
		{"completed", "pay", dark(0), observe.LedgerReplayed, 1, ""},
		{"refused", "pay", func(n int, p posted) (*http.Response, error) {
			if n == 1 {
				return jsonAnswer(400, ""), nil
			}
			return p.answer()
		}, observe.LedgerSent, 2, ""},
		{"unknown", "pay", dark(1), observe.LedgerBlocked, 1, "unknown"},
		{"unknown, keyed", "pay_keyed", dark(1), observe.LedgerSent, 2, ""},
		{"completed with an error", "pay", func(_ int, p posted) (*http.Response, error) {
			return jsonAnswer(200, `{"jsonrpc":"2.0","id":`+string(p.id)+`,"error":{"code":-32602,"message":"m","data":[1]}}`), nil
		}, observe.LedgerReplayed, 1, ""},
		{"completed with a tool error", "pay", func(_ int, p posted) (*http.Response, error) {
			return jsonAnswer(200, `{"jsonrpc":"2.0","id":`+string(p.id)+`,"result":{"content":[{"type":"text","text":"no"}],"isError":true,"structuredContent":{"n":9007199254740993}}}`), nil
		}, observe.LedgerReplayed, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.first, noRepeats)
				defer b.session.Close()
				ctx := idempotency.WithIntent(t.Context(), "session/call-1")
				res1, first, err1 := b.callIn(ctx, c.tool)
				res2, second, err2 := b.callIn(ctx, c.tool)
				if second.Ledger == nil || second.Ledger.Step != c.step || second.Ledger.Kind != c.kind || b.wire.count() != c.posts {
					t.Fatalf("%d POSTs, ledger %+v, err %v", b.wire.count(), second.Ledger, err2)
				}
				if first.IdempotencyKey == "" || c.step != observe.LedgerBlocked && second.IdempotencyKey != first.IdempotencyKey {
					t.Errorf("keys %s, %s", first.IdempotencyKey, second.IdempotencyKey)
				}
				if c.step == observe.LedgerReplayed {
					sameAnswer(t, res1, err1, res2, err2)
					if second.Outcome != first.Outcome || second.PostCount != 0 {
						t.Errorf("record %+v", second)
					}
				}
			})
		})
	}
}

// sameAnswer checks that a replay is the first answer, marked.
func sameAnswer(t *testing.T, res1 *mcp.CallToolResult, err1 error, res2 *mcp.CallToolResult, err2 error) {
	t.Helper()
	if err1 != nil || err2 != nil {
		var e1, e2 *observe.Error
		if !errors.As(err1, &e1) || !errors.As(err2, &e2) || !reflect.DeepEqual(e1.RPC, e2.RPC) {
			t.Errorf("errors %v, %v", err1, err2)
		}
		return
	}
	if res2.Meta[idempotency.MetaReplay] == nil {
		t.Error("the replay is not marked")
	}
	delete(res2.Meta, idempotency.MetaReplay)
	a, _ := json.Marshal(res1)
	b, _ := json.Marshal(res2)
	if len(res2.Meta) == 0 && string(a) != string(b) {
		t.Errorf("answers\n%s\n%s", a, b)
	}
}

func TestIntentWithOtherArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, dark(0))
		defer b.session.Close()
		ctx := idempotency.WithIntent(t.Context(), "i")
		_, _, _ = b.callIn(ctx, "pay")
		_, err := b.session.CallTool(ctx, &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"amount": 2}})
		var e *observe.Error
		if !errors.As(err, &e) || e.Outcome != observe.Blocked || b.wire.count() != 1 {
			t.Errorf("%d POSTs, %v", b.wire.count(), err)
		}
	})
}

// TestConcurrentIntent: the second caller waits for the first's answer, bounded by
// its own deadline.
func TestConcurrentIntent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ int, p posted) (*http.Response, error) {
			time.Sleep(10 * time.Second)
			return p.answer()
		})
		defer b.session.Close()
		ctx := idempotency.WithIntent(t.Context(), "i")
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				if _, err := b.session.CallTool(ctx, &mcp.CallToolParams{Name: "pay"}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			time.Sleep(time.Second)
			short, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			start := time.Now()
			_, err := b.session.CallTool(short, &mcp.CallToolParams{Name: "pay"})
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
		})
		wg.Wait()
		if b.wire.count() != 1 {
			t.Errorf("%d POSTs", b.wire.count())
		}
	})
}

// brokenStore fails as a full disk does.
type brokenStore struct{ idempotency.Store }

func (brokenStore) Find(context.Context, idempotency.Query, time.Time) ([]idempotency.Entry, error) {
	return nil, errors.New("disk full")
}

// TestBrokenLedger: calls that could repeat an effect are stopped, reading goes on.
func TestBrokenLedger(t *testing.T) {
	so := middlewaretest.Options{}
	r := newRig(t, so)
	r.stack = middleware.New(&middleware.Options{
		Policy:   &policy.Policy{Rules: classes()},
		Ledger:   idempotency.NewLedger(brokenStore{idempotency.NewMemory(nil)}, nil),
		OnRecord: checked(t, func(_ context.Context, rec *observe.Record) { r.records = append(r.records, rec) }),
	})
	r.session = r.connect(t, r.stack)
	for tool, want := range map[string]observe.Outcome{
		"pay": observe.Blocked, "pay_keyed": observe.Blocked, "read_weather": observe.ToolSuccess, "set_label": observe.ToolSuccess,
	} {
		_, rec, _ := r.call(tool, time.Minute)
		if rec.Outcome != want || want == observe.Blocked && (r.server.Posts(tool) != 0 || rec.Delivery != observe.NotSent || rec.Ledger.Kind != "store") {
			t.Errorf("%s: %+v", tool, rec)
		}
	}
}

// TestRoundKeys: each round has a key of its own, in _meta and header, a repeat of a
// round has the round's, and the call's key travels beside it.
func TestRoundKeys(t *testing.T) {
	r := newRig(t, middlewaretest.Options{}, policy.Rule{Tool: "ask", Settings: policy.Settings{Safety: policy.Keyed, Key: policy.Key{Header: "Idempotency-Key"}}})
	r.server.Script("ask", middlewaretest.SecondRound(middlewaretest.Status(503)))
	ctx := idempotency.WithKey(t.Context(), "call-key")
	if _, rec, err := r.callIn(ctx, "ask", map[string]any{"note": `"io.github.surecall/idempotency-key":"call-key"`}); err != nil || r.asked != 1 {
		t.Fatalf("asked %d times, err %v, record %+v", r.asked, err, rec)
	}
	second := idempotency.RoundKey("call-key", 2)
	want := []string{"call-key", second, second}
	var i int
	for _, e := range r.server.Entries() {
		if e.Tool != "ask" {
			continue
		}
		if e.Key != want[i] || e.Header.Get("Idempotency-Key") != `"`+want[i]+`"` {
			t.Errorf("POST %d: key %s, header %s, want %s", i, e.Key, e.Header.Get("Idempotency-Key"), want[i])
		}
		if call := string(e.Meta[idempotency.MetaCallKey]); i > 0 && call != `"call-key"` {
			t.Errorf("POST %d: call key %s", i, call)
		}
		i++
	}
	if i != 3 {
		t.Errorf("%d POSTs", i)
	}
}

// TestKeyInArgument: the key goes where the policy says the tool has it, a value of
// the caller's is kept and adopted, and a tool without such an argument is not called.
func TestKeyInArgument(t *testing.T) {
	rule := func(path string) policy.Rule {
		return policy.Rule{Settings: policy.Settings{Key: policy.Key{Argument: path}}}
	}
	r := newRig(t, middlewaretest.Options{}, rule("idempotency_key"))
	args := map[string]any{"amount": 1}
	if _, rec, err := r.callIn(t.Context(), "pay_keyed", args); err != nil || len(args) != 1 {
		t.Fatalf("arguments %v, err %v, record %+v", args, err, rec)
	}
	if _, _, err := r.callIn(t.Context(), "pay_keyed", map[string]any{"idempotency_key": "mine"}); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, e := range r.server.Entries() {
		if e.Tool != "pay_keyed" {
			continue
		}
		var got struct {
			Key string `json:"idempotency_key"`
		}
		if err := json.Unmarshal(e.Arguments, &got); err != nil || got.Key != e.Key {
			t.Errorf("argument %q, _meta %q", got.Key, e.Key)
		}
		keys = append(keys, e.Key)
	}
	if len(keys) != 2 || keys[0] == "" || keys[1] != "mine" || r.server.Counts().Lists != 1 {
		t.Errorf("keys %v, %d tools/list", keys, r.server.Counts().Lists)
	}
	_, rec, err := r.callIn(t.Context(), "pay", nil)
	if err == nil || rec.Outcome != observe.Blocked || r.server.Posts("pay") != 0 {
		t.Errorf("a tool without the argument: %v %+v", err, rec)
	}
}

func TestKeyUnderAnotherName(t *testing.T) {
	r := newRig(t, middlewaretest.Options{}, policy.Rule{Settings: policy.Settings{Key: policy.Key{Meta: "idempotency-key"}}})
	if _, _, err := r.call("pay", time.Minute); err != nil {
		t.Fatal(err)
	}
	entries := r.server.Entries()
	if e := entries[len(entries)-1]; e.Meta["idempotency-key"] == nil || e.Meta[idempotency.MetaKey] != nil {
		t.Errorf("_meta %v", e.Meta)
	}
}

// TestKeyedSessionLostKeepsItsKey: a 404 after the tool ran, a session that is not
// renewed, and a framework that reconnects and calls again.
func TestKeyedSessionLostKeepsItsKey(t *testing.T) {
	r := newRig(t, middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true},
		policy.Rule{Settings: policy.Settings{Session: policy.Session{Heal: new(false)}}})
	f, _ := middlewaretest.FaultNamed("session-forgotten-executed")
	r.server.Script("pay_keyed", f)
	_, _, _ = r.call("pay_keyed", time.Minute)
	r.session = r.connect(t, r.stack)
	if _, rec, err := r.call("pay_keyed", time.Minute); err != nil || r.server.Effects("pay_keyed") != 1 {
		t.Errorf("%d effects, err %v, record %+v", r.server.Effects("pay_keyed"), err, rec)
	}
}

// TestAnnouncedServer: the tools of a trusted server that says it honours keys are
// keyed without being listed, and both ends together make one effect of two POSTs.
func TestAnnouncedServer(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		var effects atomic.Int64
		server := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
		server.AddReceivingMiddleware(idempotency.Deduplicate(nil, nil))
		mcp.AddTool(server, &mcp.Tool{Name: "pay"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			effects.Add(1)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "paid"}}}, nil, nil
		})
		var cut atomic.Bool
		sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Method") == "tools/call" && !cut.Swap(true) {
				sdk.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			}
			sdk.ServeHTTP(w, r)
		}))
		var rec *observe.Record
		stack := middleware.New(&middleware.Options{
			Policy:   &policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{TrustAnnotations: new(trusted)}}}},
			OnRecord: checked(t, func(_ context.Context, r *observe.Record) { rec = r }),
		})
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		client.AddSendingMiddleware(stack.Middleware()...)
		hc := stack.HTTPClient(nil)
		cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: h.URL, HTTPClient: hc}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"})
		if effects.Load() != 1 || (err == nil) != trusted || (rec.Safety == "keyed") != trusted {
			t.Errorf("trusted %t: %d effects, err %v, record %+v", trusted, effects.Load(), err, rec)
		}
		_ = cs.Close()
		hc.CloseIdleConnections()
		h.Close()
	}
}

// TestSheddingKeepsTheRoundKey: a server that once puts the call off before it asks
// does not shift the keys of the rounds.
func TestSheddingKeepsTheRoundKey(t *testing.T) {
	r := newRig(t, middlewaretest.Options{}, policy.Rule{Tool: "ask", Settings: policy.Settings{Safety: policy.Keyed, Retry: policy.Retry{Repeats: -1}}})
	r.server.SetTool(middlewaretest.Tool{Name: "ask", Ask: "Go ahead?", Keyed: true})
	shed, _ := middlewaretest.FaultNamed("rounds-empty-requests")
	cut := middlewaretest.SecondRound(middlewaretest.Reset().Executed())
	cut.Round = 3
	r.server.Script("ask", shed, cut)
	ctx := idempotency.WithIntent(t.Context(), "i")
	for range 2 {
		_, _, _ = r.callIn(ctx, "ask", map[string]any{"order": 1})
	}
	if n := r.server.Effects("ask"); n != 1 {
		t.Errorf("%d effects: %v", n, r.server.EffectsByKey("ask"))
	}
}

// TestDoubtStays: a keyed call that may have run is repeated and refused: what is said
// of it is still that it may have run.
func TestDoubtStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(n int, p posted) (*http.Response, error) {
			if n == 1 {
				p.connect(true)
				return nil, errors.New("reset")
			}
			return jsonAnswer(400, ""), nil
		}, noRepeats)
		defer b.session.Close()
		_, _, _ = b.call("pay_keyed", 0)
		_, rec, err := b.call("pay_keyed", 0)
		var e *observe.Error
		if !errors.As(err, &e) || e.Delivery != observe.Unknown || rec.Delivery != observe.Unknown || rec.Ledger.Settled != "unknown" {
			t.Errorf("error %+v, record %+v", e, rec)
		}
	})
}

// TestKeyArgumentKeepsTheRest: the key is put beside what the caller gave, in whatever
// Go types, and never in its place.
func TestKeyArgumentKeepsTheRest(t *testing.T) {
	type pay struct {
		Amount int    `json:"amount"`
		Key    string `json:"key,omitempty"`
	}
	r := newRig(t, middlewaretest.Options{}, policy.Rule{Tool: "charge", Settings: policy.Settings{
		Safety: policy.Keyed, Key: policy.Key{Argument: "/payment/key"}}})
	r.server.SetTool(middlewaretest.Tool{Name: "charge", Keyed: true, InputSchema: json.RawMessage(
		`{"type":"object","properties":{"payment":{"type":"object","properties":{"amount":{},"key":{}}}}}`)})
	for name, c := range map[string]struct {
		payment any
		key     string // of the caller
		refused bool
	}{
		"struct":       {payment: pay{Amount: 5}},
		"struct, key":  {payment: pay{Amount: 5, Key: "mine-1"}, key: "mine-1"},
		"map":          {payment: map[string]string{"amount": "5", "key": "mine-2"}, key: "mine-2"},
		"empty key":    {payment: map[string]any{"amount": 5, "key": ""}},
		"null key":     {payment: map[string]any{"amount": 5, "key": nil}},
		"absent":       {},
		"number":       {payment: map[string]any{"amount": 5, "key": 4711}, refused: true},
		"text instead": {payment: "card-4711", refused: true},
	} {
		args := map[string]any{"name": name}
		if c.payment != nil {
			args["payment"] = c.payment
		}
		before := r.server.Posts("charge")
		_, rec, err := r.callIn(t.Context(), "charge", args)
		if c.refused {
			if err == nil || rec.Outcome != observe.Blocked || r.server.Posts("charge") != before {
				t.Errorf("%s: err %v, record %+v", name, err, rec)
			}
			continue
		}
		entries := r.server.Entries()
		e := entries[len(entries)-1]
		var sent struct {
			Payment struct {
				Amount any
				Key    string
			}
		}
		if jerr := json.Unmarshal(e.Arguments, &sent); err != nil || jerr != nil || sent.Payment.Key != e.Key || e.Key == "" || c.key != "" && e.Key != c.key || c.payment != nil && sent.Payment.Amount == nil {
			t.Errorf("%s: err %v, sent %s, key %s", name, err, e.Arguments, e.Key)
		}
	}
}

// TestGuardLooksPastTheKeyArgument: a model that makes up another key asks for the same.
func TestGuardLooksPastTheKeyArgument(t *testing.T) {
	r := newRig(t, middlewaretest.Options{}, policy.Rule{Tool: "charge", Settings: policy.Settings{Key: policy.Key{Argument: "key"}}})
	r.server.SetTool(middlewaretest.Tool{Name: "charge", InputSchema: json.RawMessage(`{"type":"object","properties":{"key":{}}}`)})
	r.server.Script("charge", middlewaretest.Reset().Executed())
	_, _, _ = r.callIn(t.Context(), "charge", map[string]any{"amount": 1, "key": "model-1"})
	if _, rec, _ := r.callIn(t.Context(), "charge", map[string]any{"amount": 1, "key": "model-2"}); rec.Outcome != observe.Blocked || r.server.Effects("charge") != 1 {
		t.Errorf("%d effects, record %+v", r.server.Effects("charge"), rec)
	}
}

// TestReplayNeedsNoServer: what was answered is there when the server is not.
func TestReplayNeedsNoServer(t *testing.T) {
	r := newRig(t, middlewaretest.Options{})
	ledger := idempotency.NewLedger(nil, nil)
	connect := func() {
		r.stack = middleware.New(&middleware.Options{
			Policy: &policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{Key: policy.Key{Argument: "idempotency_key"}}}}},
			Ledger: ledger, OnRecord: checked(t, func(_ context.Context, rec *observe.Record) { r.records = append(r.records, rec) }),
		})
		r.session = r.connect(t, r.stack)
	}
	ctx := idempotency.WithIntent(t.Context(), "i")
	connect()
	if _, _, err := r.callIn(ctx, "pay_keyed", nil); err != nil {
		t.Fatal(err)
	}
	connect() // a stack that has not seen the schema
	r.server.AlwaysMethod("tools/list", middlewaretest.Status(500))
	if _, rec, err := r.callIn(ctx, "pay_keyed", nil); err != nil || rec.Ledger.Step != observe.LedgerReplayed || r.server.Posts("pay_keyed") != 1 {
		t.Errorf("err %v, record %+v", err, rec)
	}
}

// TestWaiterIsBounded: the limit of the call also bounds waiting for another one.
func TestWaiterIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ int, p posted) (*http.Response, error) {
			time.Sleep(time.Hour)
			return p.answer()
		}, policy.Rule{Settings: policy.Settings{Limits: policy.Limits{Call: 10 * time.Second}}})
		defer b.session.Close()
		ctx := idempotency.WithIntent(t.Context(), "i")
		long, cancel := context.WithTimeout(ctx, 2*time.Hour)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			_, err := b.session.CallTool(long, &mcp.CallToolParams{Name: "pay"})
			done <- err
		}()
		synctest.Wait()
		start := time.Now()
		if _, err := b.session.CallTool(ctx, &mcp.CallToolParams{Name: "pay"}); err == nil || time.Since(start) != 10*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestConcurrentAdopters: two equal calls after one in doubt get one answer.
func TestConcurrentAdopters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(n int, p posted) (*http.Response, error) {
			if n == 1 {
				p.connect(true)
				return nil, errors.New("reset")
			}
			time.Sleep(time.Second)
			return p.answer()
		}, noRepeats)
		defer b.session.Close()
		_, _, _ = b.call("pay_keyed", 0)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := b.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay_keyed"}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := b.wire.count(); n != 2 {
			t.Errorf("%d POSTs", n)
		}
	})
}

// TestSchemaCannotBeAsked: where tools/list fails, the call that needed it ends as the
// question did, with nothing sent, and is not taken for one that was held back.
func TestSchemaCannotBeAsked(t *testing.T) {
	rule := policy.Rule{Settings: policy.Settings{Key: policy.Key{Argument: "idempotency_key"}, Retry: policy.Retry{Repeats: -1}}}
	for _, c := range []struct {
		name    string
		fault   middlewaretest.Fault
		outcome observe.Outcome
	}{
		{"refused", middlewaretest.Status(503), observe.HTTPError},
		{"answered with an error", middlewaretest.JSONRPCError(-32603, "no list today"), observe.Blocked},
		{"out of time", middlewaretest.Hang(), observe.Timeout},
		{"cut", middlewaretest.Reset(), observe.NetworkError},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, middlewaretest.Options{}, rule)
			r.server.ScriptMethod("tools/list", c.fault)
			_, rec, err := r.call("pay_keyed", 300*time.Millisecond)
			var e *observe.Error
			if !errors.As(err, &e) || rec.Outcome != c.outcome || rec.Delivery != observe.NotSent || e.RepeatSafe != (c.outcome != observe.Blocked) || r.server.Posts("pay_keyed") != 0 {
				t.Errorf("err %v, record %+v", err, rec)
			}
			if _, rec, err := r.call("pay_keyed", time.Minute); err != nil || r.server.Effects("pay_keyed") != 1 {
				t.Errorf("afterwards: %v, %+v", err, rec)
			}
		})
	}
}
