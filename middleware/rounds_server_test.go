package middleware_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// What rounds_test.go checks on a clock of its own, here against the test server, on a
// real clock, with effects, prompts and POSTs counted.

// inRound makes a fault strike a round of a call.
func inRound(round int, f middlewaretest.Fault) middlewaretest.Fault {
	f.Round = round
	return f
}

// postTimes are the times of the POSTs for a tool.
func (r *rig) postTimes(tool string) []time.Time {
	var all []time.Time
	for _, e := range r.server.Entries() {
		if e.Tool == tool {
			all = append(all, e.Time)
		}
	}
	return all
}

// counted checks what a call came to on the server and with the user.
func (r *rig) counted(t *testing.T, tool string, posts, effects, asked int) {
	t.Helper()
	if r.server.Posts(tool) != posts || r.server.Effects(tool) != effects || r.asked != asked {
		t.Errorf("%d POSTs, %d effects, asked %d times; want %d, %d, %d", r.server.Posts(tool), r.server.Effects(tool), r.asked, posts, effects, asked)
	}
}

// TestRoundsAreFreeOnAServer: two questions cost no attempt, no backoff and no budget,
// which then has its one repeat, of the round that failed.
func TestRoundsAreFreeOnAServer(t *testing.T) {
	r := newRig(t, middlewaretest.Options{Tools: []middlewaretest.Tool{{Name: "ask", Ask: "Go on?"}}},
		policy.Rule{Tool: "ask", Settings: policy.Settings{Safety: policy.Idempotent, Retry: policy.Retry{Repeats: 1, Budget: 1, Backoff: time.Nanosecond}}},
		policy.Rule{Settings: policy.Settings{Key: policy.Key{Guard: -1}}})
	r.server.Script("ask", inRound(2, catalogued(t, "rounds-question")))
	_, rec, err := r.call("ask", time.Minute)
	if err != nil || len(rec.Attempts) != 1 || rec.PostCount != 3 || rec.Attempts[0].WaitMs != 0 {
		t.Errorf("err %v, record %+v", err, rec)
	}
	r.counted(t, "ask", 3, 1, 2)
	r.server.Script("ask", middlewaretest.SecondRound(middlewaretest.Status(503)))
	_, rec, err = r.call("ask", time.Minute)
	if err != nil || len(rec.Attempts) != 2 || rec.PostCount != 3 {
		t.Errorf("the budget's one repeat: err %v, record %+v", err, rec)
	}
	r.counted(t, "ask", 6, 2, 3)
}

// TestLaterRoundsAreAdmittedOnAServer: a later round waits for its token, or is not sent.
func TestLaterRoundsAreAdmittedOnAServer(t *testing.T) {
	for _, noWait := range []bool{false, true} {
		r := newRig(t, middlewaretest.Options{Tools: []middlewaretest.Tool{{Name: "ask", Ask: "Go on?"}}},
			policy.Rule{Tool: "ask", Settings: policy.Settings{Limiter: policy.Limiter{Rate: 2, Burst: 1, NoWait: &noWait}}})
		_, rec, err := r.call("ask", time.Minute)
		if noWait {
			r.counted(t, "ask", 1, 0, 1)
			if rec.Outcome != observe.RateLimited || rec.Delivery != observe.Answered {
				t.Errorf("err %v, record %+v", err, rec)
			}
			continue
		}
		r.counted(t, "ask", 2, 1, 1)
		if at := r.postTimes("ask"); err != nil || len(rec.Attempts) != 1 || at[1].Sub(at[0]) < 400*time.Millisecond {
			t.Errorf("err %v, %v, record %+v", err, at, rec)
		}
	}
}

// TestSheddingIsWaitedOutOnAServer: a server that puts the call off is asked again after
// growing waits, as one attempt, and the tool runs once.
func TestSheddingIsWaitedOutOnAServer(t *testing.T) {
	for _, name := range []string{"rounds-no-requests", "rounds-empty-requests"} {
		r := newRig(t, middlewaretest.Options{}, policy.Rule{Settings: policy.Settings{Retry: policy.Retry{Repeats: -1, Backoff: 50 * time.Millisecond}}})
		off := catalogued(t, name)
		r.server.Script("pay", off, inRound(2, off), inRound(3, off))
		_, rec, err := r.call("pay", time.Minute)
		if err != nil || rec.Outcome != observe.ToolSuccess || len(rec.Attempts) != 1 {
			t.Errorf("%s: err %v, record %+v", name, err, rec)
		}
		r.counted(t, "pay", 4, 1, 0)
		for i, at := range r.postTimes("pay") {
			if least := 50 * time.Millisecond << i / 4; i > 0 && at.Sub(r.postTimes("pay")[i-1]) < least {
				t.Errorf("%s: POST %d came after less than %v", name, i, least)
			}
		}
	}
}

// TestCancelInAWaitOnAServer: the caller's own cancellation returns within 20 ms of a
// real clock during every wait, what the machine itself was busy for not counted, and
// nothing more is sent.
func TestCancelInAWaitOnAServer(t *testing.T) {
	const bound, tries = 20 * time.Millisecond, 5
	hour := policy.Rule{Settings: policy.Settings{
		Retry: policy.Retry{Backoff: time.Hour, BackoffCap: time.Hour}, Limits: policy.Limits{Call: -1}, Key: policy.Key{Guard: -1}, Gate: policy.GateOff,
	}}
	token := policy.Rule{Tool: "ask", Settings: policy.Settings{Limiter: policy.Limiter{Rate: 0.001, Burst: 1}}}
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		so.Tools = []middlewaretest.Tool{{Name: "ask", Ask: "Go on?"}}
		for name, c := range map[string]struct {
			tool   string
			fault  middlewaretest.Fault
			asked  int
			rounds bool // which only 2026-07-28 has
		}{
			"backoff":               {tool: "pay", fault: middlewaretest.Status(429)},
			"shedding":              {tool: "pay", fault: catalogued(t, "rounds-no-requests"), rounds: true},
			"limiter of the rounds": {tool: "ask", asked: 1, rounds: true},
		} {
			if c.rounds && so.Version == middlewaretest.Version20251125 {
				continue
			}
			for range tries {
				r := newRig(t, so, hour, token)
				if c.fault.Name != "" {
					r.server.Script(c.tool, c.fault)
				}
				busy := watchStalls()
				ctx, cancel := context.WithCancel(t.Context())
				canceled := make(chan time.Time, 1)
				go func() {
					waitUntil(t, func() bool { return r.server.Posts(c.tool) == 1 })
					time.Sleep(100 * time.Millisecond) // into the wait
					canceled <- time.Now()
					cancel()
				}()
				_, rec, err := r.callIn(ctx, c.tool, nil)
				back, from := time.Now(), <-canceled
				time.Sleep(2 * stallTick) // a stall is seen when it is over
				busy.close()
				if late := back.Sub(from) - busy.within(from, back); late > bound {
					t.Errorf("%s: %v late, %v of it the machine's", name, back.Sub(from), busy.within(from, back))
				}
				if !errors.Is(err, context.Canceled) || rec.Outcome != observe.Canceled {
					t.Errorf("%s: err %v, record %+v", name, err, rec)
				}
				r.counted(t, c.tool, 1, 0, c.asked)
			}
		}
	})
}
