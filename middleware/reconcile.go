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

// ask puts the question to the host and notes what it found.
func (k *keying) ask(ctx context.Context, look Reconciler, d idempotency.Doubt, failure *observe.Error) (Finding, *mcp.CallToolResult) {
	cl := k.call
	asked := time.Now()
	// What the hook calls is another intent.
	finding, found, err := look(aside(ctx), &Unresolved{
		Session: cl.session, Server: cl.server.name, Tool: cl.tool.Name,
		Arguments: cl.given, Key: d.Key, Since: d.Since, Failure: failure,
	})
	note := observe.Look{Since: d.Since, Equal: d.Equal}
	if err != nil {
		finding, note.Error = CannotTell, observe.Redact(err.Error(), recordText)
	}
	if finding != Happened && finding != DidNotHappen {
		finding = CannotTell
	}
	note.Finding, note.DurationMs = string(finding), milliseconds(time.Since(asked))
	cl.ledger.Reconciled = append(cl.ledger.Reconciled, note)
	if found == nil {
		found = &mcp.CallToolResult{Content: []mcp.Content{}}
	}
	return finding, found
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
		return found, cl.happened(found), nil
	case DidNotHappen:
		if cl.attempts[len(cl.attempts)-1].says.doNotRetry {
			return res, idempotency.Settlement{State: idempotency.Failed, Verified: true}, err
		}
		return k.again(ctx)
	}
	return res, idempotency.Settlement{State: idempotency.Unknown}, err
}

// happened settles a call as done with what the host found.
func (cl *call) happened(found *mcp.CallToolResult) idempotency.Settlement {
	body, isError := cl.answer(&attempt{}, found)
	return idempotency.Settlement{State: idempotency.Completed, Answer: body, IsError: isError}
}

// again sends a call once more that did not happen, with the same key. It is not
// looked for a second time.
func (k *keying) again(ctx context.Context) (mcp.Result, idempotency.Settlement, error) {
	k.call.forgive()
	res, err := k.next(ctx, k.call.method, k.call.request)
	s := k.call.settlement(k.call.last(ctx, res, err), res)
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
	for _, d := range doubts {
		finding, found := k.ask(ctx, look, d, nil)
		s := idempotency.Settlement{State: idempotency.Failed}
		switch finding {
		case CannotTell:
			return nil, nil, refusal
		case Happened:
			s = k.call.happened(found)
		}
		earlier := c
		earlier.Intent, earlier.Key = "", d.Key
		if _, err := k.core.opts.Ledger.Resolve(ctx, earlier, s); err != nil {
			return nil, nil, err
		}
		if finding == Happened && d.Equal {
			return nil, marked(found, d.Since), nil
		}
	}
	ticket, err := k.core.opts.Ledger.Begin(ctx, c)
	return ticket, nil, err
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
