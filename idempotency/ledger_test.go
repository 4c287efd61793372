package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
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

// The second name of a call lasts as long as the call: until a retention after it was
// settled, however long that took, and after every time that it was asked for.
func TestIntentLastsAsLongAsItsCall(t *testing.T) {
	const almost = 24*time.Hour - time.Second
	withKey, without := with(intent("i"), hostKey("k"), keyed), with(intent("i"), keyed)
	for _, tt := range []struct {
		name string
		do   func(b *book) // until the call is completed
	}{
		{"settled long after", func(b *book) {
			_, again := b.try(withKey)
			b.now = b.now.Add(almost)
			b.settle(again, completed)
		}},
		{"made again by its intent", func(b *book) {
			for range 3 {
				_, again := b.try(withKey)
				b.settle(again, unknown)
				b.now = b.now.Add(almost)
			}
			_, again := b.try(without)
			b.settle(again, completed)
		}},
		{"resolved", func(b *book) {
			_, again := b.try(withKey)
			b.settle(again, unknown)
			b.now = b.now.Add(almost)
			if resolved, err := b.Resolve(context.Background(), without, completed); err != nil || !resolved {
				b.t.Fatalf("resolved %t, %v", resolved, err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBook(t, idempotency.LedgerOptions{})
			_, first := b.try(with(hostKey("k"), keyed))
			b.settle(first, failed)
			tt.do(b)
			b.now = b.now.Add(almost)
			if got, _ := b.try(without); got != "answer paid" {
				t.Errorf("by its intent: %s", got)
			}
		})
	}
}

// An intent that is given another call's key, when its first call is forgotten, is
// that other call from then on.
func TestIntentWithTheKeysOfTwoCalls(t *testing.T) {
	b := newBook(t, idempotency.LedgerOptions{})
	for _, key := range []string{"k", "l"} {
		_, first := b.try(with(hostKey(key)))
		b.settle(first, failed)
		got, second := b.try(with(hostKey(key), intent("i")))
		if got != "send" {
			t.Fatalf("with key %s: %s", key, got)
		}
		b.settle(second, completed)
		if got, _ := b.try(with(intent("i"))); got != "answer paid" {
			t.Errorf("by its intent, after key %s: %s", key, got)
		}
		b.now = b.now.Add(24 * time.Hour)
	}
}

// A ledger for many principals remembers few of them, and mistakes none for another.
func TestManyPrincipals(t *testing.T) {
	b := newBook(t, idempotency.LedgerOptions{})
	as := func(n int) func(*idempotency.Call) {
		return func(c *idempotency.Call) { c.Principal = strings.Repeat("p", n%300) + strconv.Itoa(n) }
	}
	const many = 3000
	for _, want := range []string{"send", "answer paid"} {
		for n := range many {
			got, ticket := b.try(with(intent("i"), as(n)))
			if got != want {
				t.Fatalf("principal %d: %s, want %s", n, got, want)
			}
			b.settle(ticket, completed)
		}
		if n := b.Scopes(); n == 0 || n > 1024 {
			t.Errorf("remembers %d principals", n)
		}
	}
}

// meddler is a store in which somebody else writes an alias just before it comes to
// stand for the call l.
type meddler struct {
	idempotency.Store
	done bool
}

func (s *meddler) Put(ctx context.Context, e idempotency.Entry, now time.Time) error {
	if e.SameAs == "l" && !s.done {
		s.done = true
		found, err := s.Find(ctx, idempotency.Query{Scope: e.Scope, ID: e.ID}, now)
		if err != nil || len(found) != 1 {
			return fmt.Errorf("found %v, %w", found, err)
		}
		if err := s.Store.Put(ctx, found[0], now); err != nil {
			return err
		}
	}
	return s.Store.Put(ctx, e, now)
}

func TestAliasWrittenMeanwhile(t *testing.T) {
	b := newBook(t, idempotency.LedgerOptions{})
	s := &meddler{Store: b.store}
	b.store = s
	b.restart()
	_, first := b.try(with(hostKey("k")))
	b.settle(first, completed)
	if got, _ := b.try(with(hostKey("k"), intent("i"))); got != "answer paid" {
		t.Fatalf("with key k: %s", got)
	}
	b.now = b.now.Add(24 * time.Hour)
	_, second := b.try(with(hostKey("l")))
	b.settle(second, completed)
	for _, c := range []idempotency.Call{with(hostKey("l"), intent("i")), with(intent("i"))} {
		if got, _ := b.try(c); got != "answer paid" || !s.done {
			t.Errorf("%+v: %s, meddled %t", c, got, s.done)
		}
	}
}
