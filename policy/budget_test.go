package policy_test

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/surecall/surecall/policy"
)

// takes counts how many repeats a budget pays for, up to a bound.
func takes(b *policy.Budget) int {
	n := 0
	for n < 100 && b.Take() {
		n++
	}
	return n
}

func TestBudget(t *testing.T) {
	for _, row := range []struct {
		name    string
		budget  *policy.Budget
		returns int
		want    int
	}{
		{"full", policy.NewBudget(10), 0, 10},
		{"a success cannot overfill it", policy.NewBudget(10), 50, 10},
		{"part of a repeat", policy.NewBudget(2.5), 0, 2},
		{"less than a repeat", policy.NewBudget(0.5), 10, 0},
		{"unlimited by zero", policy.NewBudget(0), 0, 100},
		{"unlimited by a negative", policy.NewBudget(-1), 0, 100},
		{"unlimited by infinity", policy.NewBudget(math.Inf(1)), 0, 100},
		{"unlimited by NaN", policy.NewBudget(math.NaN()), 0, 100},
		{"larger than can be counted", policy.NewBudget(math.MaxFloat64), 0, 100},
		{"zero value", new(policy.Budget), 1, 100},
		{"nil", nil, 1, 100},
	} {
		for range row.returns {
			row.budget.Return()
		}
		if got := takes(row.budget); got != row.want {
			t.Errorf("%s: %d repeats, want %d", row.name, got, row.want)
		}
		if has := row.budget.Has(); has != (row.want == 100) {
			t.Errorf("%s: Has is %v after %d repeats", row.name, has, row.want)
		}
	}
}

// Ten successes are exactly one repeat, nine are none.
func TestBudgetReturns(t *testing.T) {
	b := policy.NewBudget(3)
	takes(b)
	for range 9 {
		b.Return()
	}
	if b.Has() || b.Take() {
		t.Error("nine successes paid for a repeat")
	}
	b.Return()
	if !b.Has() || takes(b) != 1 {
		t.Error("ten successes did not pay for one repeat")
	}
}

// However successes and repeats follow each other, what is taken is at most the
// size and a tenth of the successes.
func TestBudgetBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Float64Range(0.001, 20).Draw(t, "size")
		b := policy.NewBudget(size)
		taken, successes := 0, 0
		for _, success := range rapid.SliceOf(rapid.Bool()).Draw(t, "success") {
			if success {
				b.Return()
				successes++
				continue
			}
			had := b.Has()
			if b.Take() != had {
				t.Fatal("Has and Take disagree")
			}
			if had {
				taken++
			}
		}
		if float64(taken) > size+0.1*float64(successes)+1e-9 {
			t.Fatalf("%d repeats of %v and %d successes", taken, size, successes)
		}
	})
}

func TestBudgetConcurrently(t *testing.T) {
	b := policy.NewBudget(50)
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if b.Has() && b.Take() {
					taken.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if taken.Load() != 50 {
		t.Errorf("%d repeats of a budget of 50", taken.Load())
	}
}
