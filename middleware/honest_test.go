package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// TestStaleFinding: what a slow hook has found out of one try is not taken for true of
// a later one, which somebody else has made meanwhile.
func TestStaleFinding(t *testing.T) {
	for _, version := range []string{middlewaretest.Version20251125, middlewaretest.Version20260728} {
		r := newRig(t, middlewaretest.Options{Version: version})
		var looks atomic.Int32
		looked, goOn := make(chan struct{}), make(chan struct{})
		look := func(_ context.Context, u *middleware.Unresolved) (middleware.Finding, *mcp.CallToolResult, error) {
			effects := r.server.Effects("pay") // the truth, at this moment
			if u.Failure != nil {
				return middleware.CannotTell, nil, nil
			}
			if looks.Add(1) == 1 {
				close(looked)
				<-goOn
			}
			if effects == 0 {
				return middleware.DidNotHappen, nil, nil
			}
			return middleware.Happened, nil, nil
		}
		r.reconciled(nil, middleware.Reconciliation{Tool: "pay", Look: look})
		ctx := idempotency.WithIntent(t.Context(), "i")
		params := &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"order": 7}}
		r.server.Script("pay", middlewaretest.Reset(), middlewaretest.Reset().Executed())
		_, _ = r.session.CallTool(ctx, params)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = r.session.CallTool(ctx, params)
		}()
		<-looked
		_, _ = r.session.CallTool(ctx, params)
		close(goOn)
		<-done
		if n := r.server.Effects("pay"); n != 1 {
			t.Errorf("%s: %d effects of one intent", version, n)
		}
	}
}

// TestFoundResultIsWrittenDown: an intent that was answered with the result of an equal
// call is done, and is answered so again.
func TestFoundResultIsWrittenDown(t *testing.T) {
	r := newRig(t, middlewaretest.Options{})
	r.reconciled(nil, middleware.Reconciliation{Look: (&lookout{finding: middleware.Happened}).look})
	r.server.Script("pay", middlewaretest.Hang().Executed())
	if _, _, err := r.call("pay", 200*time.Millisecond); err == nil {
		t.Fatal("no doubt")
	}
	ctx := idempotency.WithIntent(t.Context(), "s/call_2")
	for i := range 2 {
		res, rec, err := r.callIn(ctx, "pay", map[string]any{"size": 10})
		if err != nil || text(res) != "paid" || rec.Ledger.Step != observe.LedgerReplayed || r.server.Effects("pay") != 1 {
			t.Errorf("call %d: %v, %+v, %d effects", i, err, rec.Ledger, r.server.Effects("pay"))
		}
	}
}

// TestDeafHook: a hook that does not look at its context does not hold the call.
func TestDeafHook(t *testing.T) {
	r := newRig(t, middlewaretest.Options{})
	release := make(chan struct{})
	defer close(release)
	r.reconciled(nil, askAll(func(context.Context, *middleware.Unresolved) (middleware.Finding, *mcp.CallToolResult, error) {
		<-release
		return middleware.Happened, nil, nil
	})...)
	r.server.Script("pay", middlewaretest.Reset().Executed())
	started := time.Now()
	_, rec, err := r.call("pay", 300*time.Millisecond)
	if err == nil || time.Since(started) > 5*time.Second || rec.Ledger.Settled != "unknown" || rec.Ledger.Reconciled[0].Error == "" {
		t.Errorf("after %v: %v, %+v", time.Since(started), err, rec.Ledger)
	}
}

// TestFoundNotToHaveHappened: a later round that did not happen is made again, under its
// own key, and nobody is asked a second time.
func TestFoundNotToHaveHappened(t *testing.T) {
	r := newRig(t, middlewaretest.Options{})
	r.reconciled(nil, middleware.Reconciliation{Look: (&lookout{finding: middleware.DidNotHappen}).look})
	r.server.Script("ask", middlewaretest.SecondRound(middlewaretest.Reset()))
	_, rec, err := r.callIn(idempotency.WithKey(t.Context(), "k"), "ask", map[string]any{"item": "x"})
	if err != nil || r.asked != 1 || r.server.Effects("ask") != 1 {
		t.Fatalf("asked %d times, %d effects, err %v, record %+v", r.asked, r.server.Effects("ask"), err, rec)
	}
	var keys []string
	for _, e := range r.server.Entries() {
		if e.Tool == "ask" {
			keys = append(keys, e.Key)
		}
	}
	second := idempotency.RoundKey("k", 2)
	if len(keys) != 3 || keys[0] != "k" || keys[1] != second || keys[2] != second {
		t.Errorf("keys %v, of round two %s", keys, second)
	}
}

// TestAnsweredIsNotSafeToRepeat: the guard gives a repeat the same key only while the
// outcome is unknown, so that after an answer nobody is told that a repeat is safe.
func TestAnsweredIsNotSafeToRepeat(t *testing.T) {
	for _, c := range []struct {
		name  string
		ctx   context.Context
		fault middlewaretest.Fault
		safe  bool
	}{
		{"an error, no name", t.Context(), middlewaretest.JSONRPCError(-32603, "internal").Executed(), false},
		{"an error, an intent", idempotency.WithIntent(t.Context(), "i"), middlewaretest.JSONRPCError(-32603, "internal").Executed(), true},
		{"in doubt, no name", t.Context(), middlewaretest.Reset().Executed(), true},
	} {
		r := newRig(t, middlewaretest.Options{}, noRepeats)
		r.server.Script("pay_keyed", c.fault)
		_, _, err := r.callIn(c.ctx, "pay_keyed", map[string]any{"size": 10})
		var e *observe.Error
		if !errors.As(err, &e) || e.RepeatSafe != c.safe {
			t.Errorf("%s: %+v", c.name, e)
		}
		_, _, _ = r.callIn(c.ctx, "pay_keyed", map[string]any{"size": 10})
		if c.safe && r.server.Effects("pay_keyed") != 1 {
			t.Errorf("%s: %d effects", c.name, r.server.Effects("pay_keyed"))
		}
	}
}

// moody is a store that is away for a while.
type moody struct {
	idempotency.Store
	away atomic.Bool
}

func (s *moody) Find(ctx context.Context, q idempotency.Query, now time.Time) ([]idempotency.Entry, error) {
	if s.away.Load() {
		return nil, errors.New("away")
	}
	return s.Store.Find(ctx, q, now)
}

// A keyedShop is a server with idempotency.Deduplicate that can be restarted over its
// store, and a client that trusts it.
type keyedShop struct {
	store   *moody
	effects atomic.Int32
	die     chan struct{} // the first payment is made, and then never answered
	session *mcp.ClientSession
	last    *observe.Record
}

func newKeyedShop(t *testing.T, dies bool) *keyedShop {
	s := &keyedShop{store: &moody{Store: idempotency.NewMemory(nil)}, die: make(chan struct{})}
	process := func() *mcp.Server {
		server := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
		server.AddReceivingMiddleware(idempotency.Deduplicate(s.store, nil))
		server.AddTool(&mcp.Tool{Name: "pay", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if s.effects.Add(1) == 1 && dies {
				<-s.die
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "paid"}}}, nil
		})
		return server
	}
	first, second := process(), process()
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		if s.effects.Load() == 0 {
			return first
		}
		return second
	}, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	stack := middleware.New(&middleware.Options{
		Policy:   &policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{TrustAnnotations: new(true), Retry: policy.Retry{Repeats: -1}}}}},
		OnRecord: func(_ context.Context, r *observe.Record) { s.last = r },
	})
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	client.AddSendingMiddleware(stack.Middleware()...)
	web := stack.HTTPClient(nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: h.URL, HTTPClient: web}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.session = session
	t.Cleanup(func() {
		close(s.die)
		session.Close()
		web.CloseIdleConnections()
		h.Close()
	})
	return s
}

func (s *keyedShop) pay(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"order": 7}})
	return err
}

// TestServerCannotSay: a server that answers that it does not know what became of an
// earlier execution has not told what became of the call.
func TestServerCannotSay(t *testing.T) {
	for _, intent := range []string{"", "i"} {
		s := newKeyedShop(t, true)
		ctx := idempotency.WithIntent(t.Context(), intent)
		if err := s.pay(ctx, 300*time.Millisecond); err == nil {
			t.Fatal("answered")
		}
		for range 2 {
			err := s.pay(ctx, 10*time.Second)
			var e *observe.Error
			if !errors.As(err, &e) || e.Outcome != observe.JSONRPCError || e.Delivery != observe.Unknown || s.last.Ledger.Settled != "unknown" {
				t.Errorf("intent %q: %v, ledger %+v", intent, err, s.last.Ledger)
			}
		}
		if n := s.effects.Load(); n != 1 {
			t.Errorf("intent %q: %d effects", intent, n)
		}
	}
}

// TestServerHasNotLooked: a server that could not look up the key has executed nothing,
// and the intent is not lost with that.
func TestServerHasNotLooked(t *testing.T) {
	s := newKeyedShop(t, false)
	ctx := idempotency.WithIntent(t.Context(), "i")
	s.store.away.Store(true)
	var e *observe.Error
	if err := s.pay(ctx, 10*time.Second); !errors.As(err, &e) || e.Delivery != observe.Refused || !e.RepeatSafe || s.last.Ledger.Settled != "failed" {
		t.Errorf("%+v, ledger %+v", e, s.last.Ledger)
	}
	s.store.away.Store(false)
	if err := s.pay(ctx, 10*time.Second); err != nil || s.effects.Load() != 1 {
		t.Errorf("then: %v, %d effects", err, s.effects.Load())
	}
}

// TestKeyThatCannotTravel: a call whose key cannot go where the policy wants it is not
// made without it.
func TestKeyThatCannotTravel(t *testing.T) {
	header := policy.Rule{Tool: "pay_keyed", Settings: policy.Settings{Safety: policy.Keyed, Key: policy.Key{Header: "Idempotency-Key"}}}
	argument := policy.Rule{Tool: "pay_keyed", Settings: policy.Settings{Safety: policy.Keyed, Key: policy.Key{Argument: "idempotency_key"}}}
	for _, c := range []struct {
		name  string
		rule  policy.Rule
		key   string
		args  map[string]any
		posts int
	}{
		{"header", header, "order 7", nil, 1},
		{"header, not ASCII", header, "order 7 für Ann", nil, 0},
		{"argument, the same", argument, "mine", map[string]any{"idempotency_key": "mine"}, 1},
		{"argument, another", argument, "from the context", map[string]any{"idempotency_key": "mine"}, 0},
	} {
		r := newRig(t, middlewaretest.Options{}, c.rule)
		_, rec, err := r.callIn(idempotency.WithKey(t.Context(), c.key), "pay_keyed", c.args)
		if (err == nil) != (c.posts == 1) || r.server.Posts("pay_keyed") != c.posts || c.posts == 0 && rec.Outcome != observe.Blocked {
			t.Errorf("%s: %v, %d POSTs, record %+v", c.name, err, r.server.Posts("pay_keyed"), rec)
		}
	}
}

// TestPermissionStaysWithItsCall: that one call may be repeated allows nothing to what
// its input handlers call.
func TestPermissionStaysWithItsCall(t *testing.T) {
	r := newRig(t, middlewaretest.Options{}, noRepeats)
	var inner error
	r.session = r.connectAs(t, &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		_, inner = r.session.CallTool(ctx, &mcp.CallToolParams{Name: "send_mail"})
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
	}})
	r.server.Script("send_mail", middlewaretest.Reset().Executed())
	_, _ = r.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "send_mail"})
	if _, err := r.session.CallTool(idempotency.WithRepeatAllowed(t.Context()), &mcp.CallToolParams{Name: "ask"}); err != nil {
		t.Fatal(err)
	}
	if inner == nil || r.server.Effects("send_mail") != 1 {
		t.Errorf("the handler's mail: %v, %d effects", inner, r.server.Effects("send_mail"))
	}
}

// TestLedgerCall: a host that has looked resolves the call that the middlewares began.
func TestLedgerCall(t *testing.T) {
	for name, ctx := range map[string]context.Context{
		"by intent":    idempotency.WithIntent(t.Context(), "i"),
		"by key":       idempotency.WithKey(t.Context(), "k"),
		"by arguments": idempotency.WithPrincipal(t.Context(), "ann"),
	} {
		r := newRig(t, middlewaretest.Options{})
		ledger := idempotency.NewLedger(nil, nil)
		r.reconciled(ledger)
		r.server.Script("pay", middlewaretest.Reset())
		params := &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"order": 7}}
		if _, err := r.session.CallTool(ctx, params); err == nil {
			t.Fatal("no doubt")
		}
		call, err := r.stack.LedgerCall(ctx, r.session, params)
		if err != nil {
			t.Fatal(err)
		}
		doubts, err := ledger.InDoubt(ctx, call)
		if err != nil || len(doubts) != 1 {
			t.Fatalf("%s: %v, %v", name, doubts, err)
		}
		if ok, err := doubts[0].Resolve(ctx, idempotency.Settlement{State: idempotency.Failed}); err != nil || !ok {
			t.Errorf("%s: resolved %t, %v", name, ok, err)
		}
		if _, err := r.session.CallTool(ctx, params); err != nil || r.server.Effects("pay") != 1 {
			t.Errorf("%s: %v, %d effects", name, err, r.server.Effects("pay"))
		}
	}
}
