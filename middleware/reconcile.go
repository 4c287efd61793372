package middleware

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// A Reconciliation says who finds out what became of the calls of some tools.
type Reconciliation struct {
	// Server and Tool are globs, as in [policy.Rule]; empty matches all.
	Server, Tool string
	// Look finds out. Nil: nobody can, and no later entry is asked either.
	Look Reconciler
}

// A Reconciler finds out what became of a call, for example by calling a read-only
// tool with arguments derived from the call's. An error counts as [CannotTell]. The
// result is for [Happened] alone, and may be nil there: the caller then gets an empty
// one.
//
// It is asked within the caller's deadline, right after a call has ended unknown,
// and before a call is refused because the same call or an equal one is in doubt:
// one that a dead process has left behind, or one whose deadline left no time to
// ask. What it calls are calls of their own. It may be asked by several calls at
// once.
type Reconciler func(ctx context.Context, u *Unresolved) (Finding, *mcp.CallToolResult, error)

// A Finding is what a host found out about a call whose outcome was unknown.
type Finding string

const (
	// CannotTell leaves the call unknown. It is what the zero Finding means.
	CannotTell Finding = "cannot_tell"
	// Happened: the tool has run. The call is completed with the result that the host
	// found, if it found one. An equal call that was held back by the doubt gets that
	// result too, once: it is taken for a repeat.
	Happened Finding = "happened"
	// DidNotHappen: the tool has not run, and will not run later. The call is sent
	// again, once, unless the server has said not to; the next one is not in doubt then.
	DidNotHappen Finding = "did_not_happen"
)

// An Unresolved call is one whose outcome is unknown.
type Unresolved struct {
	// Session to look through; calls made on it are calls of their own.
	Session *mcp.ClientSession
	Server  string
	Tool    string
	// Arguments as the caller gave them. They must not be changed.
	Arguments any
	// Key that the call carried.
	Key string
	// Since is when the call was begun.
	Since time.Time
	// Failure is how the call ended; nil for an earlier call.
	Failure *observe.Error
}

// reconciler is who can find out what became of the call, or nil: the host's hook, or
// else the tool that the policy names.
func (c *core) reconciler(cl *call) Reconciler {
	for _, r := range c.opts.Reconcile {
		if matches(r.Server, cl.server.name) && matches(r.Tool, cl.tool.Name) {
			return r.Look
		}
	}
	if rule := cl.tool.Reconcile; rule != nil && rule.Tool != "" && cl.session != nil {
		return cl.lookup(rule)
	}
	return nil
}

func matches(glob, name string) bool { return glob == "" || policy.Match(glob, name) }

// ask puts the question to the host and notes what it found. A hook that does not look
// at its context is left behind when that ends.
func (k *keying) ask(ctx context.Context, look Reconciler, d idempotency.Doubt, failure *observe.Error) (Finding, *mcp.CallToolResult) {
	cl := k.call
	asked := time.Now()
	u := &Unresolved{
		Session: cl.session, Server: cl.server.name, Tool: cl.tool.Name,
		Arguments: cl.given, Key: d.Key, Since: d.Since, Failure: failure,
	}
	answer, ok := detach(ctx, func() (a lookAnswer) {
		a.finding, a.found, a.err = look(idempotency.Aside(ctx), u)
		return a
	})
	if !ok {
		answer.err = ctx.Err()
	}
	note := observe.Look{Since: d.Since, Equal: d.Equal}
	if answer.err != nil {
		note.Error = cl.redactor(&attempt{}).Text(answer.err.Error(), recordText)
	}
	if answer.err != nil || answer.finding != Happened && answer.finding != DidNotHappen {
		answer.finding = CannotTell
	}
	note.Finding, note.DurationMs = string(answer.finding), milliseconds(time.Since(asked))
	cl.ledger.Reconciled = append(cl.ledger.Reconciled, note)
	if answer.found == nil {
		answer.found = &mcp.CallToolResult{Content: []mcp.Content{}}
	}
	return answer.finding, answer.found
}

// lookAnswer is what a Reconciler returns.
type lookAnswer struct {
	finding Finding
	found   *mcp.CallToolResult
	err     error
}

// reconcile looks what became of this call, which has just ended in doubt.
func (k *keying) reconcile(ctx context.Context, look Reconciler, res mcp.Result, err error) (mcp.Result, idempotency.Settlement, error) {
	cl := k.call
	d := idempotency.Doubt{Key: cl.key, Since: cl.started}
	if cl.ledger.Since != nil {
		d.Since = *cl.ledger.Since
	}
	finding, found := k.ask(ctx, look, d, cl.failure(ctx))
	switch finding {
	case Happened:
		return found, happened(found), nil
	case DidNotHappen:
		if cl.attempts[len(cl.attempts)-1].says.doNotRetry {
			return res, idempotency.Settlement{State: idempotency.Failed, Verified: true}, err
		}
		return k.again(ctx)
	}
	return res, idempotency.Settlement{State: idempotency.Unknown}, err
}

// happened settles a call as done with what the host found.
func happened(found *mcp.CallToolResult) idempotency.Settlement {
	return idempotency.Settlement{State: idempotency.Completed, Answer: storedResult(found), IsError: found.IsError}
}

// again sends a call once more that did not happen, with the same key, and from the
// round that failed: nobody is asked twice. It is not looked for a second time.
func (k *keying) again(ctx context.Context) (mcp.Result, idempotency.Settlement, error) {
	cl := k.call
	if a := &cl.attempts[len(cl.attempts)-1]; a.resume != nil {
		cl.goOn(*a.resume)
	}
	cl.forgive()
	res, err := k.next(ctx, cl.method, cl.request)
	s := cl.settlement(cl.last(ctx, res, err), res)
	s.Verified = true
	return res, s, err
}

// forgive takes the doubt from the attempts made so far: somebody has looked.
func (cl *call) forgive() {
	for i := range cl.attempts {
		cl.attempts[i].reconciled = DidNotHappen
	}
	cl.judged, cl.doubt = false, false
}

// reconcileEarlier looks what became of the earlier calls for which the ledger has
// refused this one. Where none is in doubt any longer, the ledger is asked anew;
// where an equal one has happened, this one is taken for its repeat and gets the
// result.
func (k *keying) reconcileEarlier(ctx context.Context, c idempotency.Call, refusal error) (*idempotency.Ticket, *mcp.CallToolResult, error) {
	look := k.core.reconciler(k.call)
	if look == nil || !inDoubt(refusal) || ctx.Err() != nil {
		return nil, nil, refusal
	}
	doubts, err := k.core.opts.Ledger.InDoubt(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	for i := range doubts {
		d := &doubts[i]
		finding, found := k.ask(ctx, look, *d, nil)
		s := idempotency.Settlement{State: idempotency.Failed}
		switch finding {
		case CannotTell:
			return nil, nil, refusal
		case Happened:
			s = happened(found)
		}
		resolved, err := d.Resolve(ctx, s)
		switch {
		case err != nil:
			return nil, nil, err
		case d.Equal && finding == Happened:
			return nil, marked(found, d.Since), k.adoptResult(ctx, c, s)
		case d.Equal && !resolved:
			// Somebody else has sent it again, or another one like it.
			return nil, nil, refusal
		}
	}
	ticket, err := k.core.opts.Ledger.Begin(ctx, c)
	return ticket, nil, err
}

// adoptResult writes down that a call with a name of its own was answered with the
// result of an equal one, so that it is not sent when it comes again.
func (k *keying) adoptResult(ctx context.Context, c idempotency.Call, s idempotency.Settlement) error {
	if !k.call.named {
		return nil
	}
	c.RepeatAllowed = true // whatever equal calls there are: nothing is sent
	ticket, err := k.core.opts.Ledger.Begin(ctx, c)
	if err != nil {
		return err
	}
	return ticket.Settle(ctx, s)
}

// inDoubt reports whether a call was refused because of an earlier one that may have
// taken effect.
func inDoubt(err error) bool {
	var refused *idempotency.Error
	return errors.As(err, &refused) && (refused.Kind == idempotency.KindUnknown || refused.Kind == idempotency.KindEqual)
}

// marked is a result that answers a call that was not sent. What the host gave is not
// changed.
func marked(res *mcp.CallToolResult, since time.Time) *mcp.CallToolResult {
	c := *res
	c.Meta = maps.Clone(c.Meta)
	if c.Meta == nil {
		c.Meta = mcp.Meta{}
	}
	c.Meta[idempotency.MetaReplay] = since.UTC().Format(time.RFC3339)
	return &c
}
