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
	gates    registry[target, *gate]
	servers  registry[settled[policy.Breaker], *breaker]
	tools    registry[settled[policy.Breaker], *breaker]
	limiters registry[settled[bucket], *rate.Limiter]
}

// bucket is what shapes a limiter.
type bucket struct {
	rate  float64
	burst int
}

func (c *core) admit(next mcp.MethodHandler) mcp.MethodHandler {
	if c.opts.Shadow {
		return next
	}
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, cl := c.begin(ctx, method, req)
		if cl == nil || isHandshake(method) || method == "ping" {
			return next(ctx, method, req)
		}
		e := entry{core: c, call: cl, gate: c.gate(cl)}
		if refused := e.pass(ctx); refused != nil {
			refused.breaker = cl.breaker
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
		held, refused := e.passGate(ctx, e.call.next())
		e.call.waited(observe.WaitGate, held)
		waited := held > 0
		if refused == nil && !waited && e.call.isTool() {
			waited, refused = e.passTool(ctx)
		}
		if refused != nil || !waited {
			return refused
		}
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
	a.breaker = e.call.breaker
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
func (e *entry) round(ctx context.Context, p *post) (refused *attempt) {
	_, held, refused := e.core.takeToken(ctx, e.call, theRound)
	p.waited(observe.WaitLimiter, held)
	for refused == nil {
		if held, refused = e.passGate(ctx, theRound); held == 0 {
			break
		}
		p.waited(observe.WaitGate, held)
	}
	return refused
}

func (e *entry) passGate(ctx context.Context, before string) (held time.Duration, refused *attempt) {
	return hold(ctx, e.gate.remaining(time.Now()), true, observe.WaitGate, before)
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
	if e.token != nil {
		return false, nil
	}
	var held time.Duration
	e.token, held, refused = e.core.takeToken(ctx, e.call, e.call.next())
	e.call.waited(observe.WaitLimiter, held)
	return held > 0, refused
}

// takeToken takes one token of the tool's limiter, and waits for it where it may.
func (c *core) takeToken(ctx context.Context, cl *call, before string) (token *rate.Reservation, held time.Duration, refused *attempt) {
	l := cl.tool.Limiter
	if l.Rate <= 0 {
		return nil, 0, nil
	}
	token = c.limiter(cl).Reserve()
	if !token.OK() {
		return token, 0, &attempt{Judgement: local(observe.RateLimited, "the limiter never lets a call through")}
	}
	held, refused = hold(ctx, token.Delay(), !l.NoWait, observe.WaitLimiter, before)
	if refused != nil {
		token.Cancel()
	}
	return token, held, refused
}

func (c *core) limiter(cl *call) *rate.Limiter {
	l := cl.tool.Limiter
	key := settled[bucket]{target{cl.server.name, cl.tool.Name}, bucket{l.Rate, l.Burst}}
	return c.admission.limiters.get(key, func() *rate.Limiter {
		return rate.NewLimiter(rate.Limit(l.Rate), l.Burst)
	})
}

// limiterState is the state of the call's limiter for its record; nil if it has none.
func (c *core) limiterState(cl *call) *observe.Limiter {
	if cl.tool.Limiter.Rate <= 0 {
		return nil
	}
	l := c.limiter(cl)
	return &observe.Limiter{Rate: float64(l.Limit()), Tokens: l.Tokens()}
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
	b := cl.rules.Resolve(name, "", nil).Breaker
	return c.admission.servers.get(settled[policy.Breaker]{target{server: name}, b}, func() *breaker {
		return newBreaker(name, b, c.breakerObserver(cl, ""))
	})
}

func (c *core) toolBreaker(cl *call) *breaker {
	t := target{cl.server.name, cl.tool.Name}
	return c.admission.tools.get(settled[policy.Breaker]{t, cl.tool.Breaker}, func() *breaker {
		return newBreaker(t.server+" "+t.tool, cl.tool.Breaker, c.breakerObserver(cl, t.tool))
	})
}

// holdReasons say why a call is refused that cannot wait.
var holdReasons = map[observe.WaitReason]string{
	observe.WaitGate:    "the server asked all callers to wait",
	observe.WaitLimiter: "the rate limit is reached",
}

// hold waits for d, or refuses at once where it may not wait or the wait cannot end
// before the deadline. It returns how long it waited.
func hold(ctx context.Context, d time.Duration, mayWait bool, why observe.WaitReason, before string) (held time.Duration, refused *attempt) {
	if ctx.Err() != nil {
		return 0, interrupted(ctx, before)
	}
	if d <= 0 {
		return 0, nil
	}
	deadline, bounded := ctx.Deadline()
	if !mayWait || bounded && time.Until(deadline) <= d {
		return 0, &attempt{Judgement: local(observe.RateLimited, holdReasons[why]), says: signals{wait: d, hasWait: true}}
	}
	began := time.Now()
	ended := sleep(ctx, d)
	held = time.Since(began)
	if !ended {
		return held, interrupted(ctx, before)
	}
	return held, nil
}

func breakerOpen(wait time.Duration) *attempt {
	return &attempt{Judgement: local(observe.BreakerOpen, "the circuit breaker is open"), says: signals{wait: wait, hasWait: wait > 0}}
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
