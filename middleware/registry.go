package middleware

import "sync"

// registrySize is the number of entries in each half of a registry.
const registrySize = 2048

// target is what state is kept for: a tool of a server, or, with an empty tool,
// the server as a whole.
type target struct{ server, tool string }

// A registry keeps state by target: bounded for endless distinct names, without
// order or counting. A full young half becomes the old one, and what is asked for
// again moves back, so what is in use stays. It is safe for concurrent use.
type registry[V any] struct {
	mu         sync.Mutex
	young, old map[target]V
}

// get returns the state of a target, making it where there is none.
func (r *registry[V]) get(t target, make func() V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.young[t]
	if ok {
		return v
	}
	if v, ok = r.old[t]; !ok {
		v = make()
	}
	r.keep(t, v)
	return v
}

// find returns the state of a target, if there is one.
func (r *registry[V]) find(t target) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, ok := r.young[t]; ok {
		return v, true
	}
	v, ok := r.old[t]
	if ok {
		r.keep(t, v)
	}
	return v, ok
}

// put sets the state of a target.
func (r *registry[V]) put(t target, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(t, v)
}

// drop forgets a target.
func (r *registry[V]) drop(t target) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.young, t)
	delete(r.old, t)
}

func (r *registry[V]) keep(t target, v V) {
	if r.young == nil {
		r.young = map[target]V{}
	}
	if _, known := r.young[t]; !known && len(r.young) >= registrySize {
		r.old, r.young = r.young, map[target]V{}
	}
	r.young[t] = v
}
