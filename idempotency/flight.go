package idempotency

import (
	"sync"
	"sync/atomic"
	"time"
)

// A flight is a call of this process between Begin and Settle. Whoever makes the
// same call meanwhile waits for it to land.
type flight struct {
	scope, id, key string
	fingerprint    Fingerprint
	began          time.Time

	ticket  Ticket
	landed  chan struct{} // nil while nobody waits
	settled *Entry        // set before landed is closed
}

// flights are those under way, by their names. Its lock is held for a look into a
// map, never while a store or a server works.
type flights struct {
	mu     sync.Mutex
	byName map[name]*flight
	// lost are the IDs of calls that ended but could not be settled, and when.
	lost      map[equal]map[string]time.Time
	losses    atomic.Int32 // len(lost): where it is 0, no lock is needed
	retention time.Duration
	tidyAt    int // the number of losses at which expired ones are let go of
}

// someLosses is how many losses are kept without looking which have expired.
const someLosses = 1024

func newFlights(retention time.Duration) *flights {
	return &flights{
		byName: map[name]*flight{}, lost: map[equal]map[string]time.Time{},
		retention: retention, tidyAt: someLosses,
	}
}

// take registers a flight for a call, or returns the one that has its name, or is
// the one to wait for.
func (f *flights) take(r *request) (fl *flight, mine bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	other := f.any(r.scope, r.id, r.key)
	if other == nil && r.behind != [2]string{} {
		other = f.any(r.scope, r.behind[0], r.behind[1])
	}
	if other != nil {
		if other.landed == nil {
			other.landed = make(chan struct{})
		}
		return other, false
	}
	fl = &flight{scope: r.scope, id: r.id, key: r.key, fingerprint: r.Fingerprint, began: r.now}
	f.byName[name{r.scope, r.id}] = fl
	if r.key != r.id {
		f.byName[name{r.scope, r.key}] = fl
	}
	return fl, true
}

// holds reports whether a flight other than mine has a name of an entry.
func (f *flights) holds(e *Entry, mine *flight) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range e.names() {
		if fl := f.byName[name{e.Scope, id}]; fl != nil && fl != mine {
			return true
		}
	}
	return false
}

// any returns the flight with one of two names, which may be the same.
func (f *flights) any(scope, id, key string) *flight {
	if fl := f.byName[name{scope, id}]; fl != nil || key == id {
		return fl
	}
	return f.byName[name{scope, key}]
}

// land ends a flight: with what was settled, or with an empty entry where nothing
// was sent.
func (f *flights) land(fl *flight, settled *Entry, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byName, name{fl.scope, fl.id})
	if fl.key != fl.id {
		delete(f.byName, name{fl.scope, fl.key})
	}
	if lost {
		f.lose(settled)
	}
	if fl.landed != nil {
		e := *settled
		fl.settled = &e
		close(fl.landed)
	}
}

// lose remembers that a call ended without being settled.
func (f *flights) lose(e *Entry) {
	at := equalTo(e.Scope, e.Fingerprint)
	if f.lost[at] == nil {
		f.lost[at] = map[string]time.Time{}
	}
	f.lost[at][e.ID] = e.Changed
	if len(f.lost) >= f.tidyAt {
		f.tidy(e.Changed)
	}
	f.losses.Store(int32(len(f.lost)))
}

// tidy lets go of losses whose entries have expired.
func (f *flights) tidy(now time.Time) {
	for at, ids := range f.lost {
		for id, ended := range ids {
			if !ended.Add(f.retention).After(now) {
				delete(ids, id)
			}
		}
		if len(ids) == 0 {
			delete(f.lost, at)
		}
	}
	f.tidyAt = max(someLosses, 2*len(f.lost))
}

// isLost reports whether the latest try of a call ended without being settled, and
// when.
func (f *flights) isLost(e *Entry) (ended time.Time, lost bool) {
	if f.losses.Load() == 0 {
		return ended, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	ended, lost = f.lost[equalTo(e.Scope, e.Fingerprint)][e.ID]
	return ended, lost
}

// hasLost reports whether that is so of any call which asks for what r does.
func (f *flights) hasLost(r *request) bool {
	if f.losses.Load() == 0 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost[equalTo(r.scope, r.Fingerprint)] != nil
}

// found says that a lost call has been written again.
func (f *flights) found(e *Entry) {
	if f.losses.Load() == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at := equalTo(e.Scope, e.Fingerprint)
	delete(f.lost[at], e.ID)
	if len(f.lost[at]) == 0 {
		delete(f.lost, at)
		f.losses.Store(int32(len(f.lost)))
	}
}

func equalTo(scope string, f Fingerprint) equal { return equal{scope: scope, fingerprint: f} }
