package idempotency_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/surecall/surecall/idempotency"
)

// What a ledger in memory adds to a call that goes well.
func BenchmarkLedger(b *testing.B) {
	f, err := idempotency.FingerprintOf("bank", "pay", map[string]any{"to": "ann", "amount": 10})
	if err != nil {
		b.Fatal(err)
	}
	answer := make([]byte, 1024)
	for _, bm := range []struct {
		name  string
		keyed bool
		named bool
	}{{"unsafe", false, false}, {"keyed", true, false}, {"intent", false, true}} {
		b.Run(bm.name, func(b *testing.B) {
			// Named calls fill the ledger: a short retention lets it forget them.
			l := idempotency.NewLedger(nil, &idempotency.LedgerOptions{Retention: 50 * time.Millisecond})
			c := idempotency.Call{
				Principal: "u-1", Server: "bank", Tool: "pay",
				Keyed: bm.keyed, Fingerprint: f, GuardWindow: 10 * time.Minute,
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if bm.named {
					c.Intent = "turn-" + strconv.Itoa(i)
				}
				t, err := l.Begin(b.Context(), c)
				if err != nil {
					b.Fatal(err)
				}
				if err := t.Settle(b.Context(), idempotency.Settlement{State: idempotency.Completed, Answer: answer}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFingerprint(b *testing.B) {
	args := map[string]any{"to": "ann", "amount": 10, "lines": []any{"a", "b", map[string]any{"x": 1.5}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := idempotency.FingerprintOf("bank", "pay", args); err != nil {
			b.Fatal(err)
		}
	}
}

// What a call costs while 256 equal ones, as a framework makes in parallel, are under
// way.
func BenchmarkEqualCallsInFlight(b *testing.B) {
	l := idempotency.NewLedger(nil, nil)
	c := idempotency.Call{Principal: "u-1", Server: "bank", Tool: "pay", GuardWindow: 10 * time.Minute}
	for range 256 {
		if _, err := l.Begin(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		t, err := l.Begin(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		if err := t.Settle(b.Context(), idempotency.Settlement{State: idempotency.Completed}); err != nil {
			b.Fatal(err)
		}
	}
}

// A call as the middlewares make it: fingerprint, Begin, Settle. Where the machine is
// busy, undisturbed-ns/op tells what a call takes between two interruptions.
func BenchmarkCall(b *testing.B) {
	args := map[string]any{"to": "ann", "amount": 10, "currency": "EUR"}
	answer := make([]byte, 1024)
	intents := make([]string, 1<<17) // more than are made within the retention
	for i := range intents {
		intents[i] = "turn-" + strconv.Itoa(i)
	}
	for _, named := range []bool{false, true} {
		b.Run(map[bool]string{false: "unnamed", true: "intent"}[named], func(b *testing.B) {
			l := idempotency.NewLedger(nil, &idempotency.LedgerOptions{Retention: 50 * time.Millisecond})
			c := idempotency.Call{Principal: "u-1", Server: "bank", Tool: "pay", GuardWindow: 10 * time.Minute}
			s := stretches{began: time.Now()}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.count(i)
				if named {
					c.Intent = intents[i%len(intents)]
				}
				var err error
				if c.Fingerprint, err = idempotency.FingerprintOf("bank", "pay", args); err != nil {
					b.Fatal(err)
				}
				t, err := l.Begin(b.Context(), c)
				if err != nil {
					b.Fatal(err)
				}
				if err := t.Settle(b.Context(), idempotency.Settlement{State: idempotency.Completed, Answer: answer}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(s.undisturbed(), "undisturbed-ns/op")
		})
	}
}

// stretches are the times of 100 calls each: too short for most to be interrupted.
type stretches struct {
	began time.Time
	took  []time.Duration
}

const stretch = 100

func (s *stretches) count(calls int) {
	if calls%stretch == 0 {
		s.took = append(s.took, time.Since(s.began))
		s.began = time.Now()
	}
}

// undisturbed is the tenth percentile, for one call, in nanoseconds.
func (s *stretches) undisturbed() float64 {
	slices.Sort(s.took)
	return float64(s.took[len(s.took)/10].Nanoseconds()) / stretch
}
