package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// busyCode is what the servers of these tests answer when they have no time; by the
// rules the tools do not run then.
const busyCode = -32000

// busy are rules for such servers: nothing but the server's own wait is waited.
func busy(r policy.Retry) policy.Rule {
	r.Backoff, r.RefusedCodes, r.ToolErrors = -1, []int64{busyCode}, []string{"busy"}
	return policy.Rule{Name: "busy", Settings: policy.Settings{Retry: r}}
}

func busyError(id, data string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"busy","data":%s}}`, id, busyCode, data)
}

func busyResult(id, meta string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"busy"}],"isError":true,"_meta":%s}}`, id, meta)
}

// TestWaitsAreKept: whatever dialect a wait is told in, the call comes back after it and
// not before; what the policy does not read is no wait.
func TestWaitsAreKept(t *testing.T) {
	const none = time.Duration(0)
	none0, only := []string{}, []string{"retry_after"}
	data := func(data string) func(posted) *http.Response {
		return func(p posted) *http.Response { return jsonAnswer(200, busyError(string(p.id), data)) }
	}
	head := func(status int, header ...string) func(posted) *http.Response {
		return func(posted) *http.Response { return jsonAnswer(status, "", header...) }
	}
	for name, c := range map[string]struct {
		tool    string
		signals []string
		answer  func(posted) *http.Response
		wait    time.Duration
	}{
		"Retry-After":              {"pay", nil, head(429, "Retry-After", "3"), 3 * time.Second},
		"Retry-After alone":        {"pay", only, head(429, "Retry-After", "3", "Retry-After-Ms", "9000"), 3 * time.Second},
		"Retry-After unread":       {"pay", none0, head(429, "Retry-After", "3"), none},
		"retry-after-ms":           {"pay", nil, head(429, "Retry-After-Ms", "1500"), 1500 * time.Millisecond},
		"retry-after-ms unread":    {"pay", only, head(429, "Retry-After-Ms", "1500"), none},
		"the longer counts":        {"pay", nil, head(429, "Retry-After", "1", "Retry-After-Ms", "1500"), 1500 * time.Millisecond},
		"x-ratelimit-reset":        {"pay", nil, head(429, "X-Ratelimit-Reset-Requests", "4s"), 4 * time.Second},
		"x-ratelimit-reset, 503":   {"read_weather", nil, head(503, "X-Ratelimit-Reset", "4"), 4 * time.Second},
		"x-ratelimit-reset, 502":   {"read_weather", nil, head(502, "X-Ratelimit-Reset", "4"), none},
		"x-ratelimit-reset unread": {"pay", only, head(429, "X-Ratelimit-Reset", "4"), none},
		"data":                     {"pay", nil, data(`{"retryAfter":2}`), 2 * time.Second},
		"data in ms":               {"read_weather", nil, data(`{"retry_after_ms":250}`), 250 * time.Millisecond},
		"data with retryDelay":     {"pay", nil, data(`{"details":[{"retryDelay":"1.5s"}]}`), 1500 * time.Millisecond},
		"data unread":              {"pay", only, data(`{"retryAfter":2}`), none},
		"data without a wait":      {"pay", nil, data(`"later"`), none},
		"data, and a header": {"pay", nil, func(p posted) *http.Response {
			return jsonAnswer(200, busyError(string(p.id), `{"retryAfter":2}`), "Retry-After", "3")
		}, 3 * time.Second},
		"data of a refusal, not reset": {"pay", nil, func(p posted) *http.Response {
			return jsonAnswer(429, busyError(string(p.id), `{"retryAfter":2}`), "X-Ratelimit-Reset", "50")
		}, 2 * time.Second},
		"data of an event": {"pay", nil, func(p posted) *http.Response {
			return jsonAnswer(200, "data: "+busyError(string(p.id), `{"retryAfter":2}`)+"\n\n", "Content-Type", "text/event-stream")
		}, 2 * time.Second},
		"header of an event stream": {"pay", nil, func(p posted) *http.Response {
			return jsonAnswer(200, "data: "+busyError(string(p.id), `{"retryAfter":2}`)+"\n\n", "Content-Type", "text/event-stream", "Retry-After", "3")
		}, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			test := func(within time.Duration) (posts []posted, took time.Duration, rec *observe.Record) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, func(n int, p posted) (*http.Response, error) {
						if n == 1 {
							return c.answer(p), nil
						}
						return p.answer()
					}, busy(policy.Retry{Signals: c.signals}))
					defer b.session.Close()
					start := time.Now()
					_, rec, _ = b.call(c.tool, within)
					posts, took = b.wire.posts, time.Since(start)
				})
				return posts, took, rec
			}
			if posts, _, rec := test(time.Minute); len(posts) != 2 || posts[1].at.Sub(posts[0].at) != c.wait || rec.Outcome != observe.ToolSuccess {
				t.Errorf("%d POSTs, record %+v", len(posts), rec)
			}
			if c.wait == none {
				return
			}
			posts, took, rec := test(c.wait - time.Millisecond)
			if len(posts) != 1 || took != 0 || rec.RetryAfterMs == nil || *rec.RetryAfterMs != c.wait.Milliseconds() {
				t.Errorf("without the time for it: %d POSTs, after %v, record %+v", len(posts), took, rec)
			}
		})
	}
}

// forbidding are answers that say not to send the call again.
var forbidding = map[string]func(posted) *http.Response{
	"header": func(p posted) *http.Response {
		return jsonAnswer(200, busyError(string(p.id), "null"), "Stripe-Should-Retry", "false")
	},
	"data": func(p posted) *http.Response {
		return jsonAnswer(200, busyError(string(p.id), `{"retryable":false,"retryAfter":1}`))
	},
	"data of a refusal": func(p posted) *http.Response {
		return jsonAnswer(429, busyError(string(p.id), `{"doNotRetry":true}`), "Retry-After", "1")
	},
	"data of an event": func(p posted) *http.Response {
		return jsonAnswer(200, "data: "+busyError(string(p.id), `{"should_retry":false}`)+"\n\n", "Content-Type", "text/event-stream")
	},
	"_meta": func(p posted) *http.Response {
		return jsonAnswer(200, busyResult(string(p.id), `{"com.example/do-not-retry":true}`))
	},
	"_meta of an event": func(p posted) *http.Response {
		return jsonAnswer(200, "data: "+busyResult(string(p.id), `{"retryable":false}`)+"\n\n", "Content-Type", "text/event-stream")
	},
	"_meta of what is no result": func(p posted) *http.Response {
		return jsonAnswer(200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"_meta":{"retryable":false}}}`, p.id))
	},
}

// TestDoNotRetryAlwaysWins, whichever signals are read.
func TestDoNotRetryAlwaysWins(t *testing.T) {
	for name, answer := range forbidding {
		for _, signals := range [][]string{nil, {}} {
			t.Run(fmt.Sprint(name, signals), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, func(_ int, p posted) (*http.Response, error) { return answer(p), nil },
						busy(policy.Retry{Signals: signals, Outcomes: []string{"INVALID_TOOL_RESULT"}}))
					defer b.session.Close()
					_, rec, _ := b.call("read_weather", 0)
					if b.wire.count() != 1 || rec.Decision.Reason != "the server asks not to repeat the call" {
						t.Errorf("%d POSTs, %+v", b.wire.count(), rec.Decision)
					}
				})
			})
		}
	}
}

// TestDoNotRetryAfterALook: a host that finds that a call did not happen does not have
// it sent again against the server's word; the next one goes out.
func TestDoNotRetryAfterALook(t *testing.T) {
	onVersions(t, func(t *testing.T, version string) {
		r := newRig(t, middlewaretest.Options{Version: version}, busy(policy.Retry{}))
		var rec *observe.Record
		looked := 0
		r.stack = middleware.New(&middleware.Options{
			OnRecord: func(_ context.Context, got *observe.Record) { rec = got },
			Reconcile: []middleware.Reconciliation{{Look: func(context.Context, *middleware.Unresolved) (middleware.Finding, *mcp.CallToolResult, error) {
				looked++
				return middleware.DidNotHappen, nil, nil
			}}},
		})
		session := r.connect(t, r.stack)
		r.server.Script("pay", middlewaretest.Fault{Status: 500, Header: http.Header{"X-Should-Retry": {"false"}}})
		ctx := idempotency.WithIntent(t.Context(), "i")
		pay := &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"size": 10}}
		if _, err := session.CallTool(ctx, pay); err == nil || looked != 1 || r.server.Posts("pay") != 1 || rec.Ledger.Settled != "failed" {
			t.Errorf("looked %d times, %d POSTs, err %v, record %+v", looked, r.server.Posts("pay"), err, rec)
		}
		if _, err := session.CallTool(ctx, pay); err != nil || r.server.Posts("pay") != 2 || r.server.Effects("pay") != 1 {
			t.Errorf("%d POSTs, %d effects, err %v", r.server.Posts("pay"), r.server.Effects("pay"), err)
		}
	})
}

// TestSignalsOfServers: both ways of answering, on both versions and over lines.
func TestSignalsOfServers(t *testing.T) {
	const wait = 300 * time.Millisecond
	waits := busyError("%id%", `{"retryAfterMs":300}`)
	forbids := busyError("%id%", `{"retryable":false,"retryAfterMs":300}`)
	forbidsResult := busyResult("%id%", `{"retryable":false}`)
	onVersions(t, func(t *testing.T, version string) {
		for name, asEvent := range map[string]bool{"document": false, "stream": true} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t, middlewaretest.Options{Version: version}, busy(policy.Retry{}))
				script := func(tool, body string) {
					f := middlewaretest.Fault{Name: "busy", Status: 200, Body: body}
					if asEvent {
						f = f.AsEvent()
					}
					r.server.Script(tool, f)
				}
				script("pay", waits)
				if _, rec, err := r.call("pay", time.Minute); err != nil || r.server.Effects("pay") != 1 || r.server.Posts("pay") != 2 || rec.DurationMs < 300 {
					t.Errorf("%d effects, %d POSTs, err %v, record %+v", r.server.Effects("pay"), r.server.Posts("pay"), err, rec)
				}
				for i, body := range []string{forbids, forbidsResult} {
					script("read_weather", body)
					if _, rec, _ := r.call("read_weather", time.Minute); r.server.Effects("read_weather") != 0 || r.server.Posts("read_weather") != i+1 {
						t.Errorf("%d effects, %d POSTs, record %+v", r.server.Effects("read_weather"), r.server.Posts("read_weather"), rec)
					}
				}
			})
		}
		t.Run("lines", func(t *testing.T) {
			r, s := newPipeRig(t, version, busy(policy.Retry{Repeats: 1}))
			start := time.Now()
			_, rec, _ := r.call("read_it", orders{Say: []string{waits}, Silent: true}, 20*time.Second)
			if s.count("read_it") != 2 || time.Since(start) < wait || rec.RetryAfterMs == nil || *rec.RetryAfterMs != 300 {
				t.Errorf("%d effects after %v, record %+v", s.count("read_it"), time.Since(start), rec)
			}
			for i, line := range []string{forbids, forbidsResult} {
				_, rec, _ := r.call("read_it", orders{Say: []string{line}, Silent: true}, 20*time.Second)
				if s.count("read_it") != 3+i || rec.Decision.Reason != "the server asks not to repeat the call" {
					t.Errorf("%d effects, %+v", s.count("read_it"), rec.Decision)
				}
			}
		})
	})
}

// TestSignalsWithoutAWire: the result and the error are all there is.
func TestSignalsWithoutAWire(t *testing.T) {
	rules := &middleware.Options{Policy: &policy.Policy{Rules: append([]policy.Rule{busy(policy.Retry{Repeats: 1})}, classes()...)}}
	t.Run("stack", func(t *testing.T) { checkUnwired(t, middleware.New(rules).Middleware()) })
	t.Run("loop alone", func(t *testing.T) { checkUnwired(t, []mcp.Middleware{middleware.Retry(rules)}) })
}

func checkUnwired(t *testing.T, layers []mcp.Middleware) {
	synctest.Test(t, func(t *testing.T) {
		var sent []time.Time
		var res mcp.Result
		var err error
		handler := func(context.Context, string, mcp.Request) (mcp.Result, error) {
			sent = append(sent, time.Now())
			return res, err
		}
		chained := mcp.MethodHandler(handler)
		for _, layer := range slices.Backward(layers) {
			chained = layer(chained)
		}
		call := func(answer mcp.Result, failure error) {
			sent, res, err = nil, answer, failure
			_, _ = chained(t.Context(), "tools/call", &mcp.ClientRequest[mcp.Params]{Params: &mcp.CallToolParams{Name: "read_it"}})
		}
		if call(nil, sdkError(busyCode, `{"retryAfter":2}`)); len(sent) != 2 || sent[1].Sub(sent[0]) != 2*time.Second {
			t.Errorf("sent at %v", sent)
		}
		if call(nil, sdkError(busyCode, `{"retryable":false}`)); len(sent) != 1 {
			t.Errorf("sent at %v", sent)
		}
		refused := &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "busy"}}, Meta: mcp.Meta{"retryable": false}}
		if call(refused, nil); len(sent) != 1 {
			t.Errorf("sent at %v", sent)
		}
	})
}

// announced is what a request says of its attempt.
func announced(meta map[string]any) string {
	return fmt.Sprint(meta[policy.MetaAttempt], " ", meta[policy.MetaTimeLeft])
}

// TestAnnouncement: each attempt says its number and the time that is left, where the
// policy says so, and the caller's parameters stay as they are.
func TestAnnouncement(t *testing.T) {
	announce := policy.Rule{Settings: policy.Settings{Retry: policy.Retry{Announce: new(true), Backoff: -1}}}
	for name, c := range map[string]struct {
		rules  []policy.Rule
		within time.Duration
		want   []string
	}{
		"deadline":      {[]policy.Rule{announce}, time.Minute, []string{"1 60000", "2 57000", "3 54000"}},
		"the policy's":  {[]policy.Rule{announce}, 0, []string{"1 600000", "2 597000", "3 594000"}},
		"no deadline":   {[]policy.Rule{announce, {Settings: policy.Settings{Limits: policy.Limits{Call: -1, Attempt: time.Hour}}}}, 0, []string{"1 <nil>", "2 <nil>", "3 <nil>"}},
		"not announced": {nil, time.Minute, []string{"<nil> <nil>"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, func(n int, p posted) (*http.Response, error) {
					time.Sleep(time.Second)
					if n < len(c.want) {
						return jsonAnswer(429, "", "Retry-After", "2"), nil
					}
					return p.answer()
				}, c.rules...)
				defer b.session.Close()
				ctx, cancel := context.WithCancel(t.Context())
				if c.within > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), c.within)
				}
				defer cancel()
				params := &mcp.CallToolParams{Name: "pay", Meta: mcp.Meta{"own": "1"}}
				if _, err := b.session.CallTool(ctx, params); err != nil || announced(params.Meta) != "<nil> <nil>" {
					t.Errorf("err %v, the caller's %v", err, params.Meta)
				}
				var got []string
				keys := map[any]bool{}
				for _, p := range b.wire.posts {
					got = append(got, announced(p.params.Meta))
					keys[p.params.Meta[idempotency.MetaKey]] = p.params.Meta["own"] == "1"
				}
				if fmt.Sprint(got) != fmt.Sprint(c.want) || len(keys) != 1 || keys[nil] {
					t.Errorf("announced %q, want %q; keys %v", got, c.want, keys)
				}
			})
		})
	}
}

// TestAnnouncementAlone: without the middlewares further out, too, the parameters that
// are changed are a copy.
func TestAnnouncementAlone(t *testing.T) {
	rules := &policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{Retry: policy.Retry{Announce: new(true)}}}}}
	var sent mcp.Meta
	handler := middleware.Attempt(&middleware.Options{Policy: rules})(func(_ context.Context, _ string, req mcp.Request) (mcp.Result, error) {
		sent = req.GetParams().GetMeta()
		return &mcp.CallToolResult{}, nil
	})
	params := &mcp.CallToolParams{Name: "pay", Meta: mcp.Meta{policy.MetaTimeLeft: "mine"}}
	_, _ = handler(t.Context(), "tools/call", &mcp.ClientRequest[mcp.Params]{Params: params})
	if announced(sent) != "1 <nil>" || announced(params.Meta) != "<nil> mine" {
		t.Errorf("sent %v, the caller's are %v", sent, params.Meta)
	}
}

// TestAnnouncementOnBothVersions, over HTTP and over lines; reads of lists carry none.
func TestAnnouncementOnBothVersions(t *testing.T) {
	announce := policy.Rule{Settings: policy.Settings{Retry: policy.Retry{Announce: new(true)}}}
	onVersions(t, func(t *testing.T, version string) {
		r := newRig(t, middlewaretest.Options{Version: version}, announce)
		r.server.Script("read_weather", middlewaretest.Status(503))
		if _, _, err := r.call("read_weather", time.Minute); err != nil {
			t.Fatal(err)
		}
		if _, err := r.session.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range r.server.Entries() {
			attempt, left := string(e.Meta[policy.MetaAttempt]), string(e.Meta[policy.MetaTimeLeft])
			if e.Tool == "read_weather" {
				got = append(got, attempt)
			}
			if (attempt != "") != (e.Tool != "") || (left != "") != (e.Tool != "") || left > "60000" {
				t.Errorf("%s %s: attempt %s, %s ms left", e.Method, e.Tool, attempt, left)
			}
		}
		if fmt.Sprint(got) != "[1 2]" {
			t.Errorf("attempts %v", got)
		}
		lines, s := newPipeRig(t, version, announce)
		if _, _, err := lines.call("read_it", orders{}, time.Minute); err != nil {
			t.Fatal(err)
		}
		if meta := s.calls()[0]; meta[policy.MetaAttempt] != 1.0 || meta[policy.MetaTimeLeft] == nil {
			t.Errorf("over lines: %v", meta)
		}
	})
}

// sdkError is how the SDK returns a server's error.
func sdkError(code int64, data string) error {
	return fmt.Errorf("calling %q: %w", "tools/call", &jsonrpc.Error{Code: code, Message: "busy", Data: json.RawMessage(data)})
}
