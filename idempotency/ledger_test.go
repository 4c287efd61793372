package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/surecall/surecall/idempotency"
)

const window = 10 * time.Minute

// book is a ledger with a clock in the test's hand.
type book struct {
	t     tester
	store idempotency.Store
	now   time.Time
	opts  idempotency.LedgerOptions
	*idempotency.Ledger
}

// tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newBook(t tester, opts idempotency.LedgerOptions) *book {
	b := &book{t: t, store: idempotency.NewMemory(nil), now: epoch, opts: opts}
	b.opts.Now = func() time.Time { return b.now }
	b.restart()
	return b
}

// restart is the death of the process: a new ledger over the same store.
func (b *book) restart() { b.Ledger = idempotency.NewLedger(b.store, &b.opts) }

// try begins a call without waiting and tells what came of it: "send", "send
// adopted", "answer X", or the kind of the refusal. The ticket is nil for that.
func (b *book) try(c idempotency.Call) (string, *idempotency.Ticket) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	t, err := b.Begin(ctx, c)
	var refused *idempotency.Error
	switch {
	case errors.As(err, &refused):
		return string(refused.Kind), nil
	case err != nil:
		b.t.Fatalf("Begin: an error of another type: %v", err)
	case t.Answer() != nil:
		return "answer " + string(t.Answer().Body), t
	case t.Adopted():
		return "send adopted", t
	}
	return "send", t
}

func (b *book) settle(t *idempotency.Ticket, s idempotency.Settlement) {
	b.t.Helper()
	if err := t.Settle(context.Background(), s); err != nil {
		b.t.Fatalf("Settle: %v", err)
	}
}

// pay is an unsafe call under the guard.
func pay() idempotency.Call {
	return idempotency.Call{
		Principal: "ann", Server: "bank", Tool: "pay", Fingerprint: idempotency.Fingerprint{1}, GuardWindow: window,
	}
}

// with changes a call.
func with(changes ...func(*idempotency.Call)) idempotency.Call {
	c := pay()
	for _, change := range changes {
		change(&c)
	}
	return c
}

func intent(id string) func(*idempotency.Call) {
	return func(c *idempotency.Call) { c.Intent = id }
}

func hostKey(k string) func(*idempotency.Call) {
	return func(c *idempotency.Call) { c.Key = k }
}

func args(n byte) func(*idempotency.Call) {
	return func(c *idempotency.Call) { c.Fingerprint[0] = n }
}

func keyed(c *idempotency.Call)         { c.Keyed = true }
func unguarded(c *idempotency.Call)     { c.GuardWindow = 0 }
func repeatAllowed(c *idempotency.Call) { c.RepeatAllowed = true }
func bob(c *idempotency.Call)           { c.Principal = "bob" }
func shop(c *idempotency.Call)          { c.Server = "shop" }
func sendTool(c *idempotency.Call)      { c.Tool = "send" }

var (
	failed    = idempotency.Settlement{State: idempotency.Failed}
	unknown   = idempotency.Settlement{State: idempotency.Unknown}
	completed = idempotency.Settlement{State: idempotency.Completed, Answer: []byte("paid")}
	dropped   = idempotency.Settlement{State: idempotency.Completed}
)

// How a first call ends, and what becomes of a second one.
func TestLedger(t *testing.T) {
	const (
		dies   = "dies"   // the process, before Settle
		is     = "is"     // still under way
		settle = "settle" // as said
	)
	for _, tt := range []struct {
		name   string
		first  idempotency.Call
		end    string
		as     idempotency.Settlement
		after  time.Duration
		second idempotency.Call
		want   string
	}{
		{"same intent, completed", with(intent("i")), settle, completed, 0, with(intent("i")), "answer paid"},
		{"same intent, completed, 23 h later", with(intent("i")), settle, completed, 23 * time.Hour, with(intent("i")), "answer paid"},
		{"same intent, completed, after its retention", with(intent("i")), settle, completed, 24 * time.Hour, with(intent("i")), "send"},
		{"same intent, completed, keyed", with(intent("i"), keyed), settle, completed, 0, with(intent("i"), keyed), "answer paid"},
		{"same intent, completed, repeat allowed", with(intent("i")), settle, completed, 0, with(intent("i"), repeatAllowed), "answer paid"},
		{"same intent, answer not kept", with(intent("i")), settle, dropped, 0, with(intent("i")), "not_kept"},
		{"same intent, failed", with(intent("i")), settle, failed, 0, with(intent("i")), "send"},
		{"same intent, unknown", with(intent("i")), settle, unknown, 0, with(intent("i")), "unknown"},
		{"same intent, unknown, long after the window", with(intent("i")), settle, unknown, 23 * time.Hour, with(intent("i")), "unknown"},
		{"same intent, unknown, no guard", with(intent("i"), unguarded), settle, unknown, 0, with(intent("i"), unguarded), "unknown"},
		{"same intent, unknown, keyed", with(intent("i"), keyed), settle, unknown, 0, with(intent("i"), keyed), "send"},
		{"same intent, unknown, repeat allowed", with(intent("i")), settle, unknown, 0, with(intent("i"), repeatAllowed), "send"},
		{"same intent, under way", with(intent("i")), is, failed, 0, with(intent("i")), "running"},
		{"same intent, under way, keyed", with(intent("i"), keyed), is, failed, 0, with(intent("i"), keyed), "running"},
		{"same intent, left behind", with(intent("i")), dies, failed, 0, with(intent("i")), "unknown"},
		{"same intent, left behind, keyed", with(intent("i"), keyed), dies, failed, 0, with(intent("i"), keyed), "send"},
		{"same intent, not a state", with(intent("i")), settle, idempotency.Settlement{State: "x"}, 0, with(intent("i")), "unknown"},

		{"same key, completed", with(hostKey("k")), settle, completed, 0, with(hostKey("k")), "answer paid"},
		{"same key, other intent", with(hostKey("k"), intent("i")), settle, completed, 0, with(hostKey("k"), intent("j")), "answer paid"},
		{"same key, then without intent", with(hostKey("k"), intent("i")), settle, completed, 0, with(hostKey("k")), "answer paid"},
		{"same intent, then without key", with(hostKey("k"), intent("i")), settle, completed, 0, with(intent("i")), "answer paid"},
		{"same key, under way", with(hostKey("k"), intent("i")), is, completed, 0, with(hostKey("k")), "running"},
		{"same key, under way, other intent", with(hostKey("k"), intent("i")), is, completed, 0, with(hostKey("k"), intent("j")), "running"},
		{"same key, unknown", with(hostKey("k")), settle, unknown, 0, with(hostKey("k")), "unknown"},

		{"same intent, other arguments", with(intent("i")), settle, completed, 0, with(intent("i"), args(2)), "mismatch"},
		{"same intent, other arguments, failed", with(intent("i")), settle, failed, 0, with(intent("i"), args(2)), "mismatch"},
		{"same intent, other arguments, under way", with(intent("i")), is, failed, 0, with(intent("i"), args(2)), "mismatch"},
		{"same intent, other arguments, left behind", with(intent("i")), dies, failed, 0, with(intent("i"), args(2)), "mismatch"},
		{"same intent, other tool", with(intent("i")), settle, unknown, 0, with(intent("i"), args(2), sendTool), "send"},
		{"same intent, other key", with(intent("i"), hostKey("k")), settle, completed, 0, with(intent("i"), hostKey("l")), "mismatch"},
		{"same intent, then with a key", with(intent("i")), settle, completed, 0, with(intent("i"), hostKey("l")), "mismatch"},
		{"same key, other arguments", with(hostKey("k")), settle, unknown, 0, with(hostKey("k"), args(2)), "mismatch"},
		{"same key, other tool", with(hostKey("k")), settle, completed, 0, with(hostKey("k"), sendTool, args(2)), "mismatch"},
		{"same key, other arguments, repeat allowed", with(hostKey("k")), settle, unknown, 0, with(hostKey("k"), args(2), repeatAllowed), "mismatch"},

		{"no intent, completed: two intents", pay(), settle, completed, 0, pay(), "send"},
		{"no intent, failed", pay(), settle, failed, 0, pay(), "send"},
		{"no intent, under way: two intents", pay(), is, failed, 0, pay(), "send"},
		{"guard: unknown", pay(), settle, unknown, 0, pay(), "equal"},
		{"guard: unknown, other intents", with(intent("i")), settle, unknown, 0, with(intent("j")), "equal"},
		{"guard: unknown, a key of its own", pay(), settle, unknown, 0, with(hostKey("k")), "equal"},
		{"guard: within the window", pay(), settle, unknown, window - 1, pay(), "equal"},
		{"guard: after the window", pay(), settle, unknown, window, pay(), "send"},
		{"guard: off", pay(), settle, unknown, 0, with(unguarded), "send"},
		{"guard: repeat allowed", pay(), settle, unknown, 0, with(repeatAllowed), "send"},
		{"guard: other arguments", pay(), settle, unknown, 0, with(args(2)), "send"},
		{"guard: left behind", pay(), dies, failed, 0, pay(), "equal"},
		{"guard: left behind, a long restart", pay(), dies, failed, 2 * time.Hour, pay(), "equal"},
		{"guard: keyed adopts", with(keyed), settle, unknown, 0, with(keyed), "send adopted"},
		{"guard: keyed adopts from an intent", with(keyed, intent("i")), settle, unknown, 0, with(keyed), "send adopted"},
		{"guard: keyed adopts from an unsafe call", pay(), settle, unknown, 0, with(keyed), "send adopted"},
		{"guard: keyed adopts what was left behind", with(keyed), dies, failed, 0, with(keyed), "send adopted"},
		{"guard: keyed, after the window", with(keyed), settle, unknown, window, with(keyed), "send"},
		{"guard: keyed, off", with(keyed), settle, unknown, 0, with(keyed, unguarded), "send"},
		{"guard: keyed, repeat allowed", with(keyed), settle, unknown, 0, with(keyed, repeatAllowed), "send"},
		{"guard: keyed with an intent of its own", with(keyed), settle, unknown, 0, with(keyed, intent("i")), "send"},
		{"guard: keyed with a key of its own", with(keyed), settle, unknown, 0, with(keyed, hostKey("k")), "send"},

		{"another principal, same intent", with(intent("i")), settle, completed, 0, with(intent("i"), bob), "send"},
		{"another principal, same key, other arguments", with(hostKey("k")), settle, completed, 0, with(hostKey("k"), args(2), bob), "send"},
		{"another principal, equal call", pay(), settle, unknown, 0, with(bob), "send"},
		{"another principal, equal keyed call", with(keyed), settle, unknown, 0, with(keyed, bob), "send"},
		{"another server, same intent", with(intent("i")), settle, unknown, 0, with(intent("i"), shop), "send"},
		{"another server, same key", with(hostKey("k")), settle, unknown, 0, with(hostKey("k"), shop), "send"},
		{"another server, equal call", pay(), settle, unknown, 0, with(shop), "send"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBook(t, idempotency.LedgerOptions{})
			got, ticket := b.try(tt.first)
			if got != "send" {
				t.Fatalf("the first call: %s", got)
			}
			if tt.end == settle {
				b.settle(ticket, tt.as)
			}
			b.now = b.now.Add(tt.after)
			if tt.end == dies {
				b.restart()
			}
			second, again := b.try(tt.second)
			if second != tt.want {
				t.Fatalf("the second call: %s, want %s", second, tt.want)
			}
			checkKey(t, ticket, again, tt.first, tt.second)
		})
	}
}

// checkKey checks that a repeat has its first call's key, and another call has not.
func checkKey(t *testing.T, first, second *idempotency.Ticket, a, b idempotency.Call) {
	t.Helper()
	if second == nil {
		return
	}
	sameIntent := a.Intent != "" && a.Intent == b.Intent && a.Principal == b.Principal && a.Server == b.Server && a.Tool == b.Tool
	same := second.Adopted() || sameIntent || a.Key != "" && a.Key == b.Key
	if (first.Key() == second.Key()) != same {
		t.Errorf("keys %q and %q, want them equal: %t", first.Key(), second.Key(), same)
	}
}

func TestKeyOfACall(t *testing.T) {
	b := newBook(t, idempotency.LedgerOptions{})
	derived := idempotency.DeriveKey("ann", "i", "bank", "pay")
	for _, tt := range []struct {
		name string
		call idempotency.Call
		want string
	}{
		{"derived", with(intent("i")), derived},
		{"the host's", with(hostKey("k")), "k"},
		{"the host's before the derived", with(hostKey("l"), intent("j")), "l"},
	} {
		_, ticket := b.try(tt.call)
		if ticket == nil || ticket.Key() != tt.want || !ticket.Since().IsZero() {
			t.Errorf("%s: ticket %+v, want a first call with key %q", tt.name, ticket, tt.want)
		}
	}
	_, ticket := b.try(with(args(9)))
	if !keyForm.MatchString(ticket.Key()) {
		t.Errorf("a call without name has key %q", ticket.Key())
	}
}

// A repeat that surely did not happen does not clear the doubt about the first.
func TestDoubtStays(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  idempotency.Settlement
		want string // of an unsafe call under the same intent
	}{
		{"failed repeat", failed, "unknown"},
		{"failed repeat, verified", idempotency.Settlement{State: idempotency.Failed, Verified: true}, "send"},
		{"answered repeat", completed, "answer paid"},
		{"unknown repeat", unknown, "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBook(t, idempotency.LedgerOptions{})
			_, first := b.try(with(intent("i"), keyed))
			b.settle(first, unknown)
			b.now = b.now.Add(time.Minute)
			_, repeat := b.try(with(intent("i"), keyed))
			if !repeat.Since().Equal(epoch) || repeat.Adopted() {
				t.Errorf("the repeat is of a call begun at %s", repeat.Since())
			}
			b.settle(repeat, tt.end)
			if got, _ := b.try(with(intent("i"))); got != tt.want {
				t.Errorf("then: %s, want %s", got, tt.want)
			}
		})
	}
}

// While a call in doubt is repeated, an equal call is not another intent.
func TestGuardDuringARepeat(t *testing.T) {
	for _, tt := range []struct {
		name string
		call idempotency.Call
		want string
	}{
		{"unsafe", pay(), "equal"},
		{"keyed", with(keyed), "running"},
		{"keyed with an intent", with(keyed, intent("j")), "send"},
		{"repeat allowed", with(repeatAllowed), "send"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBook(t, idempotency.LedgerOptions{})
			_, first := b.try(with(keyed, intent("i")))
			b.settle(first, unknown)
			if got, _ := b.try(with(keyed, intent("i"))); got != "send" {
				t.Fatalf("the repeat: %s", got)
			}
			b.now = b.now.Add(2 * window)
			if got, _ := b.try(tt.call); got != tt.want {
				t.Errorf("an equal call during the repeat: %s, want %s", got, tt.want)
			}
		})
	}
}

func TestAnswerLimits(t *testing.T) {
	for _, tt := range []struct {
		name string
		max  int
		size int
		want string
	}{
		{"default", 0, 1 << 20, "answer"},
		{"default, too large", 0, 1<<20 + 1, "not_kept"},
		{"at the limit", 10, 10, "answer"},
		{"beyond it", 10, 11, "not_kept"},
		{"none kept", -1, 1, "not_kept"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBook(t, idempotency.LedgerOptions{MaxAnswer: tt.max})
			_, ticket := b.try(with(intent("i")))
			b.settle(ticket, idempotency.Settlement{State: idempotency.Completed, Answer: make([]byte, tt.size), IsError: true})
			_, err := b.Begin(t.Context(), with(intent("i")))
			var refused *idempotency.Error
			switch {
			case tt.want == "answer" && err != nil:
				t.Error(err)
			case tt.want == "not_kept" && (!errors.As(err, &refused) || refused.Kind != idempotency.KindNotKept || !refused.IsError):
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestReplayTicket(t *testing.T) {
	b := newBook(t, idempotency.LedgerOptions{})
	_, ticket := b.try(with(intent("i")))
	b.settle(ticket, idempotency.Settlement{State: idempotency.Completed, Answer: []byte("no money"), IsError: true})
	b.now = b.now.Add(time.Minute)
	_, replay := b.try(with(intent("i")))
	if a := replay.Answer(); a == nil || string(a.Body) != "no money" || !a.IsError || !replay.Since().Equal(epoch) || replay.Key() != ticket.Key() {
		t.Errorf("replay %+v of %s with key %s", a, replay.Since(), replay.Key())
	}
	b.settle(replay, unknown)
	if got, _ := b.try(with(intent("i"))); got != "answer no money" {
		t.Errorf("settling a replay changed it: %s", got)
	}
}

func TestFirstSettleCounts(t *testing.T) {
	b := newBook(t, idempotency.LedgerOptions{})
	_, ticket := b.try(with(intent("i")))
	b.settle(ticket, completed)
	b.settle(ticket, unknown)
	if got, _ := b.try(with(intent("i"))); got != "answer paid" {
		t.Errorf("after a second Settle: %s", got)
	}
}

// Calls that nobody can ask for again leave nothing behind.
func TestForgetsTheNameless(t *testing.T) {
	b := newBook(t, idempotency.LedgerOptions{})
	b.store = idempotency.NewMemory(&idempotency.MemoryOptions{MaxEntries: 2})
	b.restart()
	for range 10 {
		for _, s := range []idempotency.Settlement{completed, failed} {
			got, ticket := b.try(pay())
			if got != "send" {
				t.Fatalf("got %s", got)
			}
			b.settle(ticket, s)
		}
	}
}

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

// An intent whose key is that of an earlier call is that call, whatever name it is
// asked for by next.
func TestIntentWithTheKeyOfAnEarlierCall(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  idempotency.Settlement
		call idempotency.Call // which has the earlier call's key
		told string
		next idempotency.Call // which has not
		want string
	}{
		{"completed", completed, with(intent("i"), hostKey("k")), "answer paid", with(intent("i")), "answer paid"},
		{"unknown", unknown, with(intent("i"), hostKey("k")), "unknown", with(intent("i")), "unknown"},
		{"unknown, keyed", unknown, with(intent("i"), hostKey("k"), keyed), "send", with(intent("i")), "running"},
		{"failed", failed, with(intent("i"), hostKey("k")), "send", with(intent("i")), "running"},
		{"other arguments", completed, with(intent("i"), hostKey("k")), "answer paid", with(intent("i"), args(2)), "mismatch"},
		{"another key", completed, with(intent("i"), hostKey("k")), "answer paid", with(intent("i"), hostKey("l")), "mismatch"},
		{"not served", completed, with(intent("i"), hostKey("k"), args(2)), "mismatch", with(intent("i"), args(2)), "send"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBook(t, idempotency.LedgerOptions{})
			_, first := b.try(with(hostKey("k")))
			b.settle(first, tt.end)
			if got, _ := b.try(tt.call); got != tt.told {
				t.Fatalf("with the key: %s, want %s", got, tt.told)
			}
			if got, _ := b.try(tt.next); got != tt.want {
				t.Errorf("by its intent: %s, want %s", got, tt.want)
			}
		})
	}
}

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
