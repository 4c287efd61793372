package middleware

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// stored is the form in which the ledger keeps an answer.
type stored struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  *storedError    `json:"error,omitempty"`
}

type storedError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// settle writes down what became of the call. Where that is in doubt and the host
// can look, it looks first.
func (k *keying) settle(ctx context.Context, ticket *idempotency.Ticket, res mcp.Result, err error) (mcp.Result, error) {
	a := k.call.last(ctx, res, err)
	s := k.call.settlement(a, res)
	if look := k.core.reconciler(k.call); s.State == idempotency.Unknown && look != nil && ctx.Err() == nil {
		res, s, err = k.reconcile(ctx, look, res, err)
	}
	s.Rounds = k.call.rounds
	k.note(ticket.Settle(ctx, s), s)
	return res, err
}

// note tells the record how the call was settled. A ledger that cannot be written
// changes nothing about the answer.
func (k *keying) note(err error, s idempotency.Settlement) {
	k.call.ledger.Settled = string(s.State)
	switch {
	case errors.Is(err, idempotency.ErrConflict):
		k.call.ledger.Kind = "conflict" // another process had settled the call already
	case err != nil:
		k.call.ledger.Settled, k.call.ledger.Kind = string(idempotency.Unknown), string(idempotency.KindStore)
	}
}

// settlement is what the ledger is told of a call that ended.
func (cl *call) settlement(a *attempt, res mcp.Result) idempotency.Settlement {
	switch {
	case a.Outcome == observe.InputRequired:
		// Not final: the same intent goes on.
		return idempotency.Settlement{State: idempotency.Failed}
	case a.Outcome.Answered() && a.Delivery == observe.Answered:
		body, isError := cl.answer(a, res)
		return idempotency.Settlement{State: idempotency.Completed, Answer: body, IsError: isError}
	case cl.didNotRun():
		return idempotency.Settlement{State: idempotency.Failed}
	}
	return idempotency.Settlement{State: idempotency.Unknown}
}

// didNotRun reports whether the evidence says that the tool has not run.
func (cl *call) didNotRun() bool {
	d := cl.delivery()
	if d == observe.Refused && slices.ContainsFunc(cl.attempts, lostSession) {
		// A 404 can be written after the tool ran. In doubt, a keyed call that comes
		// again has the same key.
		return cl.tool.Retry.Healed
	}
	return d == observe.NotSent || d == observe.Refused
}

func lostSession(a attempt) bool {
	return a.Outcome == observe.SessionLost && a.Delivery == observe.Refused && a.reconciled != DidNotHappen
}

// answer is the answer in the form that the ledger keeps. Nobody can ask again for a
// call that has no name, so that nothing is kept of that.
func (cl *call) answer(a *attempt, res mcp.Result) (body []byte, isError bool) {
	if a.RPC != nil {
		body, _ = json.Marshal(stored{Error: &storedError{a.RPC.Code, a.RPC.Message, a.RPC.Data}})
		return body, true
	}
	tool, _ := res.(*mcp.CallToolResult)
	if tool == nil || !cl.named {
		return nil, false
	}
	return storedResult(tool), tool.IsError
}

// storedResult is a result in the form that the ledger keeps; nil where it has none.
func storedResult(res *mcp.CallToolResult) []byte {
	raw, err := json.Marshal(res)
	if err != nil {
		return nil
	}
	body, err := json.Marshal(stored{Result: raw})
	if err != nil {
		return nil
	}
	return body
}

// replay answers a call from the ledger, without traffic.
func (k *keying) replay(ctx context.Context, ticket *idempotency.Ticket) (mcp.Result, error) {
	cl := k.call
	since := ticket.Since()
	cl.key = ticket.Key()
	cl.ledger.Step, cl.ledger.Since = observe.LedgerReplayed, &since
	var s stored
	if err := json.Unmarshal(ticket.Answer().Body, &s); err != nil {
		return k.refuse(ctx, err)
	}
	if s.Error != nil {
		rpc := &observe.RPCError{Code: s.Error.Code, Message: s.Error.Message, Data: s.Error.Data}
		cl.decision = policy.Decision{Action: policy.Stop, Reason: "answered from the ledger"}
		cl.add(attempt{Judgement: observe.Judgement{Outcome: observe.JSONRPCError, Delivery: observe.Answered, Reason: "the answer of an earlier call", RPC: rpc}})
		return nil, cl.failure(ctx)
	}
	res := new(mcp.CallToolResult)
	if err := json.Unmarshal(s.Result, res); err != nil {
		return k.refuse(ctx, err)
	}
	return k.repeated(marked(res, since)), nil
}

// repeated ends a call with the result of an earlier one.
func (k *keying) repeated(res *mcp.CallToolResult) *mcp.CallToolResult {
	k.call.ledger.Step = observe.LedgerReplayed
	k.call.decision = policy.Decision{Action: policy.Stop, Reason: "answered from the ledger"}
	outcome := observe.ToolSuccess
	if res.IsError {
		outcome = observe.ToolError
	}
	k.call.add(attempt{Judgement: observe.Judgement{Outcome: outcome, Delivery: observe.Answered}})
	return res
}
