package middleware_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// servers are the kinds of server that every fault is tried on.
func servers() []middlewaretest.Options {
	return []middlewaretest.Options{
		{Version: middlewaretest.Version20260728},
		{Version: middlewaretest.Version20260728, Stream: true, HTTP2: true},
		{Version: middlewaretest.Version20251125, Sessions: true},
		{Version: middlewaretest.Version20251125, Sessions: true, Stream: true, EventIDs: true, StandaloneSSE: true},
		{Version: middlewaretest.Version20251125, HTTP2: true},
	}
}

func describe(o middlewaretest.Options) string {
	return fmt.Sprintf("%s sessions=%t stream=%t http2=%t", o.Version, o.Sessions, o.Stream, o.HTTP2)
}

// TestEveryFault tries every fault of the catalogue on an unsafe tool, once without
// repeats, to see what one attempt is said to be, and once with the default
// policy, to see that nothing is done twice.
func TestEveryFault(t *testing.T) {
	for _, so := range servers() {
		for _, f := range middlewaretest.Faults() {
			if !f.Applies(&so) {
				continue
			}
			t.Run(describe(so)+"/"+f.Name, func(t *testing.T) {
				t.Parallel()
				checkOutcome(t, so, f)
			})
			t.Run(describe(so)+"/"+f.Name+"/default", func(t *testing.T) {
				t.Parallel()
				checkEffects(t, so, f)
			})
		}
	}
}

// once is a policy for pay that repeats nothing.
func once(f middlewaretest.Fault) policy.Rule {
	r := policy.Rule{Tool: "pay", Settings: policy.Settings{Retry: policy.Retry{Repeats: -1}}}
	if f.Needs&middlewaretest.NeedsLimit != 0 {
		r.MaxResult = middlewaretest.CatalogueResultLimit
	}
	return r
}

func within(f middlewaretest.Fault) time.Duration {
	if f.Needs&middlewaretest.NeedsDeadline != 0 {
		return 400 * time.Millisecond
	}
	return 20 * time.Second
}

func checkOutcome(t *testing.T, so middlewaretest.Options, f middlewaretest.Fault) {
	r := newRig(t, so, once(f))
	beside := r.beside()
	r.server.Script("pay", f)
	limit := within(f)
	late := lateness(limit)
	_, rec, err := r.call("pay", limit)
	if over := late(); over > 150*time.Millisecond {
		t.Errorf("returned %v after its deadline", over)
	}
	want := f.Expected(&so)
	if want.Outcome == string(observe.InputRequired) && !f.EveryRound && rec.PostCount > 1 {
		// The SDK answered the question, and the call went on.
		want = middlewaretest.Expectation{Outcome: string(observe.ToolSuccess), Delivery: string(observe.Answered)}
	}
	if string(rec.Outcome) != want.Outcome || string(rec.Delivery) != want.Delivery {
		t.Errorf("%s, %s; want %s, %s (err %v, record %+v)", rec.Outcome, rec.Delivery, want.Outcome, want.Delivery, err, rec)
	}
	if (err == nil) != rec.Outcome.Usable() {
		t.Errorf("outcome %s with error %v", rec.Outcome, err)
	}
	if n := r.server.Effects("pay"); n > 1 {
		t.Errorf("%d effects", n)
	}
	if err := <-beside; err != nil && !forgets(f) {
		t.Errorf("the call in flight beside it: %v", err)
	}
	r.stillServes(f)
}

func checkEffects(t *testing.T, so middlewaretest.Options, f middlewaretest.Fault) {
	rule := once(f)
	rule.Retry.Repeats = 0
	r := newRig(t, so, rule)
	r.server.Script("pay", f)
	_, rec, err := r.call("pay", within(f))
	if n := r.server.Effects("pay"); n > 1 {
		// 429, 425 and the like after the tool ran are lies that are believed.
		if f.Execute == middlewaretest.Never || f.Expected(&so).Delivery != string(observe.Refused) {
			t.Errorf("%d effects, record %+v, err %v", n, rec, err)
		}
	}
	if rec.Outcome == observe.ToolSuccess && rec.Delivery != observe.Answered {
		t.Errorf("success with delivery %s", rec.Delivery)
	}
	r.stillServes(f)
}

// lateness measures how long after a deadline it is called, beside a timer that was
// set for the same moment: on a busy machine both come late.
func lateness(limit time.Duration) func() time.Duration {
	due := time.Now().Add(limit)
	woke := make(chan time.Duration, 1)
	time.AfterFunc(limit, func() { woke <- time.Since(due) })
	return func() time.Duration {
		over := time.Since(due)
		if over <= 0 {
			return 0
		}
		return over - <-woke
	}
}

// beside keeps a call in flight on the same session and reports how it ended.
func (r *rig) beside() <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := r.session.CallTool(r.t.Context(), &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"ms": 60}})
		done <- err
	}()
	return done
}

// stillServes checks that the session serves a good call.
func (r *rig) stillServes(f middlewaretest.Fault) {
	r.t.Helper()
	if _, rec, err := r.call("read_weather", 20*time.Second); err != nil || rec.Outcome != observe.ToolSuccess {
		r.t.Errorf("a good call afterwards: %v, %+v", err, rec)
	}
}

// forgets reports whether the server really loses the session, which nothing but
// a new handshake cures.
func forgets(f middlewaretest.Fault) bool { return f.ForgetSessions }
