package middleware

import (
	"context"
	"fmt"
	"net/http/httptrace"
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
	alarm  *alarm
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	rank    int
	running limitError // the limit of the phase; none if after is 0
	since   time.Time  // when the phase began, or bytes were heard
	whole   time.Time  // when the POST as a whole is over time; zero is never
	over    bool
	paused  int       // how much the other side waits for
	held    time.Time // when the first of that came

	due time.Time // guarded by alarm.mu
}

func (w *watch) start(ctx context.Context, a *alarm, l policy.Limits) {
	w.limits, w.alarm = l, a
	w.ctx, w.cancel = context.WithCancelCause(ctx)
}

// sending begins the POST as a whole.
func (w *watch) sending() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.limits.Attempt > 0 {
		w.whole = time.Now().Add(w.limits.Attempt)
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
	w.rank, w.running, w.since = rank, limitError{name, max(limit, 0)}, time.Now()
	w.set()
}

// again begins the phases anew, for a request that goes on with the POST's answer.
// Until the layer below tells how far it is, the other side is silent.
func (w *watch) again() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.rank, w.running, w.since = 0, limitError{"silence", max(w.limits.Silence, 0)}, time.Now()
		w.set()
	}
}

// trace tells the phases of such a request.
func (w *watch) trace() *httptrace.ClientTrace {
	t := &httptrace.ClientTrace{
		GetConn: func(string) { w.connecting() },
		GotConn: func(httptrace.GotConnInfo) { w.connected() },
	}
	if w.limits.Headers > 0 {
		t.WroteRequest = func(httptrace.WroteRequestInfo) { w.waiting() }
	} else { // a server that never answers is silent
		t.GotConn = func(httptrace.GotConnInfo) { w.enter(phaseHeaders, "silence", w.limits.Silence) }
	}
	return t
}

// heard says that bytes of the body came: the silence starts anew.
func (w *watch) heard(int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || w.rank != phaseSilence || w.limits.Silence <= 0 {
		return
	}
	w.running, w.since = limitError{"silence", w.limits.Silence}, time.Now()
	w.set()
}

// hold suspends the silence limit until bytes are heard again.
func (w *watch) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.running = limitError{}
		w.set()
	}
}

// pause stops all clocks of the POST: the server waits for us. Each pause needs a
// resume.
func (w *watch) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused++; w.paused == 1 && !w.over {
		w.held = time.Now()
		w.set()
	}
}

// resume lets the clocks go on, the silence from its beginning.
func (w *watch) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused--; w.paused > 0 || w.over {
		return
	}
	w.since = time.Now()
	if !w.whole.IsZero() {
		w.whole = w.whole.Add(w.since.Sub(w.held))
	}
	w.set()
}

// progressed begins the POST as a whole anew.
func (w *watch) progressed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || w.whole.IsZero() {
		return
	}
	w.whole = time.Now().Add(w.limits.Attempt)
	w.held = time.Now()
	w.set()
}

// set tells the alarm of the earlier of the two deadlines. w.mu is held.
func (w *watch) set() {
	if w.paused > 0 {
		w.alarm.set(w, time.Time{})
		return
	}
	due := w.whole
	if phase := w.since.Add(w.running.after); w.running.after > 0 && (due.IsZero() || phase.Before(due)) {
		due = phase
	}
	w.alarm.set(w, due)
}

// expire ends the POST because a limit has run out.
func (w *watch) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || w.paused > 0 {
		return
	}
	limit := w.running
	if now := time.Now(); limit.after == 0 || now.Sub(w.since) < limit.after {
		if w.whole.IsZero() || now.Before(w.whole) {
			w.set() // it moved later just as the alarm went off
			return
		}
		limit = limitError{"attempt", w.limits.Attempt}
	}
	w.cancel(&limit)
}

// stop releases the POST's context. It may be called more than once.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.over = true
		w.alarm.set(w, time.Time{})
		w.cancel(nil)
	}
}

// cause is the limit that ended the POST, or nil.
func (w *watch) cause() error { return context.Cause(w.ctx) }
