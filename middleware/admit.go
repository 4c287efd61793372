package middleware

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// Admit lets an attempt through, or refuses it without sending: by the gate that a
// server's 429 closed, by the breakers of server and tool, by the rate limiter.
// It stands inside the loop and judges attempts, not calls. Reading methods pass
// the gate alone; the handshake and ping pass freely.
func Admit(opts *Options) mcp.Middleware { return newCore(opts).admit }

// admission is the state that Admit keeps.
type admission struct {
	gates    registry[*gate]
	servers  registry[*breaker]
	tools    registry[*breaker]
	limiters registry[*rate.Limiter]
}

func (c *core) admit(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, cl := c.begin(ctx, method, req)
		if cl == nil || isHandshake(method) || method == "ping" {
			return next(ctx, method, req)
		}
		report, refused := c.enter(ctx, cl)
		if refused != nil {
			cl.add(*refused)
			return nil, cl.failure(ctx)
		}
		res, err := next(ctx, method, req)
		report(cl.last(ctx, res, err))
		return res, err
	}
}

// enter passes the gate, the breakers and the limiter, in that order: a token is
// not spent on a call that a breaker refuses. report must be called with the
// attempt.
func (c *core) enter(ctx context.Context, cl *call) (report func(*attempt), refused *attempt) {
	gate := c.gate(cl)
	if refused = pass(ctx, gate.remaining(time.Now()), true, "the server asked all callers to wait"); refused != nil {
		return nil, refused
	}
	if !cl.isTool() {
		return func(a *attempt) { gate.hear(a, cl.tool) }, nil
	}
	onServer, wait, ok := c.serverBreaker(cl).allow()
	if !ok {
		return nil, breakerOpen(wait)
	}
	tool := c.toolBreaker(cl)
	onTool, wait, ok := tool.allow()
	if !ok {
		onServer(errNeutral)
		return nil, breakerOpen(wait)
	}
	if refused = c.limit(ctx, cl); refused != nil {
		onServer(errNeutral)
		onTool(errNeutral)
		return nil, refused
	}
	return func(a *attempt) {
		onServer(serverVerdict(a).err())
		onTool(toolVerdict(a).err())
		cl.breaker = tool.state()
		gate.hear(a, cl.tool)
	}, nil
}

// gate is the gate that the call stands before. One that nobody shares is always
// open.
func (c *core) gate(cl *call) *gate {
	t := target{server: cl.server.name}
	switch cl.tool.Gate {
	case policy.GateOff:
		return &gate{}
	case policy.GateTool:
		t.tool = cl.tool.Name
	}
	return c.admission.gates.get(t, func() *gate { return &gate{} })
}

func (c *core) serverBreaker(cl *call) *breaker {
	name := cl.server.name
	return c.admission.servers.get(target{server: name}, func() *breaker {
		return newBreaker(name, c.resolver.Resolve(name, "", nil).Breaker)
	})
}

func (c *core) toolBreaker(cl *call) *breaker {
	t := target{cl.server.name, cl.tool.Name}
	return c.admission.tools.get(t, func() *breaker {
		return newBreaker(t.server+" "+t.tool, cl.tool.Breaker)
	})
}

// limit takes a token of the tool's limiter.
func (c *core) limit(ctx context.Context, cl *call) *attempt {
	l := cl.tool.Limiter
	if l.Rate <= 0 {
		return nil
	}
	limiter := c.admission.limiters.get(target{cl.server.name, cl.tool.Name}, func() *rate.Limiter {
		return rate.NewLimiter(rate.Limit(l.Rate), l.Burst)
	})
	token := limiter.Reserve()
	if !token.OK() {
		return &attempt{Judgement: local(observe.RateLimited, "the limiter never lets a call through")}
	}
	refused := pass(ctx, token.Delay(), !l.NoWait, "the rate limit is reached")
	if refused != nil {
		token.Cancel()
	}
	return refused
}

// pass waits for d, or refuses at once where it may not wait or the wait cannot end
// before the deadline.
func pass(ctx context.Context, d time.Duration, mayWait bool, reason string) *attempt {
	if d <= 0 && ctx.Err() == nil {
		return nil
	}
	deadline, bounded := ctx.Deadline()
	if ctx.Err() == nil && (!mayWait || bounded && time.Until(deadline) <= d) {
		return &attempt{Judgement: local(observe.RateLimited, reason), retryIn: d, hasRetry: true}
	}
	if sleep(ctx, d) {
		return nil
	}
	return interrupted(ctx)
}

func breakerOpen(wait time.Duration) *attempt {
	return &attempt{Judgement: local(observe.BreakerOpen, "the circuit breaker is open"), retryIn: wait, hasRetry: wait > 0}
}

// interrupted is the attempt that was not made because the context ended.
func interrupted(ctx context.Context) *attempt {
	if ctx.Err() == context.DeadlineExceeded {
		return &attempt{Judgement: local(observe.Timeout, "the deadline passed before the call was sent"), err: ctx.Err()}
	}
	return &attempt{Judgement: local(observe.Canceled, "the caller gave up before the call was sent"), err: ctx.Err()}
}

// local is a judgement of our own, before anything was sent.
func local(o observe.Outcome, reason string) observe.Judgement {
	return observe.Judgement{Outcome: o, Delivery: observe.NotSent, Reason: reason}
}
