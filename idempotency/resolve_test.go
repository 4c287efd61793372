package idempotency_test

import (
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
