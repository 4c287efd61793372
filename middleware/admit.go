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
		e := entry{core: c, call: cl, gate: c.gate(cl)}
		came := time.Now()
		refused := e.pass(ctx)
		if e.waited {
			cl.held = time.Since(came)
		}
		if refused != nil {
			cl.add(*refused)
			return nil, cl.failure(ctx)
		}
		defer e.abandon()
		res, err := next(ctx, method, req)
		e.leave(cl.last(ctx, res, err))
		return res, err
	}
}

// entry is one attempt on its way in.
type entry struct {
	core *core
	call *call
	gate *gate

	server, tool     *breaker // nil for reading methods
	onServer, onTool func(error)
	token            *rate.Reservation
	waited           bool
	left             bool
}

// pass takes the attempt past the gate, the breakers and the limiter, or refuses it.
// After each wait everything is asked again: the gate may have closed meanwhile, or
// a breaker opened.
func (e *entry) pass(ctx context.Context) (refused *attempt) {
	if e.call.isTool() {
		e.server, e.tool = e.core.serverBreaker(e.call), e.core.toolBreaker(e.call)
		defer func() { e.call.breaker = graverState(e.server, e.tool) }()
	}
	for {
		waited, refused := hold(ctx, e.gate.remaining(time.Now()), true, "the server asked all callers to wait")
		if refused == nil && !waited && e.call.isTool() {
			waited, refused = e.passTool(ctx)
		}
		if refused != nil || !waited {
			return refused
		}
		e.waited = true
	}
}

// passTool asks what stands before a tool alone. A token is not spent on a call that
// a breaker refuses, and a half-open breaker's slot is not held during a wait.
func (e *entry) passTool(ctx context.Context) (waited bool, refused *attempt) {
	for _, b := range []*breaker{e.server, e.tool} {
		if wait, open := b.openFor(); open {
			return false, breakerOpen(wait)
		}
	}
	if waited, refused = e.limit(ctx); waited || refused != nil {
		return waited, refused
	}
	return false, e.enter()
}

// enter takes the breakers' admission.
func (e *entry) enter() (refused *attempt) {
	report, wait, ok := e.server.allow()
	if !ok {
		return breakerOpen(wait)
	}
	e.onServer = report
	if e.onTool, wait, ok = e.tool.allow(); !ok {
		e.onServer(errNeutral)
		return breakerOpen(wait)
	}
	return nil
}

// leave tells gate and breakers what the attempt came to.
func (e *entry) leave(a *attempt) {
	e.left = true
	e.gate.hear(a, e.call.tool)
	if !e.call.isTool() {
		return
	}
	e.onServer(serverVerdict(a).err())
	e.onTool(toolVerdict(a).err())
	e.call.breaker = graverState(e.server, e.tool)
}

// abandon frees the breakers of an attempt that a panic ended: a half-open one would
// wait for its probe for ever.
func (e *entry) abandon() {
	if !e.left && e.call.isTool() {
		e.onServer(errNeutral)
		e.onTool(errNeutral)
	}
}

// limit takes one token of the tool's limiter for the attempt.
func (e *entry) limit(ctx context.Context) (waited bool, refused *attempt) {
	l := e.call.tool.Limiter
	if l.Rate <= 0 || e.token != nil {
		return false, nil
	}
	limiter := e.core.admission.limiters.get(target{e.call.server.name, e.call.tool.Name}, func() *rate.Limiter {
		return rate.NewLimiter(rate.Limit(l.Rate), l.Burst)
	})
	e.token = limiter.Reserve()
	if !e.token.OK() {
		return false, &attempt{Judgement: local(observe.RateLimited, "the limiter never lets a call through")}
	}
	waited, refused = hold(ctx, e.token.Delay(), !l.NoWait, "the rate limit is reached")
	if refused != nil {
		e.token.Cancel()
	}
	return waited, refused
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
	t := target{server: cl.server.name}
	return c.admission.servers.get(t, func() *breaker {
		return newBreaker(t.server, c.resolver.Resolve(t.server, "", nil).Breaker, c.breakerObserver(t))
	})
}

func (c *core) toolBreaker(cl *call) *breaker {
	t := target{cl.server.name, cl.tool.Name}
	return c.admission.tools.get(t, func() *breaker {
		return newBreaker(t.server+" "+t.tool, cl.tool.Breaker, c.breakerObserver(t))
	})
}

// hold waits for d, or refuses at once where it may not wait or the wait cannot end
// before the deadline.
func hold(ctx context.Context, d time.Duration, mayWait bool, reason string) (waited bool, refused *attempt) {
	if ctx.Err() != nil {
		return false, interrupted(ctx)
	}
	if d <= 0 {
		return false, nil
	}
	deadline, bounded := ctx.Deadline()
	if !mayWait || bounded && time.Until(deadline) <= d {
		return false, &attempt{Judgement: local(observe.RateLimited, reason), retryIn: d, hasRetry: true}
	}
	if !sleep(ctx, d) {
		return false, interrupted(ctx)
	}
	return true, nil
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
