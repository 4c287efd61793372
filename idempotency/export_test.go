package idempotency

// Len counts what a store holds, expired or not.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entries
}

// Canonical is the form that a fingerprint covers.
var (
	Canonical = canonical
	Plain     = plain
)
