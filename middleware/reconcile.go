package middleware

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/observe"
)

// A Finding is what a host found out about a call whose outcome was unknown.
type Finding string

const (
	// CannotTell leaves the call unknown. It is what the zero Finding means.
	CannotTell Finding = "cannot_tell"
	// Happened: the tool has run. The call is completed with the result that the host
	// found, if it found one.
	Happened Finding = "happened"
	// DidNotHappen: the tool has not run, and will not run later. The call is sent
	// again, once.
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
	// Failure is how the call ended.
	Failure *observe.Error
}

// A Reconciler finds out what became of a call, for example by calling a read-only
// tool with arguments derived from the call's. It runs within the caller's
// deadline. An error counts as [CannotTell]. The result is for [Happened] alone, and
// may be nil there: the caller then gets an empty one.
type Reconciler func(ctx context.Context, u *Unresolved) (Finding, *mcp.CallToolResult, error)

// reconcile looks what became of a call in doubt.
func (k *keying) reconcile(ctx context.Context, res mcp.Result, err error) (mcp.Result, idempotency.Settlement, error) {
	cl := k.call
	// What the hook calls is another intent.
	finding, found, lookErr := k.core.opts.Reconcile(aside(ctx), &Unresolved{
		Session: cl.session, Server: cl.server.name, Tool: cl.tool.Name,
		Arguments: cl.given, Key: cl.key, Failure: cl.failure(ctx),
	})
	if lookErr != nil {
		finding = CannotTell
	}
	cl.ledger.Reconciled = string(finding)
	switch finding {
	case Happened:
		if found == nil {
			found = &mcp.CallToolResult{Content: []mcp.Content{}}
		}
		body, isError := cl.answer(&attempt{}, found)
		return found, idempotency.Settlement{State: idempotency.Completed, Answer: body, IsError: isError}, nil
	case DidNotHappen:
		return k.again(ctx)
	}
	return res, idempotency.Settlement{State: idempotency.Unknown}, err
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
		cl.attempts[i].Delivery = observe.Refused
	}
	cl.judged = false
}
