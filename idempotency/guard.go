package idempotency

import (
	"context"
	"time"
)

type repeatContext struct{}

// WithRepeatAllowed lets calls made with the context pass although they, or equal
// calls, may have taken effect: somebody has looked, or a second effect does no
// harm. It lifts nothing else: a completed call is still answered from the ledger.
func WithRepeatAllowed(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatContext{}, true)
}

// RepeatAllowed reports whether [WithRepeatAllowed] is in force.
func RepeatAllowed(ctx context.Context) bool {
	allowed, _ := ctx.Value(repeatContext{}).(bool)
	return allowed
}

// Aside returns a context for calls that are other decisions than the one which is
// being carried out: without its intent, its key and its permission to repeat. The
// principal stays.
func Aside(ctx context.Context) context.Context {
	if IntentFrom(ctx) != "" {
		ctx = WithIntent(ctx, "")
	}
	if KeyFrom(ctx) != "" {
		ctx = WithKey(ctx, "")
	}
	if RepeatAllowed(ctx) {
		ctx = context.WithValue(ctx, repeatContext{}, false)
	}
	return ctx
}

// A guard knows which calls are in doubt.
type guard struct {
	owner  string
	opened time.Time
	lost   func(*Entry) (time.Time, bool) // whether, and when, a call of ours ended without being settled
}

// inDoubt reports whether a call may have taken effect without anybody knowing:
// it ended unknown, or was left behind, or is a repeat of one that was.
func (g *guard) inDoubt(e *Entry) bool {
	return e.State == Unknown || e.State == Started && (e.Doubt || !g.running(e))
}

// running reports whether a started call is one of ours that goes on.
func (g *guard) running(e *Entry) bool {
	_, lost := g.lost(e)
	return e.Owner == g.owner && !lost
}

// since is when the doubt of a call began, from which the window is measured. A
// call left behind by a dead process is in doubt from when that is found out:
// however long the restart took, the repeat comes after it.
func (g *guard) since(e *Entry, now time.Time) time.Time {
	switch {
	case e.State == Unknown:
		return e.Changed
	case g.running(e):
		return now
	case e.Changed.Before(g.opened):
		return g.opened
	}
	if ended, lost := g.lost(e); lost {
		return ended
	}
	return e.Changed
}

// underWay reports whether a call is one of ours that goes on.
func (g *guard) underWay(e *Entry) bool { return e.State == Started && g.running(e) }

// end is when the window of an equal call closes, and whether that is in doubt and
// the window still open.
func (g *guard) end(r *request, e *Entry) (time.Time, bool) {
	end := g.since(e, r.now).Add(r.GuardWindow)
	return end, e.Fingerprint == r.Fingerprint && g.inDoubt(e) && r.now.Before(end)
}

// asked reports whether equal calls matter to a call at all. A keyed call with a name
// of its own is for the server to tell from others.
func (g *guard) asked(r *request) bool {
	return r.GuardWindow > 0 && !r.RepeatAllowed && !r.adopted && !(r.Keyed && r.named)
}

// blocker returns the latest equal call in doubt that a call which repeats none by
// name has to respect, and when that ends; or nil. A keyed call with a name of its
// own is for the server to tell from others.
func (g *guard) blocker(r *request, found []Entry) (*Entry, time.Time) {
	if !g.asked(r) {
		return nil, time.Time{}
	}
	var latest *Entry
	var until time.Time
	for i := range found {
		if end, blocks := g.end(r, &found[i]); blocks && (latest == nil || end.After(until)) {
			latest, until = &found[i], end
		}
	}
	return latest, until
}
