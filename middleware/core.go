package middleware

import (
	"sync/atomic"

	"github.com/surecall/surecall/policy"
)

// core is what the parts of one stack share. A part used alone has a core of its
// own.
type core struct {
	opts     Options
	rules    atomic.Pointer[policy.Resolver] // for calls that begin now
	sessions *sessions
	unnamed  atomic.Int64 // sessions without HTTP that nobody has named

	admission admission
	budgets   registry[settled[float64], *policy.Budget] // by their size
	failed    registry[target, *failedCalls]
	hints     registry[target, policy.Annotations]
	schemas   registry[target, any]
	headers   registry[target, *paramHeaders] // of definitions that the SDK has not seen
	refreshes registry[target, *refresher]    // of those
}

func newCore(opts *Options) *core {
	o := opts.copy()
	c := &core{opts: o, sessions: newSessions()}
	c.rules.Store(policy.NewResolver(o.Policy))
	return c
}

// isShadow reports whether the stack only watches; c may be nil.
func (c *core) isShadow() bool { return c != nil && c.opts.Shadow }
