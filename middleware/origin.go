package middleware

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"

	"github.com/surecall/surecall/observe"
)

const (
	// originWindow is how long a call that failed is remembered, to recognise that
	// its caller sends it again.
	originWindow = 10 * time.Minute
	// originCalls is how many failed calls are remembered for a tool.
	originCalls = 16
)

// failedCalls are the calls of one tool that ended without success of late. It is
// safe for concurrent use.
type failedCalls struct {
	mu   sync.Mutex
	ring [originCalls]failedCall
	next int
}

type failedCall struct {
	print [sha256.Size]byte // of the arguments
	key   string            // the host's own, or empty
	at    time.Time
}

func (f *failedCalls) add(c failedCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ring[f.next] = c
	f.next = (f.next + 1) % originCalls
}

// has reports whether an equal call, or one with the same key, failed of late.
func (f *failedCalls) has(c failedCall) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.ring {
		old := &f.ring[i]
		equal := old.print == c.print || c.key != "" && old.key == c.key
		if equal && !old.at.IsZero() && c.at.Sub(old.at) <= originWindow {
			return true
		}
	}
	return false
}

// repeatedByCaller reports whether the caller sends again a call that failed. It
// costs a look-up unless calls of this tool have failed.
func (c *core) repeatedByCaller(ctx context.Context, cl *call) bool {
	failed, ok := c.failed.find(target{cl.server.name, cl.tool.Name})
	if !ok {
		return false
	}
	fc, ok := cl.asFailed(ctx)
	return ok && failed.has(fc)
}

// remember keeps a call that ended without success.
func (c *core) remember(ctx context.Context, cl *call) {
	if fc, ok := cl.asFailed(ctx); ok {
		c.failed.get(target{cl.server.name, cl.tool.Name}, func() *failedCalls { return &failedCalls{} }).add(fc)
	}
}

// asFailed is how a call is remembered. Only an observation rests on it, so that Go's
// own JSON, which sorts the members of a map, is canonical enough.
func (cl *call) asFailed(ctx context.Context) (failedCall, bool) {
	params := cl.params()
	if params == nil {
		return failedCall{}, false
	}
	raw, err := json.Marshal(params.Arguments)
	return failedCall{print: sha256.Sum256(raw), key: namedKey(ctx, cl), at: time.Now()}, err == nil
}

// origin says who repeated the call: the host's own word first, then what was seen
// from the caller down to the layer below us.
func (cl *call) origin(ctx context.Context, byCaller bool) observe.Origin {
	switch {
	case observe.IsUserRepeat(ctx):
		return observe.OriginUser
	case byCaller:
		return observe.OriginCaller
	case len(cl.attempts) > 1:
		return observe.OriginMiddleware
	}
	origin := observe.OriginNone
	for i := range cl.attempts {
		switch postsOrigin(cl.attempts[i].posts) {
		case observe.OriginNetHTTP:
			return observe.OriginNetHTTP
		case observe.OriginSDK:
			origin = observe.OriginSDK
		}
	}
	return origin
}

// postsOrigin says who below us repeated a POST of an attempt; net/http first, which
// does it without being seen.
func postsOrigin(posts []observe.Post) observe.Origin {
	origin := observe.OriginNone
	for i := range posts {
		by := observe.OriginNone
		if i > 0 {
			by = resentBy(&posts[i-1], &posts[i])
		}
		switch {
		case posts[i].Replays > 0, by == observe.OriginNetHTTP:
			return observe.OriginNetHTTP
		case by == observe.OriginSDK:
			origin = by
		}
	}
	return origin
}
