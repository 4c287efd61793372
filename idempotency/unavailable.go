package idempotency

import (
	"context"
	"errors"
	"time"
)

// Unavailable returns a store that can be neither read nor written; err says why, and
// is found in the chain of every error. A host whose store did not open can go on
// with it: calls of keyed and unsafe tools are refused ([KindStore]) before anything
// is sent, and reading tools work.
func Unavailable(err error) Store {
	if err == nil {
		err = errors.New("the ledger's store is not available")
	}
	return unavailable{err}
}

type unavailable struct{ err error }

func (u unavailable) Find(context.Context, Query, time.Time) ([]Entry, error) { return nil, u.err }
func (u unavailable) Put(context.Context, Entry, time.Time) error             { return u.err }
