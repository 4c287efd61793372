package idempotency

import "sync"

// scopes are the hashes that keep principals and servers apart, of those seen
// lately: most calls of a process are made for few principals.
type scopes struct {
	domain string // keeps ledgers of different kinds apart in one store
	mu     sync.Mutex
	known  map[[2]string]string
}

// maxScopes and maxScopeName bound what is remembered.
const (
	maxScopes    = 1024
	maxScopeName = 256
)

func (s *scopes) of(principal, server string) string {
	if len(principal)+len(server) > maxScopeName {
		return text(digest(s.domain, principal, server))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	both := [2]string{principal, server}
	scope, ok := s.known[both]
	if !ok {
		scope = text(digest(s.domain, principal, server))
		if len(s.known) >= maxScopes {
			clear(s.known)
		}
		s.known[both] = scope
	}
	return scope
}
