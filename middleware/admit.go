package middleware

import (
	"context"
	"sync"
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
		cl.entry = &e
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
	told             sync.Once // the breakers
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
		waited, refused := e.passGate(ctx, e.call.next())
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
	e.call.entry = nil
	e.gate.hear(a, e.call.tool)
	if !e.call.isTool() {
		return
	}
	e.tell(serverVerdict(a), toolVerdict(a))
	e.call.breaker = graverState(e.server, e.tool)
}

// tell settles the breakers, once.
func (e *entry) tell(server, tool verdict) {
	e.told.Do(func() {
		e.onServer(server.err())
		e.onTool(tool.err())
	})
}

// answered settles the breakers when a round of the attempt is answered: a person may
// think for long about the next, and a half-open breaker would wait for its probe. It
// may be called from another goroutine.
func (e *entry) answered() { e.tell(success, success) }

// round takes a further round past the gate and the limiter. It is asked below the
// SDK, whose loop the rounds are, on another goroutine.
func (e *entry) round(ctx context.Context) (refused *attempt) {
	if _, _, refused = e.core.takeToken(ctx, e.call, theRound); refused != nil {
		return refused
	}
	for {
		waited, refused := e.passGate(ctx, theRound)
		if refused != nil || !waited {
			return refused
		}
	}
}

func (e *entry) passGate(ctx context.Context, before string) (waited bool, refused *attempt) {
	return hold(ctx, e.gate.remaining(time.Now()), true, "the server asked all callers to wait", before)
}

// abandon frees the breakers of an attempt that a panic ended: a half-open one would
// wait for its probe for ever.
func (e *entry) abandon() {
	e.call.entry = nil
	if e.call.isTool() {
		e.tell(neutral, neutral)
	}
}

// limit takes one token of the tool's limiter for the attempt.
func (e *entry) limit(ctx context.Context) (waited bool, refused *attempt) {
	if e.token == nil {
		e.token, waited, refused = e.core.takeToken(ctx, e.call, e.call.next())
	}
	return waited, refused
}

// takeToken takes one token of the tool's limiter, and waits for it where it may.
func (c *core) takeToken(ctx context.Context, cl *call, before string) (token *rate.Reservation, waited bool, refused *attempt) {
	l := cl.tool.Limiter
	if l.Rate <= 0 {
		return nil, false, nil
	}
	limiter := c.admission.limiters.get(target{cl.server.name, cl.tool.Name}, func() *rate.Limiter {
		return rate.NewLimiter(rate.Limit(l.Rate), l.Burst)
	})
	token = limiter.Reserve()
	if !token.OK() {
		return token, false, &attempt{Judgement: local(observe.RateLimited, "the limiter never lets a call through")}
	}
	waited, refused = hold(ctx, token.Delay(), !l.NoWait, "the rate limit is reached", before)
	if refused != nil {
		token.Cancel()
	}
	return token, waited, refused
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

// hold waits for d, or refuses at once where it may not wait or the wait cannot end
// before the deadline.
func hold(ctx context.Context, d time.Duration, mayWait bool, reason, before string) (waited bool, refused *attempt) {
	if ctx.Err() != nil {
		return false, interrupted(ctx, before)
	}
	if d <= 0 {
		return false, nil
	}
	deadline, bounded := ctx.Deadline()
	if !mayWait || bounded && time.Until(deadline) <= d {
		return false, &attempt{Judgement: local(observe.RateLimited, reason), retryIn: d, hasRetry: true}
	}
	if !sleep(ctx, d) {
		return false, interrupted(ctx, before)
	}
	return true, nil
}

func breakerOpen(wait time.Duration) *attempt {
	return &attempt{Judgement: local(observe.BreakerOpen, "the circuit breaker is open"), retryIn: wait, hasRetry: wait > 0}
}

// What a context can end before; see interrupted.
const (
	theCall   = "the call was sent"
	theRepeat = "the call was sent again"
	theRound  = "the next round of the call was sent"
)

// next is what an attempt sends.
func (cl *call) next() string {
	if len(cl.attempts) > 0 {
		return theRepeat
	}
	return theCall
}

// interrupted is the attempt that was not made because the context ended.
func interrupted(ctx context.Context, before string) *attempt {
	j := local(observe.Canceled, "the caller gave up before "+before)
	if ctx.Err() == context.DeadlineExceeded {
		j = local(observe.Timeout, "the deadline passed before "+before)
	}
	return &attempt{Judgement: j, err: ctx.Err()}
}

// local is a judgement of our own, before anything was sent.
func local(o observe.Outcome, reason string) observe.Judgement {
	return observe.Judgement{Outcome: o, Delivery: observe.NotSent, Reason: reason}
}
