package middleware

import (
	"net/http"
	"sync/atomic"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// core is what the parts of one stack share. A part used alone has a core of its
// own.
type core struct {
	opts     Options
	resolver *policy.Resolver
	sessions *sessions
	unnamed  atomic.Int64 // sessions without HTTP that nobody has named

	admission admission
	budgets   registry[*policy.Budget]
	failed    registry[*failedCalls]
	hints     registry[policy.Annotations]
	schemas   registry[any]
	headers   registry[*paramHeaders] // of definitions that the SDK has not seen
	refreshes registry[*refresher]    // of those
}

func newCore(opts *Options) *core {
	o := opts.copy()
	return &core{
		opts:     o,
		resolver: policy.NewResolver(o.Policy),
		sessions: newSessions(),
	}
}

// unknownTool is the policy for a POST that no middleware has announced.
func (c *core) unknownTool(req *http.Request) *policy.Tool {
	// The header exists from 2026-07-28 on; without it the rules for any tool hold.
	return c.resolver.Resolve(observe.RedactURL(askedURL(req)), req.Header.Get("Mcp-Name"), nil)
}
