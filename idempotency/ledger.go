package idempotency

import (
	"context"
	"errors"
	"time"
)

// A Ledger remembers keyed and unsafe calls, so that one intent has one effect.
// Begin a call before its first byte leaves, and settle its ticket when its
// outcome is known. It is safe for concurrent use. No lock is held between the two.
//
// A ledger knows its own calls that are under way from those that another process
// left behind. So there is one ledger for a store in a process; a second one takes
// the first one's calls for left behind, which is safe but refuses more.
type Ledger struct {
	store   Store
	opts    LedgerOptions
	scopes  *scopes
	guard   guard
	flights *flights
}

// LedgerOptions configure a [Ledger]. The zero value means the defaults.
type LedgerOptions struct {
	// Retention is how long a call is remembered after it was last heard of; 0 means
	// 24 hours. A repeat after that is a new call, so it should be longer than any
	// replay, and not longer than a server remembers keys.
	Retention time.Duration
	// MaxAnswer is the size in bytes up to which answers are kept; 0 means 1 MiB, less
	// keeps none. Of a larger one it is remembered that it came.
	MaxAnswer int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Owner says in entries which process began a call. A random part is added, since
	// a restarted process is another one.
	Owner string
}

// NewLedger returns a ledger over a store; nil is a new [Memory]. opts may be nil.
func NewLedger(store Store, opts *LedgerOptions) *Ledger {
	return newLedger(store, opts, "surecall scope 1")
}

// newLedger takes the domain of its scopes, which keeps ledgers of different kinds
// apart in one store.
func newLedger(store Store, opts *LedgerOptions, domain string) *Ledger {
	l := &Ledger{
		store:  store,
		scopes: &scopes{domain: domain, known: map[[2]string]string{}},
	}
	if opts != nil {
		l.opts = *opts
	}
	if l.store == nil {
		l.store = NewMemory(nil)
	}
	if l.opts.Retention <= 0 {
		l.opts.Retention = 24 * time.Hour
	}
	if l.opts.MaxAnswer == 0 {
		l.opts.MaxAnswer = 1 << 20
	}
	if l.opts.Now == nil {
		l.opts.Now = time.Now
	}
	l.flights = newFlights(l.opts.Retention)
	l.guard = guard{owner: l.opts.Owner + "/" + NewKey(), opened: l.opts.Now(), lost: l.flights.isLost}
	return l
}

// Begin asks whether a call may be made. It returns a ticket for a call that is to
// be sent, which has been written down when Begin returns; or, where [Ticket.Answer]
// is not nil, for one that was answered before. Every other case is an [*Error],
// and then nothing may be sent. Begin waits while the same call is under way in
// this process, until ctx ends.
func (l *Ledger) Begin(ctx context.Context, c Call) (*Ticket, error) {
	call := newRequest(l.scopes.of(c.Principal, c.Server), c)
	r := &call
	for looks := 0; looks < maxLooks; looks++ {
		r.now = l.opts.Now()
		fl, mine := l.flights.take(r)
		if !mine {
			t, err := l.wait(ctx, r, fl)
			if t != nil || err != nil {
				return t, err
			}
			looks, r.behind = 0, [2]string{}
			continue
		}
		t, err := l.board(ctx, r, fl)
		if t != nil || err != nil {
			return t, err
		}
	}
	return nil, r.storeFailed(ErrConflict)
}

// board decides on a call that has a flight. On every way out but with the ticket of
// a call that is to be sent, a panic of the store's too, the flight lands.
func (l *Ledger) board(ctx context.Context, r *request, fl *flight) (t *Ticket, err error) {
	defer func() {
		if t != &fl.ticket {
			l.flights.land(fl, &Entry{}, false)
		}
	}()
	r.flight = fl
	return l.open(ctx, r)
}

// maxLooks bounds how often a call that other processes keep writing is looked at.
const maxLooks = 100

// wait returns the answer of the same call, once that has landed. Where it landed
// without one, it returns neither a ticket nor an error: look again.
func (l *Ledger) wait(ctx context.Context, r *request, fl *flight) (*Ticket, error) {
	if fl.fingerprint != r.Fingerprint {
		return nil, r.mismatch(fl.began)
	}
	select {
	case <-fl.landed:
	case <-ctx.Done():
		return nil, r.stillRunning(fl.began, ctx.Err())
	}
	if e := fl.settled; e.State == Completed && e.ID == r.id && !r.differs(e.Fingerprint, e.Key) {
		return l.replay(r, e)
	}
	return nil, nil
}

// open decides on a call whose names it holds. It returns neither a ticket nor an
// error where something has changed meanwhile: look again.
func (l *Ledger) open(ctx context.Context, r *request) (*Ticket, error) {
	found, err := l.store.Find(ctx, l.query(r, l.guard.asked(r)), r.now)
	if err != nil {
		return nil, r.storeFailed(err)
	}
	own := r.own(found)
	switch {
	case own == nil:
		return l.openFirst(ctx, r, found)
	case own.isAliasFor(r):
		return nil, l.follow(ctx, r, own)
	case r.differs(own.Fingerprint, own.Key):
		return nil, r.mismatch(own.Started)
	case l.guard.underWay(own) && l.flights.holds(own, r.flight):
		// By a name that this call has not: wait for that.
		r.behind = own.names()
		return nil, nil
	case r.Intent != "" && own.ID != r.id:
		return nil, l.follow(ctx, r, r.aliasOf(own))
	}
	return l.openOwn(ctx, r, own, found)
}

// query asks for what matters to a call. Equal calls of this ledger that go on do
// not, but one that ended without being settled looks the same to a store.
func (l *Ledger) query(r *request, equal bool) Query {
	q := Query{Scope: r.scope}
	if equal {
		q.Fingerprint = r.Fingerprint
	}
	if r.named || r.adopted {
		q.ID, q.Key = r.id, r.key
	}
	if !l.flights.hasLost(r) {
		q.Owner = l.guard.owner
	}
	return q
}

// openOwn decides on a call that was made before and is not under way.
func (l *Ledger) openOwn(ctx context.Context, r *request, own *Entry, found []Entry) (*Ticket, error) {
	if l.guard.underWay(own) && !own.Doubt {
		// It is not: Begin failed although the entry was written, and nothing was sent.
		own.State = Failed
	}
	switch {
	case own.State == Completed:
		return l.replay(r, own)
	case own.State == Failed:
		return l.openAgain(ctx, r, own, found)
	case r.Keyed || r.RepeatAllowed:
		return l.send(ctx, r, own)
	}
	return nil, r.unknown(own)
}

// openFirst begins a call that nobody has made under its name, unless the guard
// objects.
func (l *Ledger) openFirst(ctx context.Context, r *request, found []Entry) (*Ticket, error) {
	blocker, until := l.guard.blocker(r, found)
	switch {
	case blocker == nil:
		e := r.first()
		return l.send(ctx, r, &e)
	case r.Keyed:
		r.adopt(blocker)
		return nil, nil
	}
	return nil, r.equalCall(blocker, until)
}

// openAgain begins a call that has failed before.
func (l *Ledger) openAgain(ctx context.Context, r *request, own *Entry, found []Entry) (*Ticket, error) {
	if blocker, until := l.guard.blocker(r, found); blocker != nil {
		return nil, r.equalCall(blocker, until)
	}
	return l.send(ctx, r, own)
}

// send writes down that a call is started.
func (l *Ledger) send(ctx context.Context, r *request, e *Entry) (*Ticket, error) {
	// A doubt is remembered for as long as the guard asks for it.
	retention := max(l.opts.Retention, r.GuardWindow)
	e.start(r, l.guard.owner, retention)
	switch err := l.store.Put(ctx, *e, r.now); {
	case errors.Is(err, ErrConflict):
		return nil, nil
	case err != nil:
		return nil, r.storeFailed(err)
	}
	l.flights.found(e)
	e.Revision++
	t := &r.flight.ticket
	t.ledger, t.flight, t.entry, t.adopted, t.retention = l, r.flight, *e, r.adopted, retention
	return t, nil
}

// replay returns the answer of a completed call.
func (l *Ledger) replay(r *request, e *Entry) (*Ticket, error) {
	if len(e.Answer) == 0 {
		return nil, r.notKept(e)
	}
	return &Ticket{entry: *e, adopted: r.adopted, answer: &Answer{Body: e.Answer, IsError: e.IsError}}, nil
}
