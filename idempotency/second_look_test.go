package idempotency_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/surecall/surecall/idempotency"
)

// staged is a store around whose every look something happens.
type staged struct {
	idempotency.Store
	before, after func()
}

func (s *staged) Find(ctx context.Context, q idempotency.Query, now time.Time) ([]idempotency.Entry, error) {
	if s.before != nil {
		s.before()
	}
	found, err := s.Store.Find(ctx, q, now)
	if s.after != nil {
		s.after()
	}
	return found, err
}

// TestOneFlightForBothNames: a call that one caller asks for by its intent and another
// by its key is under way once, also where it lands and starts anew between two looks.
func TestOneFlightForBothNames(t *testing.T) {
	s := &staged{}
	b := newBook(t, idempotency.LedgerOptions{})
	s.Store, b.store = b.store, s
	b.restart()
	_, first := b.try(with(intent("i"), hostKey("k")))
	b.settle(first, failed)
	_, running := b.try(with(intent("i")))

	looks, inside := 0, false
	var again *idempotency.Ticket
	s.before = func() {
		if looks++; looks != 2 || inside {
			return
		}
		inside = true
		_, again = b.try(with(intent("i")))
		inside = false
	}
	s.after = func() {
		if looks == 1 {
			b.settle(running, failed)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	ticket, err := b.Begin(ctx, with(hostKey("k")))
	if again == nil {
		t.Fatal("nothing started between the looks")
	}
	if ticket != nil {
		t.Errorf("two tickets for one call: %s and %s", again.Key(), ticket.Key())
	}
	var refused *idempotency.Error
	if !errors.As(err, &refused) || refused.Kind != idempotency.KindRunning {
		t.Errorf("error %v", err)
	}
}

// TestSettledAfterItsRetention: a call that takes longer than calls are remembered, or
// during which the clock is set, is remembered from when its outcome is known.
func TestSettledAfterItsRetention(t *testing.T) {
	for name, tt := range map[string]struct {
		as   idempotency.Settlement
		want string
	}{"completed": {completed, "answer paid"}, "unknown": {unknown, "unknown"}} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t, idempotency.LedgerOptions{})
			_, ticket := b.try(with(intent("i")))
			b.now = b.now.Add(25 * time.Hour)
			if err := ticket.Settle(t.Context(), tt.as); err != nil {
				t.Fatal(err)
			}
			if got, _ := b.try(with(intent("i"))); got != tt.want {
				t.Errorf("then: %s, want %s", got, tt.want)
			}
		})
	}
}

// TestWindowIsKept: the guard's window counts from the end of a call, also of one that
// could not be settled, and outlasts a shorter retention.
func TestWindowIsKept(t *testing.T) {
	window := func(c *idempotency.Call) { c.GuardWindow = 10 * time.Minute }
	t.Run("unsettled", func(t *testing.T) {
		s := &broken{Store: idempotency.NewMemory(nil)}
		b := newBook(t, idempotency.LedgerOptions{})
		b.store = s
		b.restart()
		_, ticket := b.try(with(window))
		b.now = b.now.Add(9 * time.Minute)
		s.put = context.DeadlineExceeded
		if err := ticket.Settle(t.Context(), unknown); err == nil {
			t.Fatal("the store works")
		}
		s.put = nil
		b.now = b.now.Add(9 * time.Minute)
		if got, _ := b.try(with(window)); got != "equal" {
			t.Errorf("within the window: %s", got)
		}
		b.now = b.now.Add(2 * time.Minute)
		if got, _ := b.try(with(window)); got != "send" {
			t.Errorf("after the window: %s", got)
		}
	})
	t.Run("short retention", func(t *testing.T) {
		b := newBook(t, idempotency.LedgerOptions{Retention: time.Minute})
		_, ticket := b.try(with(window))
		b.settle(ticket, unknown)
		b.now = b.now.Add(9 * time.Minute)
		if got, _ := b.try(with(window)); got != "equal" {
			t.Errorf("within the window: %s", got)
		}
	})
}

// counting counts what a store has returned.
type counting struct {
	idempotency.Store
	found int
}

func (s *counting) Find(ctx context.Context, q idempotency.Query, now time.Time) ([]idempotency.Entry, error) {
	found, err := s.Store.Find(ctx, q, now)
	s.found += len(found)
	return found, err
}

// TestNamedKeyedCallsDoNotLookAround: however many equal calls are in doubt, a keyed
// call with a name of its own looks at none of them.
func TestNamedKeyedCallsDoNotLookAround(t *testing.T) {
	b := newBook(t, idempotency.LedgerOptions{})
	s := &counting{Store: b.store}
	b.store = s
	b.restart()
	for i := range 100 {
		_, ticket := b.try(with(intent(string(rune('a'+i))), keyed))
		b.settle(ticket, unknown)
	}
	if s.found != 0 {
		t.Errorf("%d entries of other calls were looked at", s.found)
	}
}
