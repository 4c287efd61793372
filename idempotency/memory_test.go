package idempotency_test

import (
	"errors"
	"testing"
	"time"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/idempotency/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) idempotency.Store { return idempotency.NewMemory(nil) })
}

var epoch = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// entryOf is a new entry in a state, with an answer if it is completed.
func entryOf(id string, s idempotency.State) idempotency.Entry {
	e := idempotency.Entry{
		Scope: "s", ID: id, Key: id, Fingerprint: idempotency.Fingerprint{1}, State: s, Started: epoch, Changed: epoch, Expires: epoch.Add(time.Hour),
	}
	if s == idempotency.Completed {
		e.Answer = make([]byte, 1000)
	}
	return e
}

// stateOf tells an entry's state, and whether its answer is there: "completed",
// "completed, no answer", "none".
func stateOf(t *testing.T, m *idempotency.Memory, id string, now time.Time) string {
	t.Helper()
	found, err := m.Find(t.Context(), idempotency.Query{Scope: "s", ID: id}, now)
	switch {
	case err != nil:
		t.Fatal(err)
	case len(found) == 0:
		return "none"
	case found[0].State == idempotency.Completed && found[0].Answer == nil:
		return "completed, no answer"
	}
	return string(found[0].State)
}

// A step writes an entry in a state, so many minutes after the epoch.
type step struct {
	id     string
	state  idempotency.State
	minute int
	full   bool
}

func TestMemoryBounds(t *testing.T) {
	const started, failed, completed, unknown = idempotency.Started, idempotency.Failed, idempotency.Completed, idempotency.Unknown
	for _, tt := range []struct {
		name  string
		opts  idempotency.MemoryOptions
		steps []step
		want  map[string]string // at the last step's time
	}{
		{
			"full of what must stay", idempotency.MemoryOptions{MaxEntries: 3},
			[]step{{"a", started, 0, false}, {"b", completed, 0, false}, {"c", unknown, 0, false}, {"d", started, 1, true}},
			map[string]string{"a": "started", "b": "completed", "c": "unknown", "d": "none"},
		},
		{
			"failed entries make room, the oldest first", idempotency.MemoryOptions{MaxEntries: 3},
			[]step{{"a", unknown, 0, false}, {"b", failed, 0, false}, {"c", failed, 0, false}, {"d", started, 1, false}},
			map[string]string{"a": "unknown", "b": "none", "c": "failed", "d": "started"},
		},
		{
			"expired entries make room", idempotency.MemoryOptions{MaxEntries: 2},
			[]step{{"a", unknown, 0, false}, {"b", unknown, 30, false}, {"c", started, 59, true}, {"c", started, 60, false}, {"d", started, 89, true}, {"d", started, 90, false}},
			map[string]string{"a": "none", "b": "none", "c": "started", "d": "started"},
		},
		{
			"bytes: the oldest answers go", idempotency.MemoryOptions{MaxBytes: 5500},
			[]step{{"a", completed, 0, false}, {"b", completed, 0, false}, {"c", completed, 0, false}, {"d", completed, 1, false}},
			map[string]string{"a": "completed, no answer", "b": "completed", "c": "completed", "d": "completed"},
		},
		{
			"bytes: then failed entries", idempotency.MemoryOptions{MaxBytes: 1800},
			[]step{{"a", unknown, 0, false}, {"b", failed, 0, false}, {"c", unknown, 0, false}, {"d", started, 0, false}, {"e", started, 0, true}},
			map[string]string{"a": "unknown", "b": "none", "c": "unknown", "d": "started", "e": "none"},
		},
		{
			"bytes: an answer that never fits", idempotency.MemoryOptions{MaxBytes: 1200},
			[]step{{"a", completed, 0, false}, {"b", unknown, 0, false}},
			map[string]string{"a": "completed, no answer", "b": "unknown"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := idempotency.NewMemory(&tt.opts)
			now := epoch
			for _, s := range tt.steps {
				now = epoch.Add(time.Duration(s.minute) * time.Minute)
				e := entryOf(s.id, s.state)
				e.Expires = now.Add(time.Hour)
				if err := m.Put(t.Context(), e, now); errors.Is(err, idempotency.ErrFull) != s.full {
					t.Fatalf("Put %s at minute %d: %v", s.id, s.minute, err)
				}
			}
			for id, want := range tt.want {
				if got := stateOf(t, m, id, now); got != want {
					t.Errorf("%s is %s, want %s", id, got, want)
				}
			}
		})
	}
}

// What has expired does not wait until the store is full.
func TestMemoryForgetsWhatHasExpired(t *testing.T) {
	m := idempotency.NewMemory(nil)
	for i, id := range []string{"a", "b", "c"} {
		if err := m.Put(t.Context(), entryOf(id, idempotency.Unknown), epoch.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	d := entryOf("d", idempotency.Unknown)
	d.Expires = epoch.Add(2 * time.Hour)
	if err := m.Put(t.Context(), d, epoch.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if n := m.Len(); n != 1 {
		t.Errorf("holds %d entries", n)
	}
}

// A full store still lets the calls under way be settled.
func TestMemoryFullSettles(t *testing.T) {
	m := idempotency.NewMemory(&idempotency.MemoryOptions{MaxEntries: 2, MaxBytes: 2000})
	for _, id := range []string{"a", "b"} {
		if err := m.Put(t.Context(), entryOf(id, idempotency.Started), epoch); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"a", "b"} {
		e := entryOf(id, idempotency.Completed)
		e.Revision = 1
		if err := m.Put(t.Context(), e, epoch); err != nil {
			t.Errorf("settling %s: %v", id, err)
		}
	}
	for _, id := range []string{"a", "b"} {
		if got := stateOf(t, m, id, epoch); got != "completed, no answer" {
			t.Errorf("%s is %s", id, got)
		}
	}
}

// A ledger does not look at its own calls that are under way, however many are equal.
func TestMemoryLeavesOutWhatIsUnderWay(t *testing.T) {
	m := idempotency.NewMemory(nil)
	for i, owner := range []string{"o", "o", "p"} {
		e := entryOf(string(rune('a'+i)), idempotency.Started)
		e.Owner = owner
		if err := m.Put(t.Context(), e, epoch); err != nil {
			t.Fatal(err)
		}
	}
	for owner, want := range map[string]int{"": 3, "o": 1, "p": 2, "q": 3} {
		found, err := m.Find(t.Context(), idempotency.Query{Scope: "s", Fingerprint: idempotency.Fingerprint{1}, Owner: owner}, epoch)
		if err != nil || len(found) != want {
			t.Errorf("%q: found %d, error %v; want %d", owner, len(found), err, want)
		}
	}
}
