package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// An agent sees the tools of all upstreams, each under its upstream's name, and a call
// reaches the tool of that name with its arguments as they are.
func TestToolsHavePrefixes(t *testing.T) {
	f := start(t, rules(t))
	a := f.agent(nil, "")
	var names []string
	for tool, err := range a.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	for _, want := range []string{"fs_read_file", "every_pay", "flaky_pay", "flaky_read_weather"} {
		if !slices.Contains(names, want) {
			t.Errorf("no tool %s in %q", want, names)
		}
	}
	if got := text(a.call(t.Context(), "fs_read_file", map[string]any{"path": "a"}, nil)); got != "content of a" {
		t.Errorf("fs_read_file: %q", got)
	}
	a.call(t.Context(), "every_pay", map[string]any{"amount": 9007199254740993}, nil)
	if n := f.every.EffectsByArg("pay", "amount")["9007199254740993"]; n != 1 || f.flaky.Posts("pay") != 0 {
		t.Errorf("every_pay: %d effects, %d calls at another upstream", n, f.flaky.Posts("pay"))
	}
	if got := f.outcomes(); !slices.Equal(got, []string{"fs read_file TOOL_SUCCESS", "every pay TOOL_SUCCESS"}) {
		t.Errorf("records %q", got)
	}
}

// An upstream's own result passes as it is, isError or not, with everything in it.
func TestResultsPassUntouched(t *testing.T) {
	f := start(t, rules(t))
	result := `{"content":[{"type":"text","text":"no such account","annotations":{"priority":1}},{"type":"image","data":"AAEC","mimeType":"image/png"}],` +
		`"structuredContent":{"code":"E7","n":-1.5},"isError":true,"_meta":{"example.com/x":[1]}}`
	f.every.Script("pay", middlewaretest.ResultBody("own", result))
	res := f.agent(nil, "").call(t.Context(), "every_pay", nil, nil)
	got, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	var have, want map[string]any
	for b, v := range map[string]*map[string]any{string(got): &have, result: &want} {
		d := json.NewDecoder(strings.NewReader(b))
		d.UseNumber()
		if err := d.Decode(v); err != nil {
			t.Fatal(err)
		}
	}
	delete(have, "resultType") // the gateway's own version of the protocol
	for name := range want {
		if g, w := mustJSON(have[name]), mustJSON(want[name]); name != "_meta" && g != w {
			t.Errorf("%s: %s, want %s", name, g, w)
		}
	}
	if !strings.Contains(string(got), `"example.com/x":[1]`) || strings.Contains(string(got), middleware.MetaOutcome) {
		t.Errorf("_meta: %s", got)
	}
}

func mustJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// An upstream's failure is a result with isError that says what is known, whatever the
// agent's client is: no success, and no error that a framework would run again.
func TestFailuresKeepTheirOutcome(t *testing.T) {
	for _, c := range []struct {
		fault  middlewaretest.Fault
		tool   string
		want   report
		says   string
		effect int
	}{
		{middlewaretest.Reset().Executed(), "pay", report{Outcome: observe.NetworkError, Delivery: observe.Unknown},
			"Do not call it again before checking", 1},
		{middlewaretest.Status(503).Executed(), "pay", report{Outcome: observe.HTTPError, Delivery: observe.Unknown, Status: 503},
			"may have", 1},
		{middlewaretest.Status(403), "pay", report{Outcome: observe.HTTPError, Delivery: observe.Refused, Status: 403, RepeatSafe: true},
			"without running the tool", 0},
		{middlewaretest.JSONRPCError(-32602, "amount is missing"), "pay", report{Outcome: observe.JSONRPCError, Delivery: observe.Answered, Code: -32602},
			`"amount is missing"`, 0},
		{middlewaretest.Reset().Executed(), "read_weather", report{Outcome: observe.NetworkError, Delivery: observe.Unknown, RepeatSafe: true},
			"only reads", 2},
	} {
		t.Run(c.tool+" "+c.fault.Name, func(t *testing.T) {
			c.want.Server = "flaky"
			for name, connect := range map[string]func(f *fixture) *agent{
				"bare":    func(f *fixture) *agent { return f.agent(nil, "") },
				"wrapped": func(f *fixture) *agent { return f.agent(middleware.New(nil), "") },
				"legacy":  (*fixture).legacyAgent,
			} {
				f := start(t, rules(t))
				f.flaky.Always(c.tool, c.fault)
				res := connect(f).call(t.Context(), "flaky_"+c.tool, nil, nil)
				if got := told(t, res); !res.IsError || got != c.want {
					t.Errorf("%s: isError %t, %+v, want %+v", name, res.IsError, got, c.want)
				}
				if !strings.Contains(text(res), c.says) || !strings.Contains(text(res), `"flaky_`+c.tool+`"`) {
					t.Errorf("%s: the model reads %q", name, text(res))
				}
				if n := f.flaky.Effects(c.tool); n != c.effect {
					t.Errorf("%s: %d effects", name, n)
				}
			}
		})
	}
}

// To a wrapped agent the failure is an answered tool error, the one ending that neither
// its stack nor the usual checks of frameworks take for a reason to call again, however
// much it may repeat.
func TestUnknownIsNotRunAgain(t *testing.T) {
	f := start(t, rules(t))
	f.flaky.Always("pay", middlewaretest.Reset().Executed())
	var last *observe.Record
	eager := middleware.New(&middleware.Options{
		Policy:   &policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{Safety: policy.Idempotent}}}},
		OnRecord: func(_ context.Context, r *observe.Record) { last = r },
	})
	a := f.agent(eager, "")
	res, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "flaky_pay"})
	for _, sentinel := range []error{io.EOF, io.ErrUnexpectedEOF, mcp.ErrConnectionClosed, mcp.ErrSessionMissing} {
		if errors.Is(err, sentinel) {
			t.Errorf("a framework sees %v", sentinel)
		}
	}
	if err != nil || !res.IsError || last.Outcome != observe.ToolError || len(last.Attempts) != 1 {
		t.Errorf("%v, %+v, record %+v", err, res, last)
	}
	if n := f.flaky.Effects("pay"); n != 1 {
		t.Errorf("%d effects", n)
	}
}

// The agent's key is the upstream call's, and its intent is in it: the same intent, from
// another process of the agent that remembers nothing, takes effect once.
func TestKeyTravels(t *testing.T) {
	f := start(t, rules(t))
	f.agent(nil, "").call(t.Context(), "flaky_pay_keyed", nil, mcp.Meta{idempotency.MetaKey: "key-of-the-agent"})
	if n := f.flaky.EffectsByKey("pay_keyed")["key-of-the-agent"]; n != 1 {
		t.Errorf("keys %v", f.flaky.EffectsByKey("pay_keyed"))
	}

	f.flaky.Script("pay", middlewaretest.Reset().Executed())
	ctx := idempotency.WithIntent(t.Context(), "session-1/call-7")
	var told []report
	for range 2 {
		told = append(told, toldIn(t, f.agent(middleware.New(nil), "").call(ctx, "flaky_pay", nil, nil)))
	}
	if n := f.flaky.Effects("pay"); n != 1 || told[0].Delivery != observe.Unknown || told[1].Outcome != observe.Blocked || told[1].RepeatSafe {
		t.Errorf("%d effects, told %+v", n, told)
	}
	want := idempotency.DeriveKey("", "session-1/call-7", "gateway", "flaky_pay")
	if keys := f.flaky.EffectsByKey("pay"); keys[want] != 1 {
		t.Errorf("keys %v, want that of the intent, %s", keys, want)
	}
}

func toldIn(t *testing.T, res *mcp.CallToolResult) report { t.Helper(); return told(t, res) }

// A keyed call in doubt is harmless to repeat only under its key, which the model does
// not choose: an agent that brought one is not told that a repeat is safe.
func TestKeyedDoubtIsNotSafe(t *testing.T) {
	f := start(t, rules(t))
	f.flaky.Always("pay_keyed", middlewaretest.Reset().Executed())
	res := f.agent(middleware.New(nil), "").call(t.Context(), "flaky_pay_keyed", nil, nil)
	if got := told(t, res); got.Delivery != observe.Unknown || got.RepeatSafe || strings.Contains(text(res), "safe to call it again") {
		t.Errorf("%+v: %q", got, text(res))
	}
}

// Users are kept apart: the same key of another user is another call, and a call in doubt
// holds back its own user's equal calls alone.
func TestUsersAreKeptApart(t *testing.T) {
	f := start(t, rules(t))
	meta := mcp.Meta{idempotency.MetaKey: "call-1"}
	ann, bob := f.agent(nil, "ann"), f.agent(nil, "bob")
	for _, a := range []*agent{ann, bob, bob} {
		if res := a.call(t.Context(), "flaky_pay_keyed", nil, meta); res.IsError {
			t.Errorf("isError: %q", text(res))
		}
	}
	if keys := f.flaky.EffectsByKey("pay_keyed"); len(keys) != 2 || f.flaky.Effects("pay_keyed") != 2 {
		t.Errorf("effects by key: %v", keys)
	}

	f.flaky.Script("pay", middlewaretest.Reset().Executed())
	var got []observe.Outcome
	for _, a := range []*agent{ann, ann, bob} {
		got = append(got, told(t, a.call(t.Context(), "flaky_pay", nil, nil)).Outcome)
	}
	if !slices.Equal(got, []observe.Outcome{observe.NetworkError, observe.Blocked, ""}) {
		t.Errorf("ann, ann, bob: %q", got)
	}
}

// One dead upstream does not slow the others: while it holds every call to it, the others
// answer as fast as before; once its breaker is open it holds nobody.
func TestDeadUpstreamSlowsNobody(t *testing.T) {
	const limit = 2 * time.Second // of an attempt at the dead one
	f := start(t, rules(t, policy.Rule{Settings: policy.Settings{Limits: policy.Limits{Attempt: limit}}}))
	a := f.agent(nil, "")
	f.flaky.Always("pay", middlewaretest.Hang())

	var dead sync.WaitGroup
	began := time.Now()
	for i := range 8 {
		dead.Go(func() { a.call(t.Context(), "flaky_pay", map[string]any{"i": i}, nil) })
	}
	f.eventually("the dead upstream holds its calls", func() bool { return f.flaky.Posts("pay") == 8 })
	const calls = 20
	var slowest time.Duration
	for range calls {
		for _, tool := range []string{"fs_read_file", "every_read_weather"} {
			at := time.Now()
			if res := a.call(t.Context(), tool, map[string]any{"path": "a"}, nil); res.IsError {
				t.Errorf("%s: %q", tool, text(res))
			}
			slowest = max(slowest, time.Since(at))
		}
	}
	meanwhile := time.Since(began)
	dead.Wait()
	held := time.Since(began)
	t.Logf("%d calls to the others in %s, the slowest in %s, while 8 calls were held for %s", 2*calls, meanwhile, slowest, held)
	if slowest > limit/2 || meanwhile > held {
		t.Errorf("the dead upstream slowed the others")
	}

	at := time.Now()
	res := a.call(t.Context(), "flaky_pay", map[string]any{"i": 99}, nil)
	if got := told(t, res); got.Outcome != observe.BreakerOpen || got.Delivery != observe.NotSent || got.RetryAfterMs == 0 || time.Since(at) > limit/2 {
		t.Errorf("after %s: %+v", time.Since(at), got)
	}
	if res := a.call(t.Context(), "every_pay", nil, nil); res.IsError {
		t.Errorf("another upstream's tool of the same name: %q", text(res))
	}
}

// An upstream that refuses connections opens its own breaker, for all of its tools, and
// nobody else's.
func TestDownUpstreamHasItsOwnBreaker(t *testing.T) {
	f := start(t, rules(t))
	a := f.agent(nil, "")
	f.flaky.Close()
	// The first call may still be written into a connection that is closed already.
	_ = a.call(t.Context(), "flaky_pay", map[string]any{"i": 1}, nil)
	if got := told(t, a.call(t.Context(), "flaky_pay", map[string]any{"i": 2}, nil)); got.Outcome != observe.NetworkError && got.Outcome != observe.BreakerOpen || got.Delivery != observe.NotSent || !got.RepeatSafe {
		t.Errorf("a call to a closed port: %+v", got)
	}
	if got := told(t, a.call(t.Context(), "flaky_send_mail", nil, nil)); got.Outcome != observe.BreakerOpen || got.Server != "flaky" {
		t.Errorf("another tool: %+v", got)
	}
	for _, tool := range []string{"every_pay", "fs_read_file"} {
		if res := a.call(t.Context(), tool, map[string]any{"path": "a"}, nil); res.IsError {
			t.Errorf("%s: %q", tool, text(res))
		}
	}
}

// A process that dies is started again, and nothing else notices. Until then a call to it
// is not sent.
func TestProcessIsStartedAgain(t *testing.T) {
	f := start(t, rules(t))
	a := f.agent(nil, "")
	if got := told(t, a.call(t.Context(), "fs_die", map[string]any{"path": ""}, nil)); got.Delivery != observe.Unknown || got.RepeatSafe {
		t.Errorf("the call that it died of: %+v", got)
	}
	if got := told(t, a.call(t.Context(), "fs_read_file", map[string]any{"path": "a"}, nil)); got.Outcome != observe.SessionLost || got.Delivery != observe.NotSent {
		t.Errorf("a call before it is back: %+v", got)
	}
	if got := told(t, a.call(t.Context(), "fs_die", map[string]any{"path": ""}, nil)); got.Outcome != observe.Blocked {
		t.Errorf("the call that it died of, again: %+v", got)
	}
	f.eventually("it is back", func() bool { return strings.Count(f.logged(), "fs: connected") == 2 })
	if res := a.call(t.Context(), "fs_read_file", map[string]any{"path": "a"}, nil); text(res) != "content of a" {
		t.Errorf("%q", text(res))
	}
}

// An upstream that is down at first is taken in when it is there, and agents are told.
func TestLateUpstream(t *testing.T) {
	late := middlewaretest.NewServer(nil)
	t.Cleanup(late.Close)
	late.ScriptPOSTs(503, 503, 503, 503, 503, 503)
	f := &fixture{t: t}
	f.serve(rules(t), []string{"late=" + late.URL()})
	if !strings.Contains(f.logged(), "again in") {
		t.Fatalf("it was never down:\n%s", f.logged())
	}
	if res := f.agent(nil, "").call(t.Context(), "late_read_weather", nil, nil); res.IsError {
		t.Errorf("%q", text(res))
	}
}

// Tools come and go with the upstream's list.
func TestToolListFollows(t *testing.T) {
	s := middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true, StandaloneSSE: true})
	t.Cleanup(s.Close)
	f := &fixture{t: t}
	f.serve(rules(t), []string{"every=" + s.URL()})
	a := f.agent(nil, "")
	f.eventually("the gateway listens", func() bool { return s.Subscribers() > 0 })
	s.SetTool(middlewaretest.Tool{Name: "brand_new"})
	s.SetTool(middlewaretest.Tool{Name: "odd", InputSchema: json.RawMessage(`{"type":"string"}`)})
	s.RemoveTool("pay")
	s.NotifyToolsChanged()
	f.eventually("the list has changed", func() bool {
		res, err := a.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		has := func(name string) bool {
			return slices.ContainsFunc(res.Tools, func(t *mcp.Tool) bool { return t.Name == name })
		}
		return has("every_brand_new") && !has("every_pay") && !has("every_odd")
	})
}

// An upstream's progress reaches the agent that asked for it, under its own token, while
// the call is under way.
func TestProgressIsPassedOn(t *testing.T) {
	f := start(t, rules(t))
	tokens := make(chan any, 10)
	arrived := make(chan struct{})
	f.every.SetTool(middlewaretest.Tool{Name: "progress", Streams: true, Run: func(_ context.Context, c middlewaretest.Call) middlewaretest.Result {
		c.Progress(1, 2)
		select {
		case <-arrived:
			return middlewaretest.Result{Text: "done"}
		case <-time.After(10 * time.Second):
			return middlewaretest.Result{Text: "nobody was told", IsError: true}
		}
	}})
	a := f.connect(nil, as{}, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) {
		tokens <- n.Params.ProgressToken
		close(arrived)
	}})
	params := &mcp.CallToolParams{Name: "every_progress", Meta: mcp.Meta{}}
	params.SetProgressToken("mine")
	res, err := a.CallTool(t.Context(), params)
	if err != nil || res.IsError {
		t.Fatalf("%v, %+v", err, res)
	}
	if token := <-tokens; token != "mine" {
		t.Errorf("token %v", token)
	}
}

// An upstream that asks the user has nobody to ask here: that is told as it is.
func TestQuestionsEndHere(t *testing.T) {
	f := start(t, rules(t))
	res := f.agent(nil, "").call(t.Context(), "flaky_ask", nil, nil)
	if got := told(t, res); !res.IsError || got.Delivery != observe.Refused || got.Code != -32021 || f.flaky.Effects("ask") != 0 {
		t.Errorf("%+v %q", got, text(res))
	}
}

// A call that its agent gives up, or whose connection to the agent breaks, goes on: what
// becomes of it is written down, and the agent that comes again with its key is told.
func TestGivenUpCallIsFinished(t *testing.T) {
	for name, connect := range map[string]func(f *fixture) *agent{
		"2026-07-28": func(f *fixture) *agent { return f.agent(nil, "") },
		"2025-11-25": (*fixture).legacyAgent,
	} {
		f := start(t, rules(t))
		f.flaky.Script("pay", middlewaretest.Late(300*time.Millisecond))
		meta := mcp.Meta{idempotency.MetaKey: "call-1"}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			f.eventually("the call is under way", func() bool { return f.flaky.Posts("pay") == 1 })
			cancel()
		}()
		if _, err := connect(f).CallTool(ctx, &mcp.CallToolParams{Name: "flaky_pay", Meta: meta}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		res := connect(f).call(t.Context(), "flaky_pay", nil, meta)
		if res.IsError || res.Meta[idempotency.MetaReplay] == nil || f.flaky.Effects("pay") != 1 {
			t.Errorf("%s: %+v after %d effects", name, res, f.flaky.Effects("pay"))
		}
	}
}
