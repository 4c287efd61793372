package middleware_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// versions are the server's options for the protocol versions that matter.
var versions = map[string]middlewaretest.Options{
	"2026-07-28": {},
	"2025-11-25": {Version: middlewaretest.Version20251125, Sessions: true},
}

// diary is an observer that writes down what it is told.
type diary struct {
	mu     sync.Mutex
	lines  []string
	calls  []observe.CallStart
	starts []observe.AttemptStart
	ends   []*observe.AttemptEnd
}

func (d *diary) add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

type layerKey struct{}

func (d *diary) observer() *observe.Observer {
	return &observe.Observer{
		SessionStarted: func(_ context.Context, s observe.SessionStart) func(error) {
			d.add("session %s", s.ProtocolVersion)
			return func(error) { d.add("session ended") }
		},
		CallStarted: func(ctx context.Context, s observe.CallStart) (context.Context, func(*observe.Record)) {
			d.add("call %s", s.Tool)
			d.calls = append(d.calls, s)
			return context.WithValue(ctx, layerKey{}, "call"), func(r *observe.Record) { d.add("call ended %s", r.Outcome) }
		},
		AttemptStarted: func(ctx context.Context, s observe.AttemptStart) (context.Context, map[string]string, func(*observe.AttemptEnd)) {
			d.add("attempt %d in %v", s.Number, ctx.Value(layerKey{}))
			d.starts = append(d.starts, s)
			meta := map[string]string{"traceparent": fmt.Sprintf("attempt %d", s.Number)}
			return context.WithValue(ctx, layerKey{}, "attempt"), meta, func(e *observe.AttemptEnd) {
				d.add("attempt ended %s %d", e.Outcome, e.HTTPStatus)
				d.ends = append(d.ends, e)
			}
		},
		BreakerChanged: func(b observe.BreakerChange) { d.add("breaker %q %s to %s", b.Tool, b.From, b.To) },
	}
}

// observedRig connects a client whose calls an observer follows.
func observedRig(t *testing.T, so middlewaretest.Options, o *observe.Observer, records func(context.Context, *observe.Record)) *rig {
	t.Helper()
	r := &rig{t: t, server: middlewaretest.NewServer(&so)}
	t.Cleanup(r.server.Close)
	r.stack = middleware.New(&middleware.Options{
		Policy: &policy.Policy{Rules: append(classes(), policy.Rule{Name: "quick", Settings: policy.Settings{
			Retry: policy.Retry{Backoff: time.Millisecond}, Breaker: policy.Breaker{Failures: 3},
		}})},
		OnRecord: records,
		Observer: o,
	})
	r.session = r.connect(t, r.stack)
	return r
}

// sentMeta is a member of _meta of each tools/call that the server got.
func sentMeta(s *middlewaretest.Server, name string) (values []string) {
	for _, e := range s.Entries() {
		if e.Method == "tools/call" {
			values = append(values, string(e.Meta[name]))
		}
	}
	return values
}

// An observer hears of session, call and attempts in their order, and what it puts
// into a context and into _meta is there.
func TestObserverFollowsACall(t *testing.T) {
	for name, so := range versions {
		t.Run(name, func(t *testing.T) {
			var d diary
			var inRecord any
			r := observedRig(t, so, d.observer(), func(ctx context.Context, _ *observe.Record) { inRecord = ctx.Value(layerKey{}) })
			r.server.Script("read_weather", middlewaretest.Status(503))
			params := &mcp.CallToolParams{Name: "read_weather", Meta: mcp.Meta{"baggage": "mine"}}
			if _, err := r.session.CallTool(t.Context(), params); err != nil {
				t.Fatal(err)
			}
			_ = r.session.Close()
			want := []string{
				"session " + name, "call read_weather",
				"attempt 1 in call", "attempt ended HTTP_ERROR 503",
				"attempt 2 in call", "attempt ended TOOL_SUCCESS 200",
				"call ended TOOL_SUCCESS", "session ended",
			}
			eventually(t, func() bool { return len(d.read()) == len(want) })
			if got := d.read(); !slices.Equal(got, want) {
				t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if inRecord != "call" {
				t.Errorf("OnRecord's context holds %v", inRecord)
			}
			c := d.calls[0]
			if c.ProtocolVersion != name || c.Endpoint != r.server.URL() || c.Safety != "read_only" || (c.SessionID != "") != so.Sessions {
				t.Errorf("call %+v", c)
			}
			if w := d.starts[1].Waits; len(d.starts[0].Waits) != 0 || len(w) != 1 || w[0].For != observe.WaitBackoff {
				t.Errorf("waits %v, then %v", d.starts[0].Waits, w)
			}
			for i, e := range d.ends {
				if e.HTTPVersion != "1.1" || e.RequestID == "" || e.Delivery == "" {
					t.Errorf("attempt %d: %+v", i+1, e)
				}
			}
			if got := sentMeta(r.server, "traceparent"); !slices.Equal(got, []string{`"attempt 1"`, `"attempt 2"`}) {
				t.Errorf("traceparent %q", got)
			}
			if got := sentMeta(r.server, "baggage"); !slices.Equal(got, []string{`"mine"`, `"mine"`}) {
				t.Errorf("baggage %q", got)
			}
			if _, leaked := params.Meta["traceparent"]; leaked {
				t.Error("the caller's params were changed")
			}
		})
	}
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("it did not come to pass in five seconds")
}

func TestObserverLeavesTheCallersMeta(t *testing.T) {
	var d diary
	r := observedRig(t, versions["2026-07-28"], d.observer(), nil)
	_, err := r.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_weather", Meta: mcp.Meta{"traceparent": "mine"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := sentMeta(r.server, "traceparent"); !slices.Equal(got, []string{`"mine"`}) {
		t.Errorf("traceparent %q", got)
	}
	if got := d.starts[0].Meta["traceparent"]; got != "mine" {
		t.Errorf("the observer was shown %v", got)
	}
}

func TestObserverHearsOfHTTP2(t *testing.T) {
	var d diary
	r := observedRig(t, middlewaretest.Options{HTTP2: true}, d.observer(), nil)
	if _, err := pays(t.Context(), r.session); err != nil {
		t.Fatal(err)
	}
	if len(d.ends) != 1 || d.ends[0].HTTPVersion != "2" {
		t.Errorf("attempts %+v", d.ends)
	}
}

// What was refused here was no attempt; a breaker tells its changes.
func TestObserverHearsOfBreakersAndRefusals(t *testing.T) {
	var d diary
	r := observedRig(t, versions["2026-07-28"], d.observer(), nil)
	r.server.Always("pay", middlewaretest.Status(500))
	for range 4 {
		_, _ = pays(t.Context(), r.session)
	}
	got := d.read()
	if n := count(got, "attempt ended HTTP_ERROR 500"); n != 3 {
		t.Errorf("%d attempts: %q", n, got)
	}
	if !slices.Contains(got, `breaker "pay" closed to open`) || !slices.Contains(got, "call ended BREAKER_OPEN") {
		t.Errorf("told %q", got)
	}
}

// pays makes a payment unlike any other.
func pays(ctx context.Context, s *mcp.ClientSession) (*mcp.CallToolResult, error) {
	return s.CallTool(ctx, &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"order": time.Now().UnixNano()}})
}

func count(all []string, s string) (n int) {
	for _, x := range all {
		if x == s {
			n++
		}
	}
	return n
}

// Whatever an observer does, the call goes on.
func TestObserverCannotHarmACall(t *testing.T) {
	boom := func() { panic("observer") }
	for name, o := range map[string]*observe.Observer{
		"empty": {},
		"panics at the start": {
			SessionStarted: func(context.Context, observe.SessionStart) func(error) { boom(); return nil },
			CallStarted: func(context.Context, observe.CallStart) (context.Context, func(*observe.Record)) {
				boom()
				return nil, nil
			},
			AttemptStarted: func(context.Context, observe.AttemptStart) (context.Context, map[string]string, func(*observe.AttemptEnd)) {
				boom()
				return nil, nil, nil
			},
			BreakerChanged: func(observe.BreakerChange) { boom() },
		},
		"panics at the end": {
			SessionStarted: func(context.Context, observe.SessionStart) func(error) { return func(error) { boom() } },
			CallStarted: func(context.Context, observe.CallStart) (context.Context, func(*observe.Record)) {
				return nil, func(*observe.Record) { boom() }
			},
			AttemptStarted: func(context.Context, observe.AttemptStart) (context.Context, map[string]string, func(*observe.AttemptEnd)) {
				return nil, nil, func(*observe.AttemptEnd) { boom() }
			},
		},
		"returns nothing": {
			SessionStarted: func(context.Context, observe.SessionStart) func(error) { return nil },
			CallStarted: func(context.Context, observe.CallStart) (context.Context, func(*observe.Record)) {
				return nil, nil
			},
			AttemptStarted: func(context.Context, observe.AttemptStart) (context.Context, map[string]string, func(*observe.AttemptEnd)) {
				return nil, nil, nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			records := 0
			r := observedRig(t, versions["2025-11-25"], o, func(context.Context, *observe.Record) { records++ })
			r.server.Script("read_weather", middlewaretest.Status(503))
			if _, err := r.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_weather"}); err != nil {
				t.Error(err)
			}
			r.server.Script("pay", middlewaretest.Status(500), middlewaretest.Status(500), middlewaretest.Status(500))
			for range 3 {
				_, _ = pays(t.Context(), r.session)
			}
			if n := r.server.Effects("pay"); n != 0 || records != 4 {
				t.Errorf("%d effects, %d records", n, records)
			}
		})
	}
}

// A panic below still ends what was announced, and goes on.
func TestObserverHearsOfPanics(t *testing.T) {
	var ended []string
	stack := middleware.New(&middleware.Options{Observer: &observe.Observer{
		CallStarted: func(ctx context.Context, _ observe.CallStart) (context.Context, func(*observe.Record)) {
			return ctx, func(r *observe.Record) { ended = append(ended, fmt.Sprint("call ", r)) }
		},
		AttemptStarted: func(ctx context.Context, _ observe.AttemptStart) (context.Context, map[string]string, func(*observe.AttemptEnd)) {
			return ctx, nil, func(e *observe.AttemptEnd) { ended = append(ended, fmt.Sprint("attempt ", e)) }
		},
	}})
	handler := func(context.Context, string, mcp.Request) (mcp.Result, error) { panic("below") }
	var next mcp.MethodHandler = handler
	for _, m := range slices.Backward(stack.Middleware()) {
		next = m(next)
	}
	func() {
		defer func() {
			if p := recover(); p != "below" {
				t.Errorf("recovered %v", p)
			}
		}()
		_, _ = next(t.Context(), "tools/call", &mcp.ClientRequest[mcp.Params]{Params: &mcp.CallToolParams{Name: "pay"}})
	}()
	if !slices.Equal(ended, []string{"attempt <nil>", "call <nil>"}) {
		t.Errorf("ended %q", ended)
	}
}
