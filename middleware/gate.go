package middleware

import (
	"net/http"
	"sync"
	"time"

	"github.com/surecall/surecall/policy"
)

// gateCap bounds how long a gate is closed where the policy has no cap.
const gateCap = time.Minute

// A gate holds back every call to a server that has answered 429 with a wait: all
// sessions and credentials, not only the call that heard it. The zero value is
// open. It is safe for concurrent use.
type gate struct {
	mu    sync.Mutex
	until time.Time
}

// close closes the gate for the server's wait, at most for the cap.
func (g *gate) close(now time.Time, wait, limit time.Duration) {
	if limit <= 0 {
		limit = gateCap
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := now.Add(min(wait, limit)); until.After(g.until) {
		g.until = until
	}
}

// hear closes the gate if the attempt was told to wait (RFC 6585, section 4).
func (g *gate) hear(a *attempt, tool *policy.Tool) {
	if a.status() == http.StatusTooManyRequests && a.says.hasWait {
		g.close(time.Now(), a.says.wait, tool.Retry.RetryAfterCap)
	}
}

// remaining is how long the gate stays closed.
func (g *gate) remaining(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(g.until.Sub(now), 0)
}
