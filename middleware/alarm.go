package middleware

import (
	"sync"
	"time"
)

// An alarm watches the deadlines of many POSTs with one timer. A timer of its own
// for each phase of each POST would be set and stopped millions of times without
// ever firing, and each time wake the runtime's poller: a tenth of a small call.
// Here a deadline that moves later, which is what all of them do, touches no timer.
// The zero value is ready. It is safe for concurrent use.
type alarm struct {
	mu      sync.Mutex
	watched map[*watch]struct{}
	timer   *time.Timer
	at      time.Time // when the timer fires; zero if it is not set
}

// set moves the deadline of w; the zero time is none.
func (a *alarm) set(w *watch, due time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.due = due
	if due.IsZero() {
		delete(a.watched, w)
		return
	}
	if a.watched == nil {
		a.watched = map[*watch]struct{}{}
	}
	a.watched[w] = struct{}{}
	if a.at.IsZero() || due.Before(a.at) {
		a.arm(due)
	}
}

// arm lets the timer fire at a time.
func (a *alarm) arm(at time.Time) {
	a.at = at
	if a.timer == nil {
		a.timer = time.AfterFunc(time.Until(at), a.fire)
		return
	}
	a.timer.Reset(time.Until(at))
}

// fire expires what is due and sets the timer for what is next.
func (a *alarm) fire() {
	for _, w := range a.due(time.Now()) {
		w.expire()
	}
}

func (a *alarm) due(now time.Time) []*watch {
	a.mu.Lock()
	defer a.mu.Unlock()
	var due []*watch
	var next time.Time
	for w := range a.watched {
		switch {
		case !w.due.After(now):
			due = append(due, w)
			delete(a.watched, w)
		case next.IsZero() || w.due.Before(next):
			next = w.due
		}
	}
	a.at = time.Time{}
	if !next.IsZero() {
		a.arm(next)
	}
	return due
}
