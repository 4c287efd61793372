package idempotency

import (
	"cmp"
	"context"
	"errors"
)

// An alias is an entry that is only the second name of another: that of an intent
// whose key belongs to an earlier call. Without it the intent, asked for without the
// key, would be new. Where the intent has an alias already, that of a call which has
// expired, it comes to stand for this one.
func (r *request) aliasOf(call *Entry) *Entry {
	if r.alias != nil {
		e := *r.alias
		e.SameAs, e.Started = call.ID, call.Started
		return &e
	}
	e := r.first()
	e.Key, e.SameAs, e.State, e.Started = e.ID, call.ID, Completed, call.Started
	return &e
}

// isAliasFor reports whether the call is to be looked for under another name.
func (e *Entry) isAliasFor(r *request) bool {
	return e.SameAs != "" && e.Fingerprint == r.Fingerprint
}

// follow goes on under the name of the call that carries out the intent. Where
// somebody else has written the alias meanwhile, it starts from the intent again. The
// alias is written each time, so that it does not end before that call: the call is
// settled within one retention from now, or forgotten, and then remembered for another.
func (l *Ledger) follow(ctx context.Context, r *request, alias *Entry) error {
	e := *alias
	e.Owner, e.Changed, e.Expires = l.guard.owner, r.now, r.now.Add(2*l.opts.Retention)
	switch err := l.store.Put(ctx, e, r.now); {
	case errors.Is(err, ErrConflict):
		r.name()
		return nil
	case err != nil:
		return r.storeFailed(err)
	}
	e.Revision++
	r.alias, r.id, r.key = &e, e.SameAs, cmp.Or(r.Key, e.SameAs)
	return nil
}
