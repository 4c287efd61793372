package boltstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/idempotency/boltstore"
)

// filled is the content of a ledger file of several levels of pages, and the states
// of what it holds.
func filled(t *testing.T) (content []byte, ids []string, want string) {
	t.Helper()
	path := ledgerFile(t)
	s := open(t, path)
	for i := range 60 {
		e := entry(fmt.Sprint("call ", i))
		put(t, s, e)
		ids = append(ids, e.ID)
		if i%3 == 0 {
			e.State, e.Revision, e.Answer = idempotency.Completed, 1, make([]byte, i*100)
			put(t, s, e)
		}
	}
	want = states(t, s, ids...)
	closeStore(t, s)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content, ids, want
}

// expectDamage opens a damaged file: the error must say so, name the file and what
// to do, and the file must not have changed.
func expectDamage(t *testing.T, content []byte) {
	t.Helper()
	path := ledgerFile(t)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := boltstore.Open(path, nil)
	if s != nil {
		closeStore(t, s)
	}
	if !errors.Is(err, boltstore.ErrCorrupt) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "restore it from a copy") {
		t.Errorf("error %v", err)
	}
	after, err := os.ReadFile(path)
	if err != nil || string(after) != string(content) {
		t.Errorf("the file has changed (error %v)", err)
	}
}

func TestDamagedFiles(t *testing.T) {
	content, _, _ := filled(t)
	used := len(bytes.TrimRight(content, "\x00")) / 4096 * 4096 // a file grows ahead of its use
	for name, n := range map[string]int{
		"empty": 0, "one byte": 1, "part of a page": 1000, "one page": 4096, "a page and a half": 6000, "two pages": 8192,
		"half": len(content) / 2, "half, inside a page": len(content)/2 + 100, "all but a page": used,
	} {
		t.Run("cut to "+name, func(t *testing.T) { expectDamage(t, content[:n]) })
	}
	t.Run("text", func(t *testing.T) { expectDamage(t, []byte(strings.Repeat("no ledger\n", 10_000))) })
	t.Run("zeros", func(t *testing.T) { expectDamage(t, make([]byte, len(content))) })
	t.Run("the end zeroed", func(t *testing.T) {
		c := append([]byte{}, content...)
		clear(c[len(c)/2:])
		expectDamage(t, c)
	})
	t.Run("another program's file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "other")
		db, err := bolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		c, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		expectDamage(t, c)
	})
}

// Wherever a bit is flipped, the file is refused or everything is still in it.
func TestFlippedBits(t *testing.T) {
	content, ids, want := filled(t)
	r := rand.New(rand.NewPCG(3, 4))
	path := ledgerFile(t)
	refused := 0
	for range 250 {
		c := append([]byte{}, content...)
		at, bit := r.IntN(len(c)), byte(1)<<r.IntN(8)
		c[at] ^= bit
		if err := os.WriteFile(path, c, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := boltstore.Open(path, nil)
		if err != nil {
			if !errors.Is(err, boltstore.ErrCorrupt) {
				t.Fatalf("byte %d, bit %#x: %v", at, bit, err)
			}
			refused++
			continue
		}
		got := states(t, s, ids...)
		closeStore(t, s)
		if got != want {
			t.Fatalf("byte %d, bit %#x: holds %s\nwant %s", at, bit, got, want)
		}
	}
	t.Logf("refused %d of 250", refused)
	if refused < 50 {
		t.Errorf("refused %d of 250: is anything checked?", refused)
	}
}

// A file that is cut short under a store in use ends in errors, not in a crash.
func TestCutWhileOpen(t *testing.T) {
	content, ids, _ := filled(t)
	path := ledgerFile(t)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	if err := os.Truncate(path, 8192); err != nil {
		t.Fatal(err)
	}
	_, err := s.Find(t.Context(), idempotency.Query{Scope: "s", ID: ids[0]}, epoch)
	if !errors.Is(err, boltstore.ErrCorrupt) || !strings.Contains(err.Error(), path) {
		t.Errorf("Find: %v", err)
	}
	if err := s.Put(t.Context(), entry("new"), epoch); !errors.Is(err, boltstore.ErrCorrupt) {
		t.Errorf("Put: %v", err)
	}
	l := idempotency.NewLedger(s, nil)
	_, err = l.Begin(t.Context(), idempotency.Call{Tool: "pay"})
	var e *idempotency.Error
	if !errors.As(err, &e) || e.Kind != idempotency.KindStore {
		t.Errorf("Begin: %v", err)
	}
}
