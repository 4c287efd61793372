package middleware

import "sync"

// registrySize is the number of entries in each half of a registry.
const registrySize = 2048

// target is what state is kept for: a tool of a server, or, with an empty tool,
// the server as a whole.
type target struct{ server, tool string }

// A registry keeps state by a key, such as a target: bounded for endless distinct
// names, without order or counting. A full young half becomes the old one, and what is
// asked for again moves back, so what is in use stays. It is safe for concurrent use.
type registry[K comparable, V any] struct {
	mu         sync.Mutex
	young, old map[K]V
}

// settled is a target with the settings that its state was made with. State that a
// policy shapes is kept by both: a new policy with the same settings goes on with it,
// other settings begin with state of their own, and calls that are still under the
// earlier policy stay with what they had.
type settled[S comparable] struct {
	target
	settings S
}

// get returns the state of a key, making it where there is none.
func (r *registry[K, V]) get(k K, make func() V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.young[k]
	if ok {
		return v
	}
	if v, ok = r.old[k]; !ok {
		v = make()
	}
	r.keep(k, v)
	return v
}

// find returns the state of a key, if there is one.
func (r *registry[K, V]) find(k K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, ok := r.young[k]; ok {
		return v, true
	}
	v, ok := r.old[k]
	if ok {
		r.keep(k, v)
	}
	return v, ok
}

// put sets the state of a key.
func (r *registry[K, V]) put(k K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(k, v)
}

// drop forgets a key.
func (r *registry[K, V]) drop(k K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.young, k)
	delete(r.old, k)
}

func (r *registry[K, V]) keep(k K, v V) {
	if r.young == nil {
		r.young = map[K]V{}
	}
	if _, known := r.young[k]; !known && len(r.young) >= registrySize {
		r.old, r.young = r.young, map[K]V{}
	}
	r.young[k] = v
}
