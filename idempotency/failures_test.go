package idempotency_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/surecall/surecall/idempotency"
)

// What an unsafe call is told, word by word: models read it.
func TestRefusals(t *testing.T) {
	b := newBook(t, idempotency.LedgerOptions{})
	_, ticket := b.try(with(intent("i")))
	b.settle(ticket, unknown)
	b.now = b.now.Add(90 * time.Second)
	for _, tt := range []struct {
		name  string
		call  idempotency.Call
		until time.Time
		want  string
	}{
		{"unknown", with(intent("i")), time.Time{}, "this same call was made at 2026-08-01T12:00:00Z (1m30s ago) and its outcome is unknown: " +
			"it may already have taken effect. It was not sent again. Check whether it took effect, or ask the user, before you allow a repeat"},
		{"equal", pay(), epoch.Add(window), "an equal call, with the same arguments, was made at 2026-08-01T12:00:00Z (1m30s ago) and its outcome is unknown: " +
			"it may already have taken effect. This one was not sent. Check whether the earlier one took effect, or ask the user, before you allow a repeat"},
	} {
		_, err := b.Begin(t.Context(), tt.call)
		var e *idempotency.Error
		if !errors.As(err, &e) {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if e.Reason != tt.want || !e.Since.Equal(epoch) || !e.Until.Equal(tt.until) || e.Tool != "pay" || e.Server != "bank" || errors.Unwrap(e) != nil {
			t.Errorf("%s: %+v", tt.name, e)
		}
		if got := e.Error(); got != `tool "pay" not called: `+tt.want {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
}

// broken is a store that fails.
type broken struct {
	idempotency.Store
	find, put error
}

func (s *broken) Find(ctx context.Context, q idempotency.Query, now time.Time) ([]idempotency.Entry, error) {
	if s.find != nil {
		return nil, s.find
	}
	return s.Store.Find(ctx, q, now)
}

func (s *broken) Put(ctx context.Context, e idempotency.Entry, now time.Time) error {
	if s.put != nil {
		return s.put
	}
	return s.Store.Put(ctx, e, now)
}

func TestStoreFailures(t *testing.T) {
	trouble := errors.New("no space left on /var/lib/ledger")
	for _, tt := range []struct {
		name  string
		store broken
		want  error
	}{
		{"unreadable", broken{find: trouble}, trouble},
		{"unwritable", broken{put: trouble}, trouble},
		{"full", broken{put: idempotency.ErrFull}, idempotency.ErrFull},
		{"never at rest", broken{put: idempotency.ErrConflict}, idempotency.ErrConflict},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.store.Store = idempotency.NewMemory(nil)
			l := idempotency.NewLedger(&tt.store, nil)
			for _, c := range []idempotency.Call{pay(), with(keyed), with(intent("i"))} {
				ticket, err := l.Begin(t.Context(), c)
				var e *idempotency.Error
				if ticket != nil || !errors.As(err, &e) || e.Kind != idempotency.KindStore || !errors.Is(err, tt.want) {
					t.Errorf("ticket %v, error %v", ticket, err)
					continue
				}
				if strings.Contains(e.Reason, "/var") || !strings.Contains(e.Error(), tt.want.Error()) {
					t.Errorf("the reason tells models too much, or the error too little: %s / %s", e.Reason, e)
				}
			}
			tt.store.find, tt.store.put = nil, nil
			if _, err := l.Begin(t.Context(), with(intent("i"))); err != nil {
				t.Errorf("once the store works again: %v", err)
			}
		})
	}
}

// liar is a store that writes, and says that it failed.
type liar struct {
	idempotency.Store
	lies error
}

func (s *liar) Put(ctx context.Context, e idempotency.Entry, now time.Time) error {
	if err := s.Store.Put(ctx, e, now); err != nil {
		return err
	}
	return s.lies
}

// A call that was written down but not begun was not sent.
func TestNotBegunAfterAll(t *testing.T) {
	for _, tt := range []struct {
		name  string
		doubt bool // an earlier try ended unknown
		call  idempotency.Call
		want  string
	}{
		{"same intent", false, with(intent("i")), "send"},
		{"same intent, keyed", false, with(intent("i"), keyed), "send"},
		{"equal call", false, pay(), "send"},
		{"same intent, in doubt", true, with(intent("i")), "unknown"},
		{"same intent, in doubt, keyed", true, with(intent("i"), keyed), "send"},
		{"equal call, in doubt", true, pay(), "equal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &liar{Store: idempotency.NewMemory(nil)}
			b := newBook(t, idempotency.LedgerOptions{})
			b.store = s
			b.restart()
			if tt.doubt {
				_, ticket := b.try(with(intent("i"), keyed))
				b.settle(ticket, unknown)
			}
			s.lies = errors.New("no answer in time")
			if got, _ := b.try(with(intent("i"), keyed)); got != "store" {
				t.Fatalf("a store that fails: %s", got)
			}
			s.lies = nil
			if got, _ := b.try(tt.call); got != tt.want {
				t.Errorf("then: %s, want %s", got, tt.want)
			}
		})
	}
}

// A call that cannot be settled is unknown to everybody after it, in this process
// too.
func TestUnsettled(t *testing.T) {
	trouble := errors.New("no space left")
	s := &broken{Store: idempotency.NewMemory(nil)}
	b := newBook(t, idempotency.LedgerOptions{})
	b.store = s
	b.restart()
	_, ticket := b.try(with(intent("i")))
	s.put = trouble
	err := ticket.Settle(t.Context(), completed)
	var e *idempotency.Error
	if !errors.As(err, &e) || e.Kind != idempotency.KindStore || !errors.Is(err, trouble) {
		t.Fatalf("Settle: %v", err)
	}
	s.put = nil
	for _, tt := range []struct {
		name string
		call idempotency.Call
		want string
	}{
		{"same intent", with(intent("i")), "unknown"},
		{"equal call", pay(), "equal"},
		{"another principal", with(bob), "send"},
		{"equal keyed call", with(keyed), "send adopted"},
		{"equal call while that is under way", pay(), "equal"},
	} {
		if got, _ := b.try(tt.call); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// strict is a store that does not work for a context that is over.
type strict struct{ idempotency.Store }

func (s strict) Put(ctx context.Context, e idempotency.Entry, now time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Store.Put(ctx, e, now)
}

// A call whose caller has left is one to be written down.
func TestSettleOutlivesTheCall(t *testing.T) {
	l := idempotency.NewLedger(strict{idempotency.NewMemory(nil)}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ticket, err := l.Begin(ctx, with(intent("i")))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := ticket.Settle(ctx, completed); err != nil {
		t.Error(err)
	}
}

// frail is a store that panics once, when it is told to.
type frail struct {
	idempotency.Store
	find, put, written chan struct{} // closed: the next of these panics; nil: none does
}

func (s *frail) Find(ctx context.Context, q idempotency.Query, now time.Time) ([]idempotency.Entry, error) {
	breaks(&s.find)
	return s.Store.Find(ctx, q, now)
}

func (s *frail) Put(ctx context.Context, e idempotency.Entry, now time.Time) error {
	breaks(&s.put)
	err := s.Store.Put(ctx, e, now)
	breaks(&s.written)
	return err
}

func breaks(when *chan struct{}) {
	if c := *when; c != nil {
		<-c
		*when = nil
		panic("broken")
	}
}

// Those who wait for a call go on when the store panics under it, and the panic goes
// on as well.
func TestStorePanics(t *testing.T) {
	for _, tt := range []struct {
		name    string
		doubt   bool // an earlier try ended unknown
		settles bool // the store breaks in Settle, not in Begin
		breaks  func(s *frail) *chan struct{}
		waiter  string
		next    string
	}{
		{"reading", false, false, func(s *frail) *chan struct{} { return &s.find }, "send", "running"},
		{"beginning", false, false, func(s *frail) *chan struct{} { return &s.put }, "send", "running"},
		{"having begun", false, false, func(s *frail) *chan struct{} { return &s.written }, "send", "running"},
		{"reading, in doubt", true, false, func(s *frail) *chan struct{} { return &s.find }, "unknown", "unknown"},
		{"having begun, in doubt", true, false, func(s *frail) *chan struct{} { return &s.written }, "unknown", "unknown"},
		{"settling", false, true, func(s *frail) *chan struct{} { return &s.put }, "answer paid", "unknown"},
		{"having settled", false, true, func(s *frail) *chan struct{} { return &s.written }, "answer paid", "answer paid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &frail{Store: idempotency.NewMemory(nil)}
				l := idempotency.NewLedger(s, nil)
				first := with(intent("i"))
				if tt.doubt {
					first = with(intent("i"), keyed)
					ticket, _ := l.Begin(t.Context(), first)
					_ = ticket.Settle(t.Context(), unknown)
				}
				if !tt.settles {
					*tt.breaks(s) = make(chan struct{})
				}
				now, panicked := tt.breaks(s), make(chan any)
				go func() {
					defer func() { panicked <- recover() }()
					ticket, err := l.Begin(t.Context(), first)
					if err != nil {
						t.Error(err)
					}
					*now = make(chan struct{})
					_ = ticket.Settle(t.Context(), completed)
				}()
				synctest.Wait()
				waiter := make(chan string)
				go func() {
					ticket, err := l.Begin(t.Context(), with(intent("i")))
					waiter <- told(ticket, err)
				}()
				synctest.Wait()
				close(*now)
				if p := <-panicked; p != "broken" {
					t.Errorf("the panic became %v", p)
				}
				if got := <-waiter; got != tt.waiter {
					t.Errorf("who waited: %s, want %s", got, tt.waiter)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if ticket, err := l.Begin(ctx, with(intent("i"))); told(ticket, err) != tt.next {
					t.Errorf("who came next: %s, want %s", told(ticket, err), tt.next)
				}
			})
		})
	}
}
