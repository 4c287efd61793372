package idempotency

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// A Ticket is a call that [Ledger.Begin] has let pass, or the answer that it had
// before. It is safe for concurrent use.
type Ticket struct {
	ledger  *Ledger
	flight  *flight // nil for an answer
	entry   Entry   // as it is stored
	adopted bool
	// retention of the call where it ends in doubt
	retention time.Duration
	answer    *Answer
	settled   atomic.Bool
}

// An Answer is what a call was answered before.
type Answer struct {
	// Body is what was given to [Ticket.Settle]. Do not change its bytes.
	Body []byte
	// IsError says that the answer is an error.
	IsError bool
}

// A Settlement says what became of a call.
type Settlement struct {
	// State is [Failed], [Completed] or [Unknown]; anything else counts as Unknown.
	State State
	// Answer is the answer of a completed call, in any form that the caller can read
	// again. Its bytes must not be changed afterwards. Without any, the ledger
	// remembers that an answer came.
	Answer []byte
	// IsError says that the answer is an error.
	IsError bool
	// Rounds is how many rounds of the call, earlier ones included, were answered with a
	// question.
	Rounds int
	// Verified says that the state covers earlier tries of the call too: somebody has
	// looked. Without it a failed repeat of a call in doubt leaves it in doubt.
	Verified bool
}

// Key is the key that the call has to carry: the host's own, that of the intent,
// that of the call it repeats, or a fresh one.
func (t *Ticket) Key() string { return t.entry.Key }

// Answer is what the call was answered before, or nil for a call to be sent.
func (t *Ticket) Answer() *Answer { return t.answer }

// Since is when the call was begun that this one repeats, or whose answer it gets;
// zero for a call that has no effect yet.
func (t *Ticket) Since() time.Time {
	if t.answer == nil && !t.entry.Doubt {
		return time.Time{}
	}
	return t.entry.Started
}

// Rounds is how many rounds of the call were answered with a question when it was
// settled last: where it goes on, and is not begun anew, the next is one more. known is
// false for a call that was not made before.
func (t *Ticket) Rounds() (n int, known bool) { return t.entry.Rounds, t.entry.Revision > 1 }

// Adopted reports whether the call has taken over the key, or the answer, of an
// equal call whose outcome was unknown: see [Call.GuardWindow].
func (t *Ticket) Adopted() bool { return t.adopted }

// Settle says what became of the call, and lets those who wait for it go on. Only
// the first Settle counts, so that a deferred one can stand for every way out that
// was not foreseen:
//
//	defer ticket.Settle(ctx, idempotency.Settlement{State: idempotency.Unknown})
//
// A call that is never settled stays started: to everybody else its outcome is
// unknown, and whoever makes it again in this process waits in vain. Settle does not
// stop at the end of ctx, since a call whose caller has left is one to be written
// down. An [*Error] of KindStore says that it could not be: then too, and where the
// store panics, the outcome counts as unknown. Settling an answer does nothing.
func (t *Ticket) Settle(ctx context.Context, s Settlement) error {
	if t.flight == nil || t.settled.Swap(true) {
		return nil
	}
	l := t.ledger
	e, lost := t.entry, true
	// On every way out, a panic of the store's too.
	defer func() { l.flights.land(t.flight, &e, lost) }()
	now := l.opts.Now()
	e.settle(s, now, l.opts.Retention)
	if e.Doubt {
		e.Expires = now.Add(t.retention)
	}
	err := t.write(context.WithoutCancel(ctx), &e, now)
	lost = err != nil && !errors.Is(err, ErrConflict)
	if err != nil {
		return settleFailed(&e, err)
	}
	return nil
}

// write stores the settled entry. Where the started one has expired meanwhile, by a
// long call or a clock that was set, it is stored anew: what became of the call is not
// to be forgotten at the moment in which it is known.
func (t *Ticket) write(ctx context.Context, e *Entry, now time.Time) error {
	kept := e.within(t.ledger.opts.MaxAnswer)
	err := t.ledger.store.Put(ctx, kept, now)
	if errors.Is(err, ErrConflict) && !t.entry.Expires.After(now) {
		kept.Revision = 0
		err = t.ledger.store.Put(ctx, kept, now)
	}
	return err
}

// start makes the entry that of a call about to be sent.
func (e *Entry) start(r *request, owner string, retention time.Duration) {
	e.Doubt = e.Unresolved()
	if !e.Doubt {
		e.Started = r.now
	}
	e.State = Started
	e.Named = e.Named || r.named
	e.Owner = owner
	e.Changed = r.now
	e.Expires = r.now.Add(retention)
}

// settle makes the entry that of a call whose outcome is known. Nobody can ask for
// a call again that the host did not name, so once nothing is in doubt it is
// forgotten.
func (e *Entry) settle(s Settlement, now time.Time, retention time.Duration) {
	e.State = s.outcome(e.Doubt)
	e.Doubt = e.State == Unknown
	e.Rounds = s.Rounds
	e.Changed = now
	e.Expires = now.Add(retention)
	if !e.Named && !e.Doubt {
		e.Expires = now
	}
	if e.State == Completed {
		e.Answer, e.IsError = s.Answer, s.IsError
	}
}

// within is the entry without an answer that is larger than so many bytes.
func (e Entry) within(max int) Entry {
	if len(e.Answer) > max {
		e.Answer = nil
	}
	return e
}

func (s Settlement) outcome(doubt bool) State {
	switch {
	case s.State == Completed:
		return Completed
	case s.State == Failed && (!doubt || s.Verified):
		return Failed
	}
	return Unknown
}
