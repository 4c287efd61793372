package idempotency

import (
	"context"
	"errors"
	"time"
)

// A Store keeps entries for a [Ledger]. Two operations are all there is: one reads
// what matters to a call, the other writes one entry if nobody else has written it
// meanwhile. A call is begun by a Put of a new entry and settled by a Put of the
// same entry, so a store needs nothing but compare-and-set over two unique names:
// a transaction of a file, a script or a WATCH of Redis.
//
// The time is always an argument. A store is safe for concurrent use, by several
// ledgers too. It does not change the bytes of an Answer, given or returned, and
// may drop the Answer of a completed entry at any time. It never drops a started,
// unknown or completed entry before it expires; a failed one it may.
//
// Package storetest holds what every store must pass.
type Store interface {
	// Find returns the entries of a scope that matter to a call and have not expired
	// by now: those whose ID or Key is q.ID or q.Key, and those that are unresolved
	// and have q's fingerprint, in any order. Of the latter, q.Owner needs not all.
	Find(ctx context.Context, q Query, now time.Time) ([]Entry, error)
	// Put writes an entry and returns when that will last. Where e.Revision is 0, no
	// unexpired entry of the scope may hold e.ID or e.Key; else an entry with e.ID and
	// e.Key must be stored with that revision. If not, Put changes nothing and returns
	// [ErrConflict]. The stored entry gets the next revision. An entry that has
	// expired by now is removed instead of written.
	//
	// It returns [ErrFull] where the entry finds no room. After any other error the
	// entry may or may not have been written.
	//
	// The settling Put of a call gets a context that does not end with the call: a
	// store that talks to a network bounds its own time.
	Put(ctx context.Context, e Entry, now time.Time) error
}

// A Query names a call within a scope. An empty ID or Key finds nothing.
type Query struct {
	Scope       string
	ID, Key     string
	Fingerprint Fingerprint
	// Owner is the ledger that asks, where it needs no equal calls of its own that are
	// plainly started: it knows that they are under way, and they may be many. A store
	// may leave those out, unless their ID or Key is asked for, or may ignore it; see
	// [Entry.PlainlyStarted]. "" leaves nothing out.
	Owner string
}

var (
	// ErrConflict says that another call holds the ID or the Key of an entry, or has
	// written the entry meanwhile.
	ErrConflict = errors.New("another call has written this entry")
	// ErrFull says that a store has no room and nothing that it may drop.
	ErrFull = errors.New("the ledger is full")
)
