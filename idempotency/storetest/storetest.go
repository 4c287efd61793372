// Package storetest holds what every [idempotency.Store] must pass.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/surecall/surecall/idempotency"
)

// Run tests a store. open is called for each test and returns an empty store with
// room for some thousand entries; what has to be closed it leaves to t.Cleanup.
// Run it under the race detector.
func Run(t *testing.T, open func(t *testing.T) idempotency.Store) {
	for _, tt := range []struct {
		name string
		test func(*testing.T, *store)
	}{
		{"keeps every field", keepsFields},
		{"finds by id and by key", findsByName},
		{"finds equal calls that are unresolved", findsEqual},
		{"leaves out no more than its owner knows", leavesOutLittle},
		{"keeps scopes apart", keepsScopes},
		{"takes any text for a name", takesAnyName},
		{"gives a name once", givesNameOnce},
		{"writes the next revision only", writesNextRevision},
		{"lets entries expire", expires},
		{"removes what is written expired", removes},
		{"holds large answers", holdsLargeAnswers},
		{"holds many entries", holdsMany},
		{"lets one of many begin", oneBegins},
		{"loses no concurrent write", losesNoWrite},
		{"serves a ledger", servesLedger},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, &store{t, open(t)}) })
	}
}

// epoch is when the tests take place.
var epoch = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// store is a store whose errors end the test.
type store struct {
	t *testing.T
	idempotency.Store
}

func (s *store) put(e idempotency.Entry) {
	s.t.Helper()
	if err := s.Put(s.t.Context(), e, epoch); err != nil {
		s.t.Fatalf("Put %s revision %d: %v", e.ID, e.Revision, err)
	}
}

func (s *store) conflict(e idempotency.Entry) {
	s.t.Helper()
	if err := s.Put(s.t.Context(), e, epoch); !errors.Is(err, idempotency.ErrConflict) {
		s.t.Fatalf("Put %s (key %s) revision %d: %v, want ErrConflict", e.ID, e.Key, e.Revision, err)
	}
}

// find returns the IDs found at a time, sorted.
func (s *store) find(q idempotency.Query, now time.Time) []string {
	s.t.Helper()
	found, err := s.Find(s.t.Context(), q, now)
	if err != nil {
		s.t.Fatalf("Find: %v", err)
	}
	ids := []string{}
	for _, e := range found {
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	return ids
}

func (s *store) finds(q idempotency.Query, want ...string) {
	s.t.Helper()
	if got := s.find(q, epoch); !slices.Equal(got, want) {
		s.t.Fatalf("Find(%+v) = %q, want %q", q, got, want)
	}
}

// get returns the entry with an ID.
func (s *store) get(scope, id string) idempotency.Entry {
	s.t.Helper()
	found, err := s.Find(s.t.Context(), idempotency.Query{Scope: scope, ID: id}, epoch)
	if err != nil || len(found) != 1 {
		s.t.Fatalf("Find %q: %d entries, error %v; want one", id, len(found), err)
	}
	return found[0]
}

// entry is a new, started one that asks for what n says.
func entry(id string, n byte) idempotency.Entry {
	return idempotency.Entry{
		Scope: "s", ID: id, Key: id, Tool: "pay", Fingerprint: idempotency.Fingerprint{n, 1},
		State: idempotency.Started, Owner: "o", Started: epoch, Changed: epoch, Expires: epoch.Add(time.Hour),
	}
}

func withKey(e idempotency.Entry, key string) idempotency.Entry { e.Key = key; return e }

func inState(e idempotency.Entry, s idempotency.State) idempotency.Entry { e.State = s; return e }

func revised(e idempotency.Entry, r uint64) idempotency.Entry { e.Revision = r; return e }

func equals(n byte) idempotency.Query {
	return idempotency.Query{Scope: "s", Fingerprint: idempotency.Fingerprint{n, 1}}
}

func named(id, key string) idempotency.Query { return idempotency.Query{Scope: "s", ID: id, Key: key} }

func keepsFields(t *testing.T, s *store) {
	want := idempotency.Entry{
		Scope: "s", ID: "i", Key: "k", Named: true, Server: "bank", Tool: "pay",
		Fingerprint: idempotency.Fingerprint{1, 31: 2}, State: idempotency.Completed, Doubt: true, Owner: "o",
		Started: epoch.Add(time.Nanosecond), Changed: epoch.Add(time.Second), Expires: epoch.Add(time.Hour),
		Answer: []byte("{\"a\":\xff\x00}"), IsError: true,
	}
	s.put(want)
	want.Revision = 1
	if got := s.get("s", "i"); !same(got, want) {
		t.Errorf("stored %+v\nwant %+v", got, want)
	}
	want.State, want.Answer, want.IsError = idempotency.Unknown, nil, false
	s.put(want)
	want.Revision = 2
	if got := s.get("s", "i"); !same(got, want) {
		t.Errorf("stored %+v\nwant %+v", got, want)
	}
}

func same(a, b idempotency.Entry) bool {
	if !a.Started.Equal(b.Started) || !a.Changed.Equal(b.Changed) || !a.Expires.Equal(b.Expires) || !bytes.Equal(a.Answer, b.Answer) {
		return false
	}
	a.Started, a.Changed, a.Expires, a.Answer = b.Started, b.Changed, b.Expires, b.Answer
	return fmt.Sprint(a) == fmt.Sprint(b)
}

func findsByName(_ *testing.T, s *store) {
	s.put(withKey(entry("i", 1), "k"))
	s.put(inState(withKey(entry("j", 2), "l"), idempotency.Completed))
	s.finds(named("", ""))
	s.finds(named("x", "y"))
	s.finds(named("i", ""), "i")
	s.finds(named("k", ""), "i")
	s.finds(named("", "k"), "i")
	s.finds(named("", "i"), "i")
	s.finds(named("i", "k"), "i")
	s.finds(named("i", "l"), "i", "j")
	s.finds(idempotency.Query{Scope: "s", ID: "j", Fingerprint: idempotency.Fingerprint{1, 1}}, "i", "j")
}

func findsEqual(_ *testing.T, s *store) {
	s.put(inState(entry("started", 1), idempotency.Started))
	s.put(inState(entry("unknown", 1), idempotency.Unknown))
	s.put(inState(entry("failed", 1), idempotency.Failed))
	s.put(inState(entry("completed", 1), idempotency.Completed))
	s.put(inState(entry("other", 2), idempotency.Unknown))
	s.finds(equals(1), "started", "unknown")
	s.finds(equals(2), "other")
	s.finds(equals(3))
	s.finds(idempotency.Query{Scope: "s", ID: "started", Key: "failed", Fingerprint: idempotency.Fingerprint{1, 1}}, "failed", "started", "unknown")
	s.put(inState(revised(entry("started", 1), 1), idempotency.Completed))
	s.put(inState(revised(entry("failed", 1), 1), idempotency.Started))
	s.finds(equals(1), "failed", "unknown")
}

// leavesOutLittle takes the owner's plainly started calls for found, whether they
// are or not.
func leavesOutLittle(t *testing.T, s *store) {
	by := func(owner string, e idempotency.Entry) idempotency.Entry { e.Owner = owner; return e }
	doubted := func(e idempotency.Entry) idempotency.Entry { e.Doubt = true; return e }
	finds := func(q idempotency.Query, want ...string) {
		t.Helper()
		q.Owner = "o"
		got := slices.DeleteFunc(s.find(q, epoch), func(id string) bool { return id == "plain" && q.ID != id })
		if !slices.Equal(got, want) {
			t.Fatalf("Find(%+v) = %q, want %q", q, got, want)
		}
	}
	s.put(by("o", entry("plain", 1)))
	s.put(by("p", entry("another's", 1)))
	s.put(by("", entry("nobody's", 1)))
	s.put(by("o", doubted(entry("doubted", 1))))
	s.put(by("o", inState(entry("unknown", 1), idempotency.Unknown)))
	s.put(by("o", inState(entry("completed", 1), idempotency.Completed)))
	finds(equals(1), "another's", "doubted", "nobody's", "unknown")
	s.finds(equals(1), "another's", "doubted", "nobody's", "plain", "unknown")
	byName := equals(1)
	byName.ID = "plain"
	finds(byName, "another's", "doubted", "nobody's", "plain", "unknown")
	finds(named("plain", ""), "plain")

	// What is written next counts.
	s.put(by("o", revised(entry("another's", 1), 1)))
	s.put(by("p", revised(entry("nobody's", 1), 1)))
	s.put(by("o", revised(entry("doubted", 1), 1)))
	s.put(by("o", revised(entry("unknown", 1), 1)))
	s.put(by("p", revised(inState(entry("completed", 1), idempotency.Started), 1)))
	got := s.find(withOwner(equals(1)), epoch)
	for _, id := range []string{"nobody's", "completed"} {
		if !slices.Contains(got, id) {
			t.Errorf("found %q, not %s", got, id)
		}
	}
	s.finds(equals(1), "another's", "completed", "doubted", "nobody's", "plain", "unknown")
	s.put(by("o", revised(inState(entry("another's", 1), idempotency.Unknown), 2)))
	s.put(by("o", revised(doubted(entry("doubted", 1)), 2)))
	s.put(by("p", revised(entry("unknown", 1), 2)))
	s.put(by("p", revised(inState(entry("completed", 1), idempotency.Failed), 2)))
	finds(equals(1), "another's", "doubted", "nobody's", "unknown")
}

func withOwner(q idempotency.Query) idempotency.Query { q.Owner = "o"; return q }

func keepsScopes(_ *testing.T, s *store) {
	for _, scope := range []string{"a", "b"} {
		e := entry("i", 1)
		e.Scope = scope
		s.put(e)
	}
	s.finds(named("i", "i"))
	s.finds(equals(1))
	for _, scope := range []string{"a", "b"} {
		s.finds(idempotency.Query{Scope: scope, ID: "i", Fingerprint: idempotency.Fingerprint{1, 1}}, "i")
	}
}

func takesAnyName(t *testing.T, s *store) {
	names := []string{" ", "\x00", "a\x00b", "ü/:{}\n", strings.Repeat("k", 70_000), strings.Repeat("k", 70_001)}
	for i, id := range names {
		s.put(withKey(entry(id, byte(i)), id+"\x00key"))
	}
	for _, id := range names {
		s.finds(named(id, ""), id)
		s.finds(named("", id+"\x00key"), id)
		if got := s.get("s", id); got.Key != id+"\x00key" {
			t.Errorf("the key of %.20q changed to %.20q", id, got.Key)
		}
	}
}

func givesNameOnce(t *testing.T, s *store) {
	s.put(withKey(entry("i", 1), "k"))
	for _, e := range []idempotency.Entry{
		withKey(entry("i", 1), "k"), withKey(entry("i", 2), "l"), withKey(entry("j", 2), "k"),
		withKey(entry("k", 2), "l"), withKey(entry("j", 2), "i"), withKey(entry("k", 2), "i"),
	} {
		s.conflict(e)
	}
	s.finds(equals(2))
	if got := s.get("s", "i"); got.Revision != 1 || got.Fingerprint[0] != 1 {
		t.Errorf("a refused write changed the entry: %+v", got)
	}
}

func writesNextRevision(t *testing.T, s *store) {
	s.conflict(revised(entry("i", 1), 1))
	s.put(entry("i", 1))
	s.conflict(revised(entry("i", 1), 2))
	s.conflict(entry("i", 1))
	s.put(inState(revised(entry("i", 1), 1), idempotency.Unknown))
	s.conflict(inState(revised(entry("i", 1), 1), idempotency.Completed))
	s.conflict(revised(withKey(entry("i", 1), "k"), 2))
	if got := s.get("s", "i"); got.State != idempotency.Unknown || got.Revision != 2 {
		t.Errorf("entry %+v, want unknown in revision 2", got)
	}
}

func expires(t *testing.T, s *store) {
	s.put(withKey(entry("i", 1), "k"))
	q := idempotency.Query{Scope: "s", ID: "i", Key: "k", Fingerprint: idempotency.Fingerprint{1, 1}}
	end := epoch.Add(time.Hour)
	if got := s.find(q, end.Add(-time.Nanosecond)); len(got) != 1 {
		t.Errorf("just before it expires: %q", got)
	}
	if got := s.find(q, end); len(got) != 0 {
		t.Errorf("when it has expired: %q", got)
	}
	later := withKey(entry("j", 1), "k")
	later.Expires = end.Add(time.Hour)
	if err := s.Put(t.Context(), later, end); err != nil {
		t.Fatalf("the name of an expired entry: %v", err)
	}
	if got := s.find(q, end); !slices.Equal(got, []string{"j"}) {
		t.Errorf("after the name was given again: %q", got)
	}
	settled := revised(withKey(entry("i", 1), "k"), 1)
	settled.Expires = later.Expires
	if err := s.Put(t.Context(), settled, end); !errors.Is(err, idempotency.ErrConflict) {
		t.Errorf("an expired entry was written: %v", err)
	}
}

func removes(_ *testing.T, s *store) {
	gone := func(e idempotency.Entry) idempotency.Entry { e.Expires = epoch; return e }
	s.put(gone(entry("never", 1)))
	s.put(withKey(entry("i", 1), "k"))
	s.conflict(gone(entry("i", 1)))
	s.finds(named("i", "k"), "i")
	s.put(gone(revised(withKey(entry("i", 1), "k"), 1)))
	s.finds(named("i", "k"))
	s.finds(named("never", ""))
	s.finds(equals(1))
	s.put(entry("k", 1))
}

func holdsLargeAnswers(t *testing.T, s *store) {
	e := inState(entry("i", 1), idempotency.Completed)
	e.Answer = bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	s.put(e)
	if got := s.get("s", "i"); len(got.Answer) > 0 && !bytes.Equal(got.Answer, e.Answer) {
		t.Error("the answer changed")
	}
}

func holdsMany(_ *testing.T, s *store) {
	const n = 500
	for i := range n {
		s.put(withKey(entry(fmt.Sprint("i", i), byte(i%10)), fmt.Sprint("k", i)))
	}
	for i := range n {
		s.finds(named("", fmt.Sprint("k", i)), fmt.Sprint("i", i))
	}
	if got := s.find(equals(3), epoch); len(got) != n/10 {
		s.t.Errorf("%d equal calls, want %d", len(got), n/10)
	}
}

// together runs n functions at once and returns their errors.
func together(n int, f func(i int) error) []error {
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- f(i) }()
	}
	all := make([]error, n)
	for i := range all {
		all[i] = <-errs
	}
	return all
}

func oneBegins(t *testing.T, s *store) {
	for round := range 20 {
		id := fmt.Sprint("i", round)
		begun := 0
		for _, err := range together(8, func(i int) error {
			return s.Put(t.Context(), withKey(entry(id, byte(i)), fmt.Sprint("k", i%4, "-", round)), epoch)
		}) {
			switch {
			case err == nil:
				begun++
			case !errors.Is(err, idempotency.ErrConflict):
				t.Fatal(err)
			}
		}
		if begun != 1 {
			t.Fatalf("%d of 8 began the same call", begun)
		}
	}
}

func losesNoWrite(t *testing.T, s *store) {
	const writers, writes = 8, 25
	s.put(entry("i", 1))
	for _, err := range together(writers, func(int) error {
		for range writes {
			if err := s.increment(t.Context()); err != nil {
				return err
			}
		}
		return nil
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := s.get("s", "i"); got.Revision != writers*writes+1 {
		t.Errorf("revision %d after %d writes", got.Revision, writers*writes+1)
	}
}

// increment writes the entry i once, however often others are faster.
func (s *store) increment(ctx context.Context) error {
	for {
		found, err := s.Find(ctx, named("i", ""), epoch)
		if err != nil {
			return err
		}
		if len(found) != 1 {
			return fmt.Errorf("found %d entries", len(found))
		}
		if err := s.Put(ctx, found[0], epoch); !errors.Is(err, idempotency.ErrConflict) {
			return err
		}
	}
}

// servesLedger makes each of some intents from several goroutines at once, through
// two ledgers.
func servesLedger(t *testing.T, s *store) {
	const intents = 10
	var effects [intents]chan struct{}
	for i := range effects {
		effects[i] = make(chan struct{}, 100)
	}
	ledgers := []*idempotency.Ledger{idempotency.NewLedger(s.Store, nil), idempotency.NewLedger(s.Store, nil)}
	for _, err := range together(6, func(g int) error {
		for i := range intents {
			if err := act(t.Context(), ledgers[g%2], i, effects[i]); err != nil {
				return err
			}
		}
		return nil
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	for i := range effects {
		if n := len(effects[i]); n != 1 {
			t.Errorf("intent %d took effect %d times", i, n)
		}
	}
}

// act carries out an intent, or gets its answer, or is told that the other ledger
// has begun it.
func act(ctx context.Context, l *idempotency.Ledger, intent int, effects chan<- struct{}) error {
	t, err := l.Begin(ctx, idempotency.Call{
		Server: "bank", Tool: "pay", Intent: fmt.Sprint(intent), Fingerprint: idempotency.Fingerprint{byte(intent)},
	})
	var refused *idempotency.Error
	switch {
	case errors.As(err, &refused) && refused.Kind == idempotency.KindUnknown:
		return nil
	case err != nil:
		return err
	case t.Answer() != nil:
		if got := string(t.Answer().Body); got != fmt.Sprint("paid ", intent) {
			return fmt.Errorf("intent %d was answered %q", intent, got)
		}
		return nil
	}
	effects <- struct{}{}
	return t.Settle(ctx, idempotency.Settlement{State: idempotency.Completed, Answer: []byte(fmt.Sprint("paid ", intent))})
}
