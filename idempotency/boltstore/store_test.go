package boltstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/idempotency/boltstore"
	"github.com/surecall/surecall/idempotency/storetest"
)

var epoch = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func open(t testing.TB, path string) *boltstore.Store {
	t.Helper()
	s, err := boltstore.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func closeStore(t testing.TB, s *boltstore.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func ledgerFile(t testing.TB) string { return filepath.Join(t.TempDir(), "calls.ledger") }

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) idempotency.Store { return open(t, ledgerFile(t)) })
}

// entry is an unresolved one.
func entry(id string) idempotency.Entry {
	return idempotency.Entry{
		Scope: "s", ID: id, Key: "key of " + id, Tool: "pay", Fingerprint: idempotency.Fingerprint{1},
		State: idempotency.Started, Owner: "o", Started: epoch, Changed: epoch, Expires: epoch.Add(time.Hour),
	}
}

func put(t testing.TB, s *boltstore.Store, e idempotency.Entry) {
	t.Helper()
	if err := s.Put(t.Context(), e, epoch); err != nil {
		t.Fatal(err)
	}
}

// states tells the entries found by ID or as equal, as id=state.
func states(t testing.TB, s *boltstore.Store, ids ...string) string {
	t.Helper()
	var all []string
	for _, id := range ids {
		found, err := s.Find(t.Context(), idempotency.Query{Scope: "s", ID: id}, epoch)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			all = append(all, fmt.Sprintf("%s=%s/%d", e.ID, e.State, e.Revision))
		}
	}
	return strings.Join(all, " ")
}

func TestOutlivesTheProcess(t *testing.T) {
	path := ledgerFile(t)
	s := open(t, path)
	put(t, s, entry("a"))
	b := entry("b")
	put(t, s, b)
	b.State, b.Revision, b.Answer = idempotency.Completed, 1, []byte("paid")
	put(t, s, b)
	closeStore(t, s)
	s = open(t, path)
	if got := states(t, s, "a", "b"); got != "a=started/1 b=completed/2" {
		t.Errorf("after a restart: %s", got)
	}
	a := entry("a")
	a.State, a.Revision = idempotency.Unknown, 1
	put(t, s, a)
	put(t, s, entry("c"))
	if got := states(t, s, "a", "b", "c"); got != "a=unknown/2 b=completed/2 c=started/1" {
		t.Errorf("after more writes: %s", got)
	}
}

func TestFileIsPrivate(t *testing.T) {
	path := ledgerFile(t)
	open(t, path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	names, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(names) != 1 {
		t.Errorf("left behind: %v, error %v", names, err)
	}
}

func TestExpiredEntriesLeaveTheFile(t *testing.T) {
	s := open(t, ledgerFile(t))
	for i := range 40 {
		put(t, s, entry(fmt.Sprint(i)))
	}
	for i := range 5 {
		e := entry(fmt.Sprint("later", i))
		e.Expires = epoch.Add(3 * time.Hour)
		if err := s.Put(t.Context(), e, epoch.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if n := boltstore.Entries(s); n != 5 {
		t.Errorf("%d entries, want the 5 that have not expired", n)
	}
}

func TestClosed(t *testing.T) {
	s := open(t, ledgerFile(t))
	closeStore(t, s)
	if _, err := s.Find(t.Context(), idempotency.Query{}, epoch); err == nil {
		t.Error("a closed store finds")
	}
	if err := s.Put(t.Context(), entry("a"), epoch); err == nil {
		t.Error("a closed store writes")
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	held := filepath.Join(dir, "held")
	open(t, held)
	for _, tt := range []struct {
		name, path string
		is         error
		says       string
	}{
		{"no such directory", filepath.Join(dir, "none", "calls"), os.ErrNotExist, "creating the ledger file"},
		{"a directory", dir, boltstore.ErrCorrupt, dir},
		{"held by this process", held, boltstore.ErrLocked, "another process has it open; end that process"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			s, err := boltstore.Open(tt.path, &boltstore.Options{Timeout: 100 * time.Millisecond})
			if s != nil || !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), tt.path) {
				t.Errorf("error %v", err)
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestContextEnds(t *testing.T) {
	s := open(t, ledgerFile(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // Put chooses at random where both are possible
		if err := s.Put(ctx, entry("a"), epoch); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, idempotency.ErrConflict) {
			t.Fatal(err)
		}
	}
	if _, err := s.Find(ctx, idempotency.Query{}, epoch); !errors.Is(err, context.Canceled) {
		t.Errorf("Find: %v", err)
	}
}

// Files of all shapes open again: the check of their pages raises no false alarm.
func TestOpensWhatItWrote(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	path := ledgerFile(t)
	live := map[string]idempotency.Entry{}
	for round := range 12 {
		s := open(t, path)
		for range 60 {
			e := entry(fmt.Sprint(r.IntN(300)))
			if old, ok := live[e.ID]; ok {
				e = old
				e.State = []idempotency.State{idempotency.Completed, idempotency.Unknown, idempotency.Failed}[r.IntN(3)]
				e.Answer = make([]byte, r.IntN(3)*r.IntN(20_000))
				if r.IntN(3) == 0 {
					e.Expires = epoch
				}
			}
			put(t, s, e)
			e.Revision++
			live[e.ID] = e
			if !e.Expires.After(epoch) {
				delete(live, e.ID)
			}
		}
		if n := boltstore.Entries(s); n != len(live) {
			t.Fatalf("round %d: %d entries, want %d", round, n, len(live))
		}
		closeStore(t, s)
	}
}

// What the durable writes of a call cost.
func BenchmarkLedger(b *testing.B) {
	l := idempotency.NewLedger(open(b, ledgerFile(b)), nil)
	answer := make([]byte, 1024)
	for i := 0; b.Loop(); i++ {
		t, err := l.Begin(b.Context(), idempotency.Call{Tool: "pay", Intent: fmt.Sprint(i), Fingerprint: idempotency.Fingerprint{1}})
		if err != nil {
			b.Fatal(err)
		}
		if err := t.Settle(b.Context(), idempotency.Settlement{State: idempotency.Completed, Answer: answer}); err != nil {
			b.Fatal(err)
		}
	}
}
