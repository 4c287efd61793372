package idempotency

import (
	"context"
	"errors"
	"time"
)

// A Doubt is an earlier call that stands in the way of another, because nobody knows
// what became of it, as it was when [Ledger.InDoubt] looked.
type Doubt struct {
	// Key is the key that the earlier call carried.
	Key string
	// Since is when it was begun.
	Since time.Time
	// Equal says that it is an equal call; otherwise it is the same one.
	Equal bool

	ledger *Ledger
	entry  Entry
}

// InDoubt returns what stands in the way of c: the same call, or the equal ones that
// the guard holds against it (see [Call.GuardWindow]). Calls that are under way in
// this process are not in doubt.
func (l *Ledger) InDoubt(ctx context.Context, c Call) ([]Doubt, error) {
	call := newRequest(l.scopes.of(c.Principal, c.Server), c)
	r := &call
	found, err := l.look(ctx, r)
	if err != nil {
		return nil, err
	}
	own := r.own(found)
	var doubts []Doubt
	for _, e := range l.inTheWay(r, found) {
		doubts = append(doubts, Doubt{Key: e.Key, Since: e.Started, Equal: own == nil, ledger: l, entry: e})
	}
	return doubts, nil
}

// Resolve says what became of the call, where somebody has found out, for example by
// asking the server: a [Failed] call may be sent again, a [Completed] one has
// s.Answer. It reports whether that has become of it. It has not where the call was
// made again, or resolved, since [Ledger.InDoubt] looked: then what was found out may
// not be true any more, and one has to look anew.
//
// Resolving an equal call as completed does not complete the one that it stands in
// the way of, which is an intent of its own.
func (d *Doubt) Resolve(ctx context.Context, s Settlement) (bool, error) {
	if s.State != Failed && s.State != Completed || d.ledger == nil {
		return false, nil
	}
	l, e, now := d.ledger, d.entry, d.ledger.opts.Now()
	s.Verified = true
	e.settle(s, now, l.opts.Retention)
	switch err := l.store.Put(ctx, e.within(l.opts.MaxAnswer), now); {
	case errors.Is(err, ErrConflict):
		return false, nil
	case err != nil:
		return false, (&request{Call: Call{Server: e.Server, Tool: e.Tool}}).storeFailed(err)
	}
	l.flights.found(&e)
	return true, nil
}

// look finds what matters to a call, under the name of the call that carries it
// out.
func (l *Ledger) look(ctx context.Context, r *request) ([]Entry, error) {
	for range maxLooks {
		r.now = l.opts.Now()
		found, err := l.store.Find(ctx, l.query(r, true), r.now)
		if err != nil {
			return nil, r.storeFailed(err)
		}
		own := r.own(found)
		if own == nil || !own.isAliasFor(r) {
			return found, nil
		}
		if err := l.follow(ctx, r, own); err != nil {
			return nil, err
		}
	}
	return nil, r.storeFailed(ErrConflict)
}

// inTheWay are the calls that keep r from being sent and are not under way.
func (l *Ledger) inTheWay(r *request, found []Entry) []Entry {
	if own := r.own(found); own != nil {
		if own.Unresolved() && !r.differs(own.Fingerprint, own.Key) && !l.guard.underWay(own) {
			return []Entry{*own}
		}
		return nil
	}
	var all []Entry
	for i := range found {
		if _, blocks := l.guard.end(r, &found[i]); blocks && !l.guard.underWay(&found[i]) {
			all = append(all, found[i])
		}
	}
	return all
}
