package idempotency

// Len counts what a store holds, expired or not.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entries
}

// Scopes counts the principals and servers that a ledger remembers.
func (l *Ledger) Scopes() int {
	l.scopes.mu.Lock()
	defer l.scopes.mu.Unlock()
	return len(l.scopes.known)
}

// Canonical is the form that a fingerprint covers.
var Canonical = canonical

// Plain is the short way to it.
func Plain(o map[string]any) ([]byte, bool) {
	var form plainForm
	ok := form.object(o, 0)
	return form.text, ok
}
