package middleware

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/surecall/surecall/policy"
)

// limitError is the cause with which a POST's context ends when a limit runs out.
type limitError struct {
	name  string
	after time.Duration
}

func (e *limitError) Error() string { return fmt.Sprintf("%s limit of %s", e.name, e.after) }

// watch bounds the time of one POST by its phases: connecting, waiting for
// headers, silence on the body; and, beside them, the POST as a whole. It never
// touches a caller's context, and it ends with the body, not with RoundTrip
// (the SDK reads the body later, on another goroutine).
type watch struct {
	limits policy.Limits
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	rank    int
	running limitError // the limit of the phase
	since   time.Time  // when the phase began, or was heard of
	phase   *time.Timer
	whole   *time.Timer
	over    bool
}

func (w *watch) start(ctx context.Context, l policy.Limits) {
	w.limits = l
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	if l.Attempt > 0 {
		w.whole = time.AfterFunc(l.Attempt, func() { w.cancel(&limitError{"attempt", l.Attempt}) })
	}
}

// The phases, in their order. A phase never goes back: a request may be written
// to its end only after its answer has begun.
const (
	phaseConnect = 1 + iota
	phaseConnected
	phaseHeaders
	phaseSilence
)

func (w *watch) connecting() { w.enter(phaseConnect, "connect", w.limits.Connect) }
func (w *watch) connected()  { w.enter(phaseConnected, "", 0) }
func (w *watch) waiting()    { w.enter(phaseHeaders, "headers", w.limits.Headers) }
func (w *watch) reading()    { w.enter(phaseSilence, "silence", w.limits.Silence) }

// enter begins a phase; a limit of zero or less is none.
func (w *watch) enter(rank int, name string, limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || rank <= w.rank {
		return
	}
	w.rank, w.running, w.since = rank, limitError{name, limit}, time.Now()
	switch {
	case limit <= 0 && w.phase != nil:
		w.phase.Stop()
	case limit <= 0:
	case w.phase == nil:
		w.phase = time.AfterFunc(limit, w.expire)
	default:
		w.phase.Reset(limit)
	}
}

// expire ends the POST because the running phase has lasted too long. A timer that
// fired just as its phase ended finds another one running, which has begun too
// recently to be over.
func (w *watch) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	limit := w.running
	if !w.over && limit.after > 0 && time.Since(w.since) >= limit.after {
		w.cancel(&limit)
	}
}

// heard says that bytes of the body came: the silence starts anew.
func (w *watch) heard() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rank == phaseSilence && w.phase != nil && !w.over && w.running.after > 0 {
		w.since = time.Now()
		w.phase.Reset(w.running.after)
	}
}

// hold suspends the silence limit until bytes are heard again.
func (w *watch) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.phase != nil {
		w.phase.Stop()
	}
}

// stop releases the timers and the context. It may be called more than once.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for _, t := range []*time.Timer{w.phase, w.whole} {
		if t != nil {
			t.Stop()
		}
	}
	w.cancel(nil)
}

// cause is the limit that ended the POST, or nil.
func (w *watch) cause() error { return context.Cause(w.ctx) }
