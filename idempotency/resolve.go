package idempotency

import (
	"context"
	"time"
)

// A Doubt is an earlier call that stands in the way of another, because nobody knows
// what became of it.
type Doubt struct {
	// Key is the key that the earlier call carried. A [Call] with this Key and the same
	// Fingerprint names it for [Ledger.Resolve].
	Key string
	// Since is when it was begun.
	Since time.Time
	// Equal says that it is an equal call; otherwise it is the same one.
	Equal bool
}

// InDoubt returns what stands in the way of c, and what [Ledger.Resolve] would
// resolve for it: the same call, or the equal ones that the guard holds against it.
// Calls that are under way in this process are not in doubt.
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
		doubts = append(doubts, Doubt{Key: e.Key, Since: e.Started, Equal: own == nil})
	}
	return doubts, nil
}

// Resolve says what became of the earlier call that stands in the way of c: the
// same call, or the equal ones that the guard holds against it, none of them under
// way. Use it where somebody has found out, for example by asking the server: a
// [Failed] call may be sent again, a [Completed] one has s.Answer. It reports
// whether there was such a call.
//
// Resolving an equal call as completed does not complete c, which is an intent of
// its own.
func (l *Ledger) Resolve(ctx context.Context, c Call, s Settlement) (bool, error) {
	if s.State != Failed && s.State != Completed {
		return false, nil
	}
	call := newRequest(l.scopes.of(c.Principal, c.Server), c)
	r := &call
	found, err := l.look(ctx, r)
	if err != nil {
		return false, err
	}
	s.Verified = true
	resolved := false
	for _, e := range l.inTheWay(r, found) {
		e.settle(s, r.now, l.opts.Retention)
		if err := l.store.Put(ctx, e.within(l.opts.MaxAnswer), r.now); err != nil {
			return resolved, r.storeFailed(err)
		}
		l.flights.found(&e)
		resolved = true
	}
	return resolved, nil
}

// look finds what matters to a call, under the name of the call that carries it
// out.
func (l *Ledger) look(ctx context.Context, r *request) ([]Entry, error) {
	for range maxLooks {
		r.now = l.opts.Now()
		found, err := l.store.Find(ctx, l.query(r), r.now)
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
