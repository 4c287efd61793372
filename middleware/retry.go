package middleware

import (
	"context"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// Retry is the only loop. After every attempt it asks [policy.Tool.Decide]; it
// keeps one deadline and one budget for the whole call. The reading methods are
// repeated too, after transport failures alone and without a budget.
func Retry(opts *Options) mcp.Middleware { return newCore(opts).retry }

func (c *core) retry(next mcp.MethodHandler) mcp.MethodHandler {
	if c.opts.Shadow {
		return next
	}
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, cl := c.begin(ctx, method, req)
		if cl == nil {
			return next(ctx, method, req)
		}
		l := &loop{core: c, call: cl, next: next, budget: c.budget(cl)}
		caller := ctx
		ctx, cancel := cl.limited(ctx)
		defer cancel()
		res, err := l.run(ctx)
		if err != nil && cl.isTool() {
			return nil, cl.failure(caller)
		}
		return res, err
	}
}

// loop is the state of one call's loop.
type loop struct {
	core    *core
	call    *call
	next    mcp.MethodHandler
	budget  *policy.Budget
	repeats int
	healed  bool // a repeat rested on the renewal of the session

	refreshed, refreshSpent bool // the tool's definition; see refresh
}

func (l *loop) run(ctx context.Context) (mcp.Result, error) {
	for {
		l.call.judged = false
		res, err := l.next(ctx, l.call.method, l.call.request)
		a := l.call.last(ctx, res, err)
		if l.refusedBetween(a) {
			return nil, err
		}
		question := l.question(a, res)
		if l.refresh(ctx, question) && ctx.Err() != nil {
			return l.interrupted(ctx, "the call ended while the tool's definition was fetched")
		}
		d := l.rule(question, l.state(ctx, a))
		l.call.decision, a.decision = d, d
		if d.Action == policy.Stop {
			if a.Outcome == observe.ToolSuccess {
				l.budget.Return()
			}
			return res, err
		}
		if a.says.hasWait {
			server := min(d.Wait, a.says.wait)
			l.call.waited(observe.WaitServer, server)
			l.call.waited(observe.WaitBackoff, d.Wait-server)
		} else {
			l.call.waited(observe.WaitBackoff, d.Wait)
		}
		if !sleep(ctx, d.Wait) {
			return l.interrupted(ctx, "the call ended during the wait")
		}
		l.repeats++
		l.healed = l.healed || a.Outcome == observe.SessionLost
		l.refreshSpent = l.refreshed
		l.resume(a)
	}
}

// interrupted ends the call because its context has ended between two attempts.
func (l *loop) interrupted(ctx context.Context, reason string) (mcp.Result, error) {
	l.call.add(*interrupted(ctx, theRepeat))
	l.call.decision = policy.Decision{Action: policy.Stop, Reason: reason}
	return nil, ctx.Err()
}

// refusedBetween reports whether a repeat was refused locally: the call then ends
// with its last real failure, and the refusal is the reason for stopping.
func (l *loop) refusedBetween(a *attempt) bool {
	switch a.Outcome {
	case observe.BreakerOpen, observe.RateLimited:
	default:
		return false
	}
	n := len(l.call.attempts)
	if n < 2 || len(a.posts) > 0 { // a later round may have been held back
		return false
	}
	l.call.decision = policy.Decision{Action: policy.Stop, Reason: "no repeat: " + a.Reason, Rule: "default"}
	l.call.attempts = l.call.attempts[:n-1]
	return true
}

// rule asks the policy, and pays for a repeat.
func (l *loop) rule(question policy.Attempt, state policy.State) policy.Decision {
	d := l.call.tool.Decide(question, state)
	if d.Action == policy.Repeat && !d.Cured && !l.budget.Take() {
		state.Budget = false
		d = l.call.tool.Decide(question, state)
	}
	return d
}

func (l *loop) question(a *attempt, res mcp.Result) policy.Attempt {
	q := policy.Attempt{
		Outcome:       a.Outcome,
		Delivery:      a.Delivery,
		Status:        a.status(),
		RetryAfter:    a.says.wait,
		HasRetryAfter: a.says.hasWait,
		DoNotRetry:    a.says.doNotRetry,
	}
	if a.resume == nil && rounds(a.posts) {
		// A repeat would begin with the first round, which the server has had.
		q.Delivery = observe.Gravest(q.Delivery, observe.Answered)
	}
	if a.RPC != nil {
		q.Code, q.HasCode = a.RPC.Code, true
	}
	if a.Post != nil {
		q.EchoedID, q.SessionEnded = a.Post.Verdict.EchoedID, a.Post.SessionEnded
	}
	if tool, ok := res.(*mcp.CallToolResult); ok && tool != nil && tool.IsError && len(l.call.tool.Retry.ToolErrors) > 0 {
		q.ToolErrorText = resultText(tool)
	}
	return q
}

func (l *loop) state(ctx context.Context, a *attempt) policy.State {
	s := policy.State{
		Repeats:   l.repeats,
		Refreshed: l.refreshed, RefreshSpent: l.refreshSpent,
		Remaining: policy.NoDeadline,
		Budget:    l.budget.Has(),
		Healed:    a.Post != nil && a.Post.Healed,
		HealSpent: l.healed,
		Graver:    gravest(l.call.attempts[:len(l.call.attempts)-1]),
		Rand:      l.core.opts.Rand(),
	}
	if deadline, ok := ctx.Deadline(); ok {
		s.Remaining = max(time.Until(deadline), 0)
	}
	return s
}

// resume lets the repeat go on from the round that failed.
func (l *loop) resume(a *attempt) {
	if a.resume != nil {
		l.call.goOn(*a.resume)
	}
}

// budget is the retry budget of the call's server and tool; reading methods have
// none.
func (c *core) budget(cl *call) *policy.Budget {
	if !cl.isTool() {
		return nil
	}
	size := cl.tool.Retry.Budget
	return c.budgets.get(settled[float64]{target{cl.server.name, cl.tool.Name}, size}, func() *policy.Budget {
		return policy.NewBudget(size)
	})
}

// resultText is the text of a result, for the policy's matches.
func resultText(res *mcp.CallToolResult) string {
	var b strings.Builder
	for _, content := range res.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
			b.WriteByte('\n')
		}
	}
	return b.String()
}
