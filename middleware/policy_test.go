package middleware_test

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// set puts rules into use, before those of the built-in tools.
func (b *bench) set(rules ...policy.Rule) {
	b.t.Helper()
	if err := b.stack.SetPolicy(&policy.Policy{Rules: append(rules, classes()...)}); err != nil {
		b.t.Fatal(err)
	}
}

// unrelated changes nothing for the tools of the tests.
var unrelated = policy.Rule{Name: "elsewhere", Tool: "other", Settings: policy.Settings{Breaker: policy.Breaker{Failures: 1}}}

func TestSetPolicyTakesNothingInvalid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, unavailable(1))
		defer b.session.Close()
		bad := &policy.Policy{Rules: []policy.Rule{{Tool: "read_*", Settings: policy.Settings{Safety: "safe"}}}}
		var problem *policy.RuleError
		if err := b.stack.SetPolicy(bad); !errors.As(err, &problem) || problem.Setting != "safety" {
			t.Errorf("error %v", err)
		}
		if _, rec, err := b.call("read_weather", 0); err != nil || rec.Safety != "read_only" || b.wire.count() != 2 {
			t.Errorf("%d POSTs, err %v, record %+v", b.wire.count(), err, rec)
		}
		if err := b.stack.SetPolicy(nil); err != nil {
			t.Fatal(err)
		}
		if _, rec, _ := b.call("read_weather", 0); rec.Safety != "unsafe" || rec.Rule != "default" {
			t.Errorf("without a policy: record %+v", rec)
		}
	})
}

// TestCallsKeepTheirPolicy: what a call may do does not change while it waits, and the
// next one has the new policy.
func TestCallsKeepTheirPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		patient := policy.Rule{Tool: "read_*", Settings: policy.Settings{Retry: policy.Retry{Repeats: 3}}}
		hasty := policy.Rule{Tool: "read_*", Settings: policy.Settings{Retry: policy.Retry{Repeats: -1}, Surface: policy.SurfaceModel}}
		b := newBench(t, func(int, posted) (*http.Response, error) { return jsonAnswer(503, "down"), nil }, patient)
		defer b.session.Close()
		b.wire.call = func(n int, _ posted) (*http.Response, error) {
			if n == 1 {
				b.set(hasty)
			}
			return jsonAnswer(503, "down"), nil
		}
		if _, rec, err := b.call("read_weather", 0); err == nil || b.wire.count() != 4 || rec.ModelText != "" {
			t.Errorf("%d POSTs, err %v, record %+v", b.wire.count(), err, rec)
		}
		if res, rec, err := b.call("read_weather", 0); err != nil || !res.IsError || b.wire.count() != 5 || rec.ModelText == "" {
			t.Errorf("%d POSTs, err %v, record %+v", b.wire.count(), err, rec)
		}
	})
}

// TestLookupKeepsThePolicy: the tool that a call's policy names is asked by that policy,
// and repeated by it.
func TestLookupKeepsThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := policy.Rule{Tool: "pay", Settings: policy.Settings{Reconcile: &policy.Reconcile{
			Tool: "find_payment", Happened: policy.AnswerMatch{Text: "done"},
		}}}
		finds := policy.Rule{Tool: "find_*", Settings: policy.Settings{Safety: policy.ReadOnly}}
		b := newBench(t, nil, asks, finds)
		defer b.session.Close()
		var order []string
		b.wire.call = func(_ int, p posted) (*http.Response, error) {
			order = append(order, p.tool)
			switch {
			case p.tool == "pay":
				b.set()
				return jsonAnswer(500, "down"), nil
			case len(order) == 2:
				return jsonAnswer(503, "down"), nil
			}
			return p.answer()
		}
		_, rec, err := b.call("pay", 0)
		if want := []string{"pay", "find_payment", "find_payment"}; err != nil || !slices.Equal(order, want) || !slices.Equal(findings(rec), []string{"happened"}) {
			t.Errorf("sent %q, err %v, record %+v", order, err, rec)
		}
	})
}

// TestRoundsKeepTheirPolicy: what comes after a question belongs to the call that was
// asked.
func TestRoundsKeepTheirPolicy(t *testing.T) {
	onVersions(t, func(t *testing.T, version string) {
		r := newRig(t, middlewaretest.Options{Version: version}, policy.Rule{Tool: "ask", Settings: policy.Settings{Safety: policy.ReadOnly}})
		r.server.SetTool(middlewaretest.Tool{Name: "ask", Ask: "Go on?"})
		tiny := &policy.Policy{Rules: []policy.Rule{{Tool: "ask", Settings: policy.Settings{MaxResult: 1, Limits: policy.Limits{Attempt: 1}}}}}
		r.onAsk = func() {
			if err := r.stack.SetPolicy(tiny); err != nil {
				t.Error(err)
			}
		}
		if _, rec, err := r.call("ask", time.Minute); err != nil || rec.Safety != "read_only" || r.server.Effects("ask") != 1 {
			t.Errorf("%d effects, err %v, record %+v", r.server.Effects("ask"), err, rec)
		}
		if _, rec, err := r.call("ask", time.Minute); err == nil || rec.Safety != "unsafe" || r.server.Effects("ask") != 1 {
			t.Errorf("%d effects, err %v, record %+v", r.server.Effects("ask"), err, rec)
		}
	})
}

// TestBreakerOutlivesAChange that does not concern it, and no other.
func TestBreakerOutlivesAChange(t *testing.T) {
	for name, down := range map[string]func(posted) (*http.Response, error){
		"tool": func(posted) (*http.Response, error) { return jsonAnswer(500, "down"), nil },
		"server": func(p posted) (*http.Response, error) {
			p.connect(false)
			return nil, errors.New("refused")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				broken := true
				b := newBench(t, func(_ int, p posted) (*http.Response, error) {
					if broken {
						return down(p)
					}
					return p.answer()
				}, never)
				defer b.session.Close()
				for range 5 {
					_, _, _ = b.call("pay", 0)
				}
				broken = false
				b.set(unrelated, never)
				if _, rec, _ := b.call("pay", 0); rec.Outcome != observe.BreakerOpen {
					t.Fatalf("after a change elsewhere: %+v", rec)
				}
				b.set(policy.Rule{Settings: policy.Settings{Breaker: policy.Breaker{Failures: 4}}}, never)
				if _, rec, err := b.call("pay", 0); err != nil || rec.Breaker != "closed" {
					t.Fatalf("after a change of its own: %v, %+v", err, rec)
				}
				b.set(never)
				if _, rec, _ := b.call("pay", 0); rec.Outcome != observe.BreakerOpen {
					t.Errorf("back with its settings: %+v", rec)
				}
			})
		})
	}
}

// TestLimiterOutlivesAChange that does not concern it.
func TestLimiterOutlivesAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(rate float64) policy.Rule {
			return policy.Rule{Tool: "pay", Settings: policy.Settings{Limiter: policy.Limiter{Rate: rate, NoWait: new(true)}}}
		}
		b := newBench(t, func(_ int, p posted) (*http.Response, error) { return p.answer() }, slow(0.1))
		defer b.session.Close()
		outcome := func() observe.Outcome {
			_, rec, _ := b.call("pay", 0)
			return rec.Outcome
		}
		if got := outcome(); got != observe.ToolSuccess {
			t.Fatal(got)
		}
		b.set(unrelated, slow(0.1))
		if got := outcome(); got != observe.RateLimited {
			t.Errorf("after a change elsewhere: %s", got)
		}
		b.set(slow(0.2))
		if got := outcome(); got != observe.ToolSuccess {
			t.Errorf("a new limiter: %s", got)
		}
		time.Sleep(5 * time.Second)
		if got := outcome(); got != observe.ToolSuccess {
			t.Errorf("at the new rate: %s", got)
		}
	})
}

// TestBudgetOutlivesAChange that does not concern it.
func TestBudgetOutlivesAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := func(size float64) policy.Rule {
			return policy.Rule{Settings: policy.Settings{Retry: policy.Retry{Budget: size}, Breaker: policy.Breaker{Failures: -1}}}
		}
		b := newBench(t, func(int, posted) (*http.Response, error) { return jsonAnswer(503, "down"), nil }, budget(2))
		defer b.session.Close()
		posts := func() int {
			before := b.wire.count()
			_, _, _ = b.call("read_weather", 0)
			return b.wire.count() - before
		}
		if n := posts(); n != 3 {
			t.Fatalf("%d POSTs", n)
		}
		b.set(unrelated, budget(2))
		if n := posts(); n != 1 {
			t.Errorf("%d POSTs on a spent budget", n)
		}
		b.set(budget(1))
		if n := posts(); n != 2 {
			t.Errorf("%d POSTs on a new budget", n)
		}
	})
}

// TestSetPolicyUnderLoad: whatever policy a call has, it has that one from its
// beginning to its end.
func TestSetPolicyUnderLoad(t *testing.T) {
	quick := policy.Retry{Repeats: 1, Backoff: -1, Budget: -1}
	off := policy.Breaker{Failures: -1}
	repeated := policy.Rule{Tool: "t*", Settings: policy.Settings{Safety: policy.ReadOnly, Retry: quick, Breaker: off}}
	told := policy.Rule{Tool: "t*", Settings: policy.Settings{Safety: policy.Unsafe, Retry: quick, Breaker: off, Surface: policy.SurfaceModel, Key: policy.Key{Guard: -1}}}
	b := newBench(t, func(int, posted) (*http.Response, error) { return jsonAnswer(503, "down"), nil }, repeated)
	defer b.session.Close()
	stop := make(chan struct{})
	var swapping, calling sync.WaitGroup
	swapping.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			b.set([]policy.Rule{repeated, told}[i%2])
		}
	})
	for range 4 {
		calling.Go(func() {
			for range 150 {
				_, _, _ = b.call("t", 0)
			}
		})
	}
	calling.Wait()
	close(stop)
	swapping.Wait()
	seen := map[string]int{}
	for _, r := range b.records {
		seen[r.Safety]++
		if reads := r.Safety == "read_only"; reads != (len(r.Attempts) == 2) || reads != (r.ModelText == "") || reads != (r.Ledger == nil) {
			t.Errorf("%s with %d attempts, text %q", r.Safety, len(r.Attempts), r.ModelText)
		}
	}
	if len(b.records) != 600 || seen["read_only"] == 0 || seen["unsafe"] == 0 {
		t.Errorf("%d calls: %v", len(b.records), seen)
	}
}
