package idempotency_test

import (
	"context"
	"testing"

	"github.com/surecall/surecall/idempotency"
)

func TestResolve(t *testing.T) {
	for _, tt := range []struct {
		name     string
		first    idempotency.Call
		asked    idempotency.Call // Resolve and then Begin
		as       idempotency.Settlement
		resolved bool
		want     string
	}{
		{"did not happen", with(intent("i")), with(intent("i")), failed, true, "send"},
		{"happened", with(intent("i")), with(intent("i")), completed, true, "answer paid"},
		{"happened, result not known", with(intent("i")), with(intent("i")), dropped, true, "not_kept"},
		{"cannot tell", with(intent("i")), with(intent("i")), unknown, false, "unknown"},
		{"an equal call did not happen", pay(), pay(), failed, true, "send"},
		{"an equal call happened", with(intent("i")), with(intent("j")), completed, true, "send"},
		{"other arguments", with(intent("i")), with(intent("i"), args(2)), failed, false, "mismatch"},
		{"another principal", with(intent("i")), with(intent("i"), bob), failed, false, "send"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBook(t, idempotency.LedgerOptions{})
			_, ticket := b.try(tt.first)
			b.settle(ticket, unknown)
			resolved, err := b.Resolve(t.Context(), tt.asked, tt.as)
			if err != nil || resolved != tt.resolved {
				t.Fatalf("Resolve: %t, %v", resolved, err)
			}
			if got, _ := b.try(tt.asked); got != tt.want {
				t.Errorf("then: %s, want %s", got, tt.want)
			}
		})
	}
}

// What was found out of one try says nothing of the next.
func TestStaleFinding(t *testing.T) {
	b := newBook(t, idempotency.LedgerOptions{})
	c := with(intent("i"), repeatAllowed)
	_, ticket := b.try(c)
	b.settle(ticket, unknown)
	doubts, err := b.InDoubt(t.Context(), c)
	if err != nil || len(doubts) != 1 {
		t.Fatal(doubts, err)
	}
	_, again := b.try(c)
	b.settle(again, unknown)
	if resolved, err := doubts[0].Resolve(t.Context(), failed); resolved || err != nil {
		t.Errorf("resolved %t, %v", resolved, err)
	}
	if got, _ := b.try(with(intent("i"))); got != "unknown" {
		t.Errorf("then: %s", got)
	}
}

// What is under way nobody else resolves, a repeat of a call in doubt least of all.
func TestResolveLeavesRunningCallsAlone(t *testing.T) {
	b := newBook(t, idempotency.LedgerOptions{})
	_, ticket := b.try(with(intent("i")))
	for _, c := range []idempotency.Call{with(intent("i")), pay()} {
		if resolved, err := b.Resolve(t.Context(), c, failed); resolved || err != nil {
			t.Errorf("Resolve: %t, %v", resolved, err)
		}
	}
	b.settle(ticket, unknown)
	_, repeat := b.try(with(intent("i"), keyed))
	for _, c := range []idempotency.Call{with(intent("i")), pay()} {
		if resolved, err := b.Resolve(t.Context(), c, failed); resolved || err != nil {
			t.Errorf("Resolve during a repeat: %t, %v", resolved, err)
		}
	}
	b.settle(repeat, completed)
	if got, _ := b.try(with(intent("i"))); got != "answer paid" {
		t.Errorf("then: %s", got)
	}
}

// TestInDoubt: what stands in the way is told by its key, under which it can be
// resolved.
func TestInDoubt(t *testing.T) {
	for _, tt := range []struct {
		name         string
		first, asked idempotency.Call
		doubts       int
		equal        bool
	}{
		{"the same", with(intent("i")), with(intent("i")), 1, false},
		{"an equal one", pay(), pay(), 1, true},
		{"an equal one of an intent", with(intent("i")), with(intent("j")), 1, true},
		{"other arguments", with(intent("i")), with(intent("i"), args(2)), 0, false},
		{"another principal", with(intent("i")), with(intent("i"), bob), 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBook(t, idempotency.LedgerOptions{})
			_, ticket := b.try(tt.first)
			if doubts, err := b.InDoubt(t.Context(), tt.asked); err != nil || len(doubts) != 0 {
				t.Errorf("under way: %+v, %v", doubts, err)
			}
			b.settle(ticket, unknown)
			doubts, err := b.InDoubt(t.Context(), tt.asked)
			if err != nil || len(doubts) != tt.doubts {
				t.Fatalf("%+v, %v", doubts, err)
			}
			if tt.doubts == 0 {
				return
			}
			if d := doubts[0]; d.Equal != tt.equal || d.Key != ticket.Key() || d.Since.IsZero() {
				t.Errorf("%+v, key %s", d, ticket.Key())
			}
			if resolved, err := doubts[0].Resolve(t.Context(), failed); err != nil || !resolved {
				t.Errorf("resolved %t, %v", resolved, err)
			}
			if resolved, err := doubts[0].Resolve(t.Context(), completed); err != nil || resolved {
				t.Errorf("resolved again: %t, %v", resolved, err)
			}
			if got, _ := b.try(tt.asked); got != "send" {
				t.Errorf("then: %s", got)
			}
		})
	}
}

// Resolve resolves whatever stands in the way of a call.
func (b *book) Resolve(ctx context.Context, c idempotency.Call, s idempotency.Settlement) (resolved bool, err error) {
	doubts, err := b.InDoubt(ctx, c)
	for _, d := range doubts {
		ok, err := d.Resolve(ctx, s)
		if err != nil {
			return resolved, err
		}
		resolved = resolved || ok
	}
	return resolved, err
}
