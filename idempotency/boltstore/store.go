package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/surecall/surecall/idempotency"
)

// The buckets. A record is known by its number, eight bytes that bbolt counts.
var (
	records = []byte("records") // number: entry
	names   = []byte("names")   // hash of a scope and an ID or Key: number
	equal   = []byte("equal")   // hash of a scope, fingerprint, number: owner of what is plainly started; unresolved entries
	expiry  = []byte("expiry")  // time, number: nothing
)

// sweep is how many expired entries a write removes at most: more than it adds.
const sweep = 8

// A Store is an [idempotency.Store] in one file. It is safe for concurrent use by
// the one process that has it open. Writes are made one at a time; who waits for
// its turn does so no longer than its context.
type Store struct {
	path   string
	db     *bolt.DB
	turn   chan struct{}         // held by who writes
	broken atomic.Pointer[error] // set once the file is found to be damaged
}

// Close gives the file back. A store that is closed returns errors.
func (s *Store) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.broken.Load() != nil {
		return nil // bbolt may hold its locks for ever
	}
	return s.db.Close()
}

// Find implements [idempotency.Store].
func (s *Store) Find(ctx context.Context, q idempotency.Query, now time.Time) ([]idempotency.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var found []idempotency.Entry
	err := s.guarded(func() error {
		return s.db.View(func(tx *bolt.Tx) (err error) {
			found, err = table{tx}.find(q, now)
			return err
		})
	})
	if err != nil {
		return nil, explain("reading", s.path, err)
	}
	return found, nil
}

// Put implements [idempotency.Store].
func (s *Store) Put(ctx context.Context, e idempotency.Entry, now time.Time) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	err := s.guarded(func() error {
		return s.db.Update(func(tx *bolt.Tx) error { return table{tx}.put(e, now) })
	})
	if err == nil || errors.Is(err, idempotency.ErrConflict) {
		return err
	}
	return explain(writing, s.path, err)
}

// guarded runs f, which reads the mapped file. bbolt panics at a page that makes no
// sense, and the system faults at one that is no longer there: from then on the
// store is broken, since bbolt's locks may be held for ever.
func (s *Store) guarded(f func() error) error {
	if err := s.broken.Load(); err != nil {
		return *err
	}
	err := guarded(f)
	if errors.Is(err, ErrCorrupt) {
		s.broken.CompareAndSwap(nil, &err)
	}
	return err
}

// errPanic says that bbolt panicked.
var errPanic = errors.New("it led bbolt astray")

func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %w: %v", ErrCorrupt, errPanic, p)
		}
	}()
	return f()
}

// A table is the entries, as one transaction sees them.
type table struct{ *bolt.Tx }

func (t table) find(q idempotency.Query, now time.Time) ([]idempotency.Entry, error) {
	var found []idempotency.Entry
	var seen [][]byte
	add := func(number []byte) error {
		if number == nil || contains(seen, number) {
			return nil
		}
		seen = append(seen, number)
		e, err := t.entry(number)
		if err == nil && e.Expires.After(now) {
			found = append(found, e)
		}
		return err
	}
	for _, name := range []string{q.ID, q.Key} {
		if name == "" {
			continue
		}
		if err := add(t.number(q.Scope, name)); err != nil {
			return nil, err
		}
	}
	prefix := equalPrefix(q.Scope, q.Fingerprint)
	c := t.Bucket(equal).Cursor()
	for k, owner := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, owner = c.Next() {
		if len(owner) > 0 && string(owner) == q.Owner {
			continue
		}
		if err := add(k[len(prefix):]); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func contains(all [][]byte, b []byte) bool {
	for _, x := range all {
		if bytes.Equal(x, b) {
			return true
		}
	}
	return false
}

func (t table) put(e idempotency.Entry, now time.Time) error {
	if err := t.removeExpired(now); err != nil {
		return err
	}
	byID, err := t.stored(e.Scope, e.ID, now)
	if err != nil {
		return err
	}
	byKey, err := t.stored(e.Scope, e.Key, now)
	if err != nil {
		return err
	}
	if !bytes.Equal(byID, byKey) {
		return idempotency.ErrConflict
	}
	if byID == nil {
		return t.add(e, now)
	}
	return t.replace(byID, e, now)
}

// add writes a new entry.
func (t table) add(e idempotency.Entry, now time.Time) error {
	if e.Revision != 0 {
		return idempotency.ErrConflict
	}
	if !e.Expires.After(now) {
		return nil
	}
	n, err := t.Bucket(records).NextSequence()
	if err != nil {
		return err
	}
	return t.write(binary.BigEndian.AppendUint64(nil, n), e)
}

// replace writes the next revision of an entry, or removes it.
func (t table) replace(number []byte, e idempotency.Entry, now time.Time) error {
	old, err := t.entry(number)
	if err != nil {
		return err
	}
	if e.Revision != old.Revision || e.ID != old.ID || e.Key != old.Key {
		return idempotency.ErrConflict
	}
	if err := t.remove(number, old); err != nil || !e.Expires.After(now) {
		return err
	}
	return t.write(number, e)
}

// stored returns the number of the entry with a name; one that has expired it
// removes.
func (t table) stored(scope, name string, now time.Time) ([]byte, error) {
	number := bytes.Clone(t.number(scope, name))
	if number == nil {
		return nil, nil
	}
	e, err := t.entry(number)
	if err != nil {
		return nil, err
	}
	if !e.Expires.After(now) {
		return nil, t.remove(number, e)
	}
	return number, nil
}

func (t table) number(scope, name string) []byte { return t.Bucket(names).Get(nameKey(scope, name)) }

func (t table) entry(number []byte) (idempotency.Entry, error) {
	return decode(t.Bucket(records).Get(number))
}

func (t table) write(number []byte, e idempotency.Entry) error {
	e.Revision++
	value, err := encode(e)
	if err != nil {
		return err
	}
	if err := t.Bucket(records).Put(number, value); err != nil {
		return err
	}
	return t.index(number, e, func(bucket, key, value []byte) error { return t.Bucket(bucket).Put(key, value) })
}

func (t table) remove(number []byte, e idempotency.Entry) error {
	if err := t.Bucket(records).Delete(number); err != nil {
		return err
	}
	return t.index(number, e, func(bucket, key, _ []byte) error { return t.Bucket(bucket).Delete(key) })
}

// index calls f for every place but records in which an entry is entered.
func (t table) index(number []byte, e idempotency.Entry, f func(bucket, key, value []byte) error) error {
	for _, name := range []string{e.ID, e.Key} {
		if err := f(names, nameKey(e.Scope, name), number); err != nil {
			return err
		}
	}
	if e.Unresolved() {
		var owner []byte
		if e.PlainlyStarted() {
			owner = []byte(e.Owner)
		}
		if err := f(equal, append(equalPrefix(e.Scope, e.Fingerprint), number...), owner); err != nil {
			return err
		}
	}
	return f(expiry, append(timeKey(e.Expires), number...), nil)
}

// removeExpired removes some of what has expired, so that the file stops growing.
func (t table) removeExpired(now time.Time) error {
	end := timeKey(now)
	for range sweep {
		k, _ := t.Bucket(expiry).Cursor().First()
		if k == nil || bytes.Compare(k[:len(end)], end) > 0 {
			return nil
		}
		number := bytes.Clone(k[len(end):])
		e, err := t.entry(number)
		if err != nil {
			return err
		}
		if err := t.remove(number, e); err != nil {
			return err
		}
	}
	return nil
}
