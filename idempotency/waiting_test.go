package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/surecall/surecall/idempotency"
)

// A call that was begun again by one of its names is under way by the other too.
func TestUnderWayByAllItsNames(t *testing.T) {
	b := newBook(t, idempotency.LedgerOptions{})
	_, first := b.try(with(intent("i"), hostKey("k")))
	b.settle(first, failed)
	if got, _ := b.try(with(intent("i"))); got != "send" {
		t.Fatalf("again: %s", got)
	}
	for name, c := range map[string]idempotency.Call{
		"key": with(hostKey("k")), "intent": with(intent("i")), "both": with(intent("i"), hostKey("k")), "key and another intent": with(intent("j"), hostKey("k")),
	} {
		if got, _ := b.try(c); got != "running" {
			t.Errorf("by its %s: %s", name, got)
		}
	}
}

// A call without a name has one as soon as its key is known.
func TestUnderWayByItsFreshKey(t *testing.T) {
	b := newBook(t, idempotency.LedgerOptions{})
	_, first := b.try(pay())
	if got, _ := b.try(with(hostKey(first.Key()))); got != "running" {
		t.Errorf("with the key of a call under way: %s", got)
	}
}

// The second caller waits for the first one's answer.
func TestWaiting(t *testing.T) {
	large := idempotency.Settlement{State: idempotency.Completed, Answer: make([]byte, 20)}
	for _, tt := range []struct {
		name   string
		end    idempotency.Settlement
		second idempotency.Call
		want   string
	}{
		{"answered", completed, with(intent("i")), "answer paid"},
		{"answered at length: those who wait get it all", large, with(intent("i")), "answer " + string(large.Answer)},
		{"failed: the second is sent", failed, with(intent("i")), "send"},
		{"unknown", unknown, with(intent("i")), "unknown"},
		{"unknown, keyed: the second is sent", unknown, with(intent("i"), keyed), "send"},
		{"the second has another key", completed, with(intent("i"), hostKey("k")), "mismatch"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := idempotency.NewLedger(nil, &idempotency.LedgerOptions{MaxAnswer: 10})
				first, err := l.Begin(t.Context(), with(intent("i")))
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan string)
				go func() {
					second, err := l.Begin(t.Context(), tt.second)
					done <- told(second, err)
				}()
				time.Sleep(time.Minute)
				select {
				case got := <-done:
					t.Fatalf("did not wait: %s", got)
				default:
				}
				if err := first.Settle(t.Context(), tt.end); err != nil {
					t.Fatal(err)
				}
				if got := <-done; got != tt.want {
					t.Errorf("then: %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// told is what became of a call, in a word.
func told(t *idempotency.Ticket, err error) string {
	var e *idempotency.Error
	switch {
	case errors.As(err, &e):
		return string(e.Kind)
	case err != nil:
		return err.Error()
	case t.Answer() != nil:
		return "answer " + string(t.Answer().Body)
	}
	return "send"
}

// Who waits does so no longer than its context.
func TestWaitingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := idempotency.NewLedger(nil, nil)
		first, err := l.Begin(t.Context(), with(intent("i")))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = l.Begin(ctx, with(intent("i")))
		var e *idempotency.Error
		if !errors.As(err, &e) || e.Kind != idempotency.KindRunning || !errors.Is(err, context.DeadlineExceeded) || !e.Since.Equal(began) {
			t.Errorf("error %v", err)
		}
		if waited := time.Since(began); waited != time.Minute+3*time.Second {
			t.Errorf("waited until %s", waited)
		}
		if err := first.Settle(ctx, completed); err != nil { // the call's context is over as well
			t.Error(err)
		}
		if second, err := l.Begin(t.Context(), with(intent("i"))); told(second, err) != "answer paid" {
			t.Errorf("then: %s", told(second, err))
		}
	})
}

// Of many who make a call at once, one is sent at a time; when it has failed the
// next one is.
func TestOneOfManyIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := idempotency.NewLedger(nil, nil)
		sent, answered := 0, make(chan string, 20)
		for range cap(answered) {
			go func() {
				ticket, err := l.Begin(t.Context(), with(intent("i")))
				if told(ticket, err) == "send" {
					sent++ // one at a time: the race detector looks on
					time.Sleep(time.Second)
					end := failed
					if sent == 3 {
						end = completed
					}
					if err := ticket.Settle(t.Context(), end); err != nil {
						t.Error(err)
					}
				}
				answered <- told(ticket, err)
			}()
		}
		got := map[string]int{}
		for range cap(answered) {
			got[<-answered]++
		}
		if sent != 3 || got["send"] != 3 || got["answer paid"] != 17 {
			t.Errorf("%d sent, told %v", sent, got)
		}
	})
}

// Many who adopt the same call send it one at a time, with one key.
func TestOneOfManyAdopts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := idempotency.NewLedger(nil, nil)
		first, err := l.Begin(t.Context(), with(keyed))
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Settle(t.Context(), unknown); err != nil {
			t.Fatal(err)
		}
		var sent []string
		done := make(chan string, 10)
		for range cap(done) {
			go func() {
				ticket, err := l.Begin(t.Context(), with(keyed))
				if told(ticket, err) == "send" {
					sent = append(sent, ticket.Key())
					time.Sleep(time.Second)
					_ = ticket.Settle(t.Context(), completed)
				}
				done <- told(ticket, err)
			}()
		}
		got := map[string]int{}
		for range cap(done) {
			got[<-done]++
		}
		if fmt.Sprint(sent) != "["+first.Key()+"]" || got["answer paid"] != 9 {
			t.Errorf("sent with keys %q after %q, told %v", sent, first.Key(), got)
		}
	})
}

// Two processes share a store: what one has under way is unknown to the other.
func TestSharedStore(t *testing.T) {
	store := idempotency.NewMemory(nil)
	a, b := idempotency.NewLedger(store, nil), idempotency.NewLedger(store, nil)
	first, err := a.Begin(t.Context(), with(keyed, intent("i")))
	if err != nil {
		t.Fatal(err)
	}
	if second, err := b.Begin(t.Context(), with(intent("i"))); told(second, err) != "unknown" {
		t.Errorf("unsafe: %s", told(second, err))
	}
	second, err := b.Begin(t.Context(), with(keyed, intent("i")))
	if told(second, err) != "send" || second.Key() != first.Key() {
		t.Fatalf("keyed: %s", told(second, err))
	}
	// The call is the second process's now. What the first one says cannot undo it.
	if err := first.Settle(t.Context(), failed); !errors.Is(err, idempotency.ErrConflict) {
		t.Errorf("the first one's Settle: %v", err)
	}
	if err := second.Settle(t.Context(), failed); err != nil {
		t.Fatal(err)
	}
	if third, err := a.Begin(t.Context(), with(intent("i"))); told(third, err) != "unknown" {
		t.Errorf("after a repeat that failed: %s", told(third, err))
	}
}
