package policy

import (
	"math"
	"sync"
)

// A budget counts in thousandths of a repeat: ten returns of a tenth are exactly
// one repeat, which a sum of floats is not.
const (
	budgetUnit   = 1000
	budgetReturn = budgetUnit / 10
)

// A Budget bounds the repeats of a server and tool across calls: a repeat costs
// 1, a success returns 0.1, so that a server in trouble gets at most a tenth of
// its calls on top once the budget is spent. The zero value, and a nil pointer,
// are unlimited. It is safe for concurrent use.
type Budget struct {
	size int64 // 0 is unlimited

	mu   sync.Mutex
	left int64
}

// NewBudget returns a full budget of so many repeats. A size of zero or less, or
// one that is no finite number, is unlimited; one below 1 never allows a repeat.
func NewBudget(size float64) *Budget {
	if !(size > 0) || math.IsInf(size, 1) {
		return &Budget{}
	}
	n := max(int64(min(size, 1e9)*budgetUnit), 1)
	return &Budget{size: n, left: n}
}

// Has reports whether there is enough for a repeat. It is what [State] wants to
// know; take it only when the decision is to repeat.
func (b *Budget) Has() bool {
	if b == nil || b.size == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left >= budgetUnit
}

// Take pays for a repeat and reports whether there was enough. Where another call
// was quicker after [Budget.Has], it is false: decide again.
func (b *Budget) Take() bool {
	if b == nil || b.size == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < budgetUnit {
		return false
	}
	b.left -= budgetUnit
	return true
}

// Return gives back a tenth of a repeat for a success, up to the size.
func (b *Budget) Return() {
	if b == nil || b.size == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(b.left+budgetReturn, b.size)
}
