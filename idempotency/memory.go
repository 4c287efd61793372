package idempotency

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Memory is a [Store] in memory, bounded in entries and in bytes. What it holds
// dies with the process: use it where no intent outlives that.
//
// When bytes run out it drops the answers that were written longest ago, then
// failed entries; when entries run out, failed ones. After that it is full, and
// stays so until entries expire: see [ErrFull].
type Memory struct {
	opts MemoryOptions

	mu      sync.Mutex
	names   map[name]*item
	equal   map[equal]chain // the unresolved ones
	owners  []owner         // of those plainly under way
	written chain           // all items, the oldest write first
	answers chain           // those with an answer, likewise
	entries int
	bytes   int
	failed  chain     // those that have failed, the oldest write first
	expiry  time.Time // no item expires before it
}

// MemoryOptions bound a [Memory]. The zero value means the defaults.
type MemoryOptions struct {
	// MaxEntries is the most entries held; 0 means 100,000.
	MaxEntries int
	// MaxBytes bounds the bytes of names and answers held, with an allowance of 512
	// for each entry; 0 means 128 MiB.
	MaxBytes int
}

// A name is an ID or a Key.
type name struct{ scope, name string }

// equal is what unresolved calls have in common that ask for the same. The owner is
// that of calls plainly under way, and "" for all others.
type equal struct {
	scope       string
	fingerprint Fingerprint
	owner       string
}

// An owner has so many calls plainly under way. There are few: one for each ledger.
type owner struct {
	name  string
	calls int
}

type item struct {
	Entry
	links [chainKinds]links
}

// NewMemory returns an empty store; opts may be nil.
func NewMemory(opts *MemoryOptions) *Memory {
	m := &Memory{
		names: map[name]*item{},
		equal: map[equal]chain{},
	}
	if opts != nil {
		m.opts = *opts
	}
	if m.opts.MaxEntries <= 0 {
		m.opts.MaxEntries = 100_000
	}
	if m.opts.MaxBytes <= 0 {
		m.opts.MaxBytes = 128 << 20
	}
	return m
}

// Find implements [Store].
func (m *Memory) Find(_ context.Context, q Query, now time.Time) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []Entry
	byID := m.lookup(q.Scope, q.ID, now)
	if byID != nil {
		found = append(found, byID.Entry)
	}
	byKey := byID
	if q.Key != q.ID {
		byKey = m.lookup(q.Scope, q.Key, now)
	}
	if byKey != nil && byKey != byID {
		found = append(found, byKey.Entry)
	}
	add := func(owner string) {
		at := equal{q.Scope, q.Fingerprint, owner}
		for it := m.equal[at].front; it != nil; it = it.links[byEqual].after {
			if it != byID && it != byKey && it.Expires.After(now) {
				found = append(found, it.Entry)
			}
		}
	}
	add("")
	for _, o := range m.owners {
		if o.name != q.Owner {
			add(o.name)
		}
	}
	return found, nil
}

// Put implements [Store].
func (m *Memory) Put(_ context.Context, e Entry, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire(now)
	old := m.lookup(e.Scope, e.ID, now)
	if e.Key != e.ID && m.lookup(e.Scope, e.Key, now) != old || !follows(&e, old) {
		return ErrConflict
	}
	if !e.Expires.After(now) {
		m.remove(old)
		return nil
	}
	if !m.makeRoom(&e, old, now) {
		return ErrFull
	}
	e.Revision++
	m.write(old, &e)
	return nil
}

// follows reports whether e is the next revision of what is stored.
func follows(e *Entry, stored *item) bool {
	if stored == nil {
		return e.Revision == 0
	}
	return e.Revision == stored.Revision && e.ID == stored.ID && e.Key == stored.Key
}

// lookup returns the item with a name, or nil.
func (m *Memory) lookup(scope, id string, now time.Time) *item {
	if id == "" {
		return nil
	}
	it := m.names[name{scope, id}]
	if it != nil && !it.Expires.After(now) {
		m.remove(it)
		return nil
	}
	return it
}

// expire removes what has expired among the oldest writes. Where every entry has
// the same retention, that is all that has expired.
func (m *Memory) expire(now time.Time) {
	for m.written.front != nil && !m.written.front.Expires.After(now) {
		m.remove(m.written.front)
	}
}

// makeRoom drops what may be dropped until e fits in the place of old, which may be
// nil: answers, then entries, and at last e's own answer.
func (m *Memory) makeRoom(e *Entry, old *item, now time.Time) bool {
	if size(e) > m.opts.MaxBytes {
		e.Answer = nil
	}
	for m.excess(e, old) > 0 && m.dropAnswer(old) {
	}
	for m.excess(e, old) > 0 || old == nil && m.entries >= m.opts.MaxEntries {
		if !m.evict(old, now) {
			e.Answer = nil
			return m.excess(e, old) <= 0 && (old != nil || m.entries < m.opts.MaxEntries)
		}
	}
	return true
}

// excess is by how many bytes e in the place of old would be too much.
func (m *Memory) excess(e *Entry, old *item) int {
	bytes := m.bytes + size(e) - m.opts.MaxBytes
	if old != nil {
		bytes -= size(&old.Entry)
	}
	return bytes
}

// dropAnswer forgets the oldest answer but that of keep, whose size is reckoned
// with already.
func (m *Memory) dropAnswer(keep *item) bool {
	oldest := m.answers.front
	if oldest != nil && oldest == keep {
		oldest = oldest.links[byAnswer].after
	}
	if oldest == nil {
		return false
	}
	m.bytes -= len(oldest.Answer)
	oldest.Answer = nil
	m.answers.remove(oldest, byAnswer)
	return true
}

// evict removes the oldest item that has failed, or one that has expired, but not
// keep.
func (m *Memory) evict(keep *item, now time.Time) bool {
	victim := m.failed.front
	if victim != nil && victim == keep {
		victim = victim.links[byFailure].after
	}
	if victim != nil {
		m.remove(victim)
		return true
	}
	return m.evictExpired(keep, now)
}

// evictExpired looks through all items, but not again before one can have expired.
func (m *Memory) evictExpired(keep *item, now time.Time) bool {
	if now.Before(m.expiry) {
		return false
	}
	var earliest time.Time
	for it := m.written.front; it != nil; it = it.links[byWrite].after {
		if it != keep && !it.Expires.After(now) {
			m.remove(it)
			return true
		}
		if it != keep && (earliest.IsZero() || it.Expires.Before(earliest)) {
			earliest = it.Expires
		}
	}
	m.expiry = earliest
	return false
}

// write stores an entry in a new item, or in old.
func (m *Memory) write(old *item, e *Entry) {
	it := old
	if it == nil {
		it = &item{}
		m.entries++
		m.names[name{e.Scope, e.ID}] = it
		if e.Key != e.ID {
			m.names[name{e.Scope, e.Key}] = it
		}
	} else {
		m.untrack(it)
	}
	it.Entry = *e
	m.track(it)
}

// remove forgets an item; nil is none.
func (m *Memory) remove(it *item) {
	if it == nil {
		return
	}
	m.untrack(it)
	m.entries--
	delete(m.names, name{it.Scope, it.ID})
	if it.Key != it.ID {
		delete(m.names, name{it.Scope, it.Key})
	}
}

// track enters an item wherever its state makes it be looked for.
func (m *Memory) track(it *item) {
	m.written.add(it, byWrite)
	if it.Unresolved() {
		m.addEqual(it)
	}
	if len(it.Answer) > 0 {
		m.answers.add(it, byAnswer)
	}
	if it.State == Failed {
		m.failed.add(it, byFailure)
	}
	m.bytes += size(&it.Entry)
	if it.Expires.Before(m.expiry) {
		m.expiry = it.Expires
	}
}

func (m *Memory) untrack(it *item) {
	m.written.remove(it, byWrite)
	if it.Unresolved() {
		m.removeEqual(it)
	}
	if len(it.Answer) > 0 {
		m.answers.remove(it, byAnswer)
	}
	if it.State == Failed {
		m.failed.remove(it, byFailure)
	}
	m.bytes -= size(&it.Entry)
}

func equalOf(e *Entry) equal {
	at := equal{scope: e.Scope, fingerprint: e.Fingerprint}
	if e.PlainlyStarted() {
		at.owner = e.Owner
	}
	return at
}

func (m *Memory) addEqual(it *item) {
	at := equalOf(&it.Entry)
	calls := m.equal[at]
	calls.add(it, byEqual)
	m.equal[at] = calls
	m.count(at.owner, +1)
}

func (m *Memory) removeEqual(it *item) {
	at := equalOf(&it.Entry)
	if alone := it.links[byEqual] == (links{}); alone {
		delete(m.equal, at)
	} else {
		calls := m.equal[at]
		calls.remove(it, byEqual)
		m.equal[at] = calls
	}
	m.count(at.owner, -1)
}

// count keeps count of an owner's calls; "" is none.
func (m *Memory) count(name string, more int) {
	if name == "" {
		return
	}
	i := slices.IndexFunc(m.owners, func(o owner) bool { return o.name == name })
	if i < 0 {
		i = len(m.owners)
		m.owners = append(m.owners, owner{name: name})
	}
	if m.owners[i].calls += more; m.owners[i].calls == 0 {
		m.owners = slices.Delete(m.owners, i, i+1)
	}
}

// size is what an entry counts for in MaxBytes.
func size(e *Entry) int {
	const allowance = 512
	return allowance + len(e.Scope) + len(e.ID) + len(e.Key) + len(e.Server) + len(e.Tool) + len(e.Owner) + len(e.Answer)
}
