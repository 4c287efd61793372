package middleware

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// watched is Attempt in shadow mode, where it is the only middleware beside Record
// that does anything: the call passes as it is, and what the others would have done
// about it is noted.
func (c *core) watched(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, cl := c.begin(ctx, method, req)
		switch {
		case cl == nil:
			return next(ctx, method, req)
		case isHandshake(method):
			res, err := c.greet(ctx, cl.session, func(ctx context.Context) (mcp.Result, error) { return next(ctx, method, req) })
			if err == nil {
				c.observeSession(ctx, cl, res)
			}
			return res, err
		case !cl.isTool():
			res, err := next(ctx, method, req)
			c.learn(ctx, cl, res)
			return res, err
		}
		s := &shadow{core: c, call: cl}
		return s.run(ctx, next)
	}
}

// A shadow follows one call.
type shadow struct {
	core   *core
	call   *call
	entry  entry
	ticket *idempotency.Ticket // nil where the ledger would not have let the call pass
}

func (s *shadow) run(ctx context.Context, next mcp.MethodHandler) (mcp.Result, error) {
	cl := s.call
	s.key(ctx)
	s.admit(ctx)
	defer s.entry.abandon()
	defer s.settle(ctx, idempotency.Settlement{State: idempotency.Unknown}) // for panics alone
	ev := newEvidence(cl.method, cl.tool)
	ev.hideEmail = s.core.opts.HideEmail
	in, seen := s.core.observeAttempt(ctx, cl)
	defer seen.end(nil)
	started := time.Now()
	res, err := next(withEvidence(in, ev), cl.method, cl.request)
	if ctx.Err() != nil {
		ev.expire()
	}
	w := wire{there: cl.server.wire, last: ev.lastPost()}
	w.posts, w.answer, w.unseen = ev.close()
	a, _, _ := w.judge(ctx, res, err)
	a.heed(res, cl.tool)
	cl.believe(&a)
	a.started, a.took = started, time.Since(started)
	cl.begun = rounds(a.posts)
	cl.add(a)
	s.conclude(ctx, &cl.attempts[0], res)
	if seen.ended != nil {
		seen.end(cl.attemptEnd())
	}
	return res, err
}

// conclude notes what would have followed, and tells the shadow's own gate, breakers,
// budget and ledger.
func (s *shadow) conclude(ctx context.Context, a *attempt, res mcp.Result) {
	s.entry.leave(a)
	s.settle(ctx, s.call.settlement(a, res))
	l := &loop{core: s.core, call: s.call, budget: s.core.budget(s.call)}
	question, state := l.question(a, res), l.state(ctx, a)
	s.cure(&question, &state)
	d := l.rule(question, state)
	if a.Outcome == observe.ToolSuccess {
		l.budget.Return()
	}
	s.call.would = append(s.call.would, made(d))
	s.call.decision = policy.Decision{Action: policy.Stop, Reason: "shadow mode: nothing is decided"}
}

// cure supposes that what would have been done about the cause of a failure, before the
// policy decides, would have helped.
func (s *shadow) cure(q *policy.Attempt, st *policy.State) {
	cl := s.call
	switch {
	case q.Outcome == observe.SessionLost && !q.SessionEnded && s.call.rules.Reads(cl.server.name).Session.Heal:
		s.would(wouldRenew, "the server does not know the session", 0)
		q.Delivery, st.Healed = observe.Refused, true
	case cl.protocolVersion() >= sessionlessVersion && cl.tool.CuredByRefresh(*q):
		s.would(wouldRefresh, "the headers do not match the tool's definition", 0)
		st.Refreshed = true
	}
}

// would notes what would have been done before sending.
func (s *shadow) would(action, reason string, wait time.Duration) {
	s.call.would = append(s.call.would, observe.Choice{Action: action, Reason: reason, WaitMs: milliseconds(wait)})
}

const (
	wouldRefuse  = "refuse"
	wouldWait    = "wait"
	wouldReplay  = "replay"
	wouldRenew   = "renew"   // the session
	wouldRefresh = "refresh" // the tool's definition
)

// key asks the shadow's own ledger, without waiting for a call under way.
func (s *shadow) key(ctx context.Context) {
	cl := s.call
	if s.core.opts.Ledger == nil || bypassesLedger(cl.tool.Safety) || cl.params() == nil {
		return
	}
	host, intent := namedKey(ctx, cl), idempotency.IntentFrom(ctx)
	cl.named, cl.key = host != "" || intent != "", host
	print, err := idempotency.FingerprintOf(cl.server.scope, cl.tool.Name, cl.params().Arguments)
	if err != nil {
		s.would(wouldRefuse, "the arguments have no fingerprint", 0)
		return
	}
	now, cancel := context.WithCancel(ctx)
	cancel()
	ticket, err := s.core.opts.Ledger.Begin(now, idempotency.Call{
		Principal: idempotency.PrincipalFrom(ctx), Server: cl.server.scope, Tool: cl.tool.Name,
		Intent: intent, Key: host, Keyed: cl.tool.Safety == policy.Keyed, Fingerprint: print,
		GuardWindow: cl.tool.Key.Guard, RepeatAllowed: idempotency.RepeatAllowed(ctx),
	})
	switch {
	case err != nil:
		s.would(wouldRefuse, refusalReason(err), 0)
	case ticket.Answer() != nil:
		s.would(wouldReplay, "the same call was answered before", 0)
	default:
		s.ticket = ticket
	}
}

// settle tells the shadow's own ledger what became of the call; the first word counts.
func (s *shadow) settle(ctx context.Context, to idempotency.Settlement) {
	if s.ticket != nil {
		_ = s.ticket.Settle(ctx, to)
		s.ticket = nil
	}
}

// admit asks the shadow's own gate, breakers and limiter. Nothing waits.
func (s *shadow) admit(ctx context.Context) {
	e := &s.entry
	*e = entry{core: s.core, call: s.call, gate: s.core.gate(s.call)}
	e.server, e.tool = s.core.serverBreaker(s.call), s.core.toolBreaker(s.call)
	e.onServer, e.onTool = ignore, ignore
	s.hold(ctx, e.gate.remaining(time.Now()), true, observe.WaitGate)
	if l := s.call.tool.Limiter; l.Rate > 0 {
		token := s.core.limiter(s.call).Reserve()
		if wait := token.Delay(); wait > 0 {
			token.Cancel()
			s.hold(ctx, wait, !l.NoWait, observe.WaitLimiter)
		}
	}
	if refused := e.enter(); refused != nil {
		s.would(wouldRefuse, refused.Reason, refused.says.wait)
		e.onServer, e.onTool = ignore, ignore
	}
}

func ignore(error) {}

// hold notes a wait, or the refusal of a call that cannot wait so long.
func (s *shadow) hold(ctx context.Context, d time.Duration, mayWait bool, why observe.WaitReason) {
	deadline, bounded := ctx.Deadline()
	switch {
	case d <= 0:
	case !mayWait || bounded && time.Until(deadline) <= d:
		s.would(wouldRefuse, holdReasons[why], d)
	default:
		s.would(wouldWait, holdReasons[why], d)
	}
}
