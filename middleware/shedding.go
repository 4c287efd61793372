package middleware

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

const (
	// maxPutOffs is how often a server may put one attempt off.
	maxPutOffs = 10
	// putOffWait is the first wait where the policy has no backoff: a server that sheds
	// load is not asked again at once.
	putOffWait = 200 * time.Millisecond
)

// converse calls next, and again after a wait for as long as the server only puts the
// call off: an input_required result without a question, with which a server sheds
// load (MCP 2026-07-28, multi round-trip requests). It is neither a failure nor a
// repeat, so the attempt goes on. The SDK would ask again three times without a pause
// where the map of questions is empty, and take the answer for an empty success where
// it is missing (go-sdk v1.8.0); so the [Transport] takes an empty map away, and the
// waiting is done here, where the caller's context counts and no POST is under way.
func (c *core) converse(ctx context.Context, cl *call, ev *evidence, next mcp.MethodHandler) (mcp.Result, error) {
	for n := 0; ; n++ {
		cl.announce(ctx)
		res, err := cl.invoke(ctx, next)
		off, ok := putOff(res, err)
		if !ok || n == maxPutOffs {
			return res, err
		}
		wait := cl.putOffWait(n, c.opts.Rand())
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
			return res, err
		}
		switch {
		case sleep(ctx, wait):
			ev.waited(observe.WaitPutOff, wait)
		case ctx.Err() == context.DeadlineExceeded: // the wait was to end just before
			return res, err
		default:
			return nil, ctx.Err()
		}
		cl.goOn(cl.sameRound(ev.lastPost(), off))
	}
}

// putOff returns the result with which the server puts the call off, if it is one.
func putOff(res mcp.Result, err error) (*mcp.CallToolResult, bool) {
	tool, ok := res.(*mcp.CallToolResult)
	if err != nil || !ok || tool == nil {
		return nil, false
	}
	return tool, tool.NeedsInput() && len(tool.InputRequests) == 0
}

// sameRound is what the round that was put off carries when it comes again: the answers
// already given, which the server need not have looked at (one that has ignores them;
// MCP 2026-07-28, multi round-trip requests, "error handling"), and the server's state.
// Where the server that put it off gave none, that is the state which the answers belong
// to. The specification's "no state in the retry" would ask the user again.
func (cl *call) sameRound(last *post, off *mcp.CallToolResult) resumption {
	var r resumption
	if p := cl.params(); p != nil {
		r = resumption{p.InputResponses, p.RequestState}
	}
	if last != nil {
		if carried := last.carried(); carried != nil {
			r = *carried
		}
	}
	if off.RequestState != "" {
		r.state = off.RequestState
	}
	return r
}

// putOffWait is the policy's backoff, at least half of it.
func (cl *call) putOffWait(n int, rand float64) time.Duration {
	r := cl.tool.Retry
	if r.Backoff <= 0 {
		r.Backoff = putOffWait
	}
	return policy.Backoff(r.Backoff, r.BackoffCap, n, (1+rand)/2)
}

// goOn lets the call continue with what a later round carries.
func (cl *call) goOn(r resumption) {
	if cl.params() == nil {
		return
	}
	params := *cl.params()
	params.InputResponses, params.RequestState = r.responses, r.state
	cl.replace(&params)
}

// putOff reports whether an answer only puts the call off, and somebody above waits.
func (p *post) putOff(v *observe.Verdict) bool {
	return v.Outcome == observe.InputRequired && v.InputRequests == 0 && p.evidence.attended
}

// withoutRequests is a result that puts the call off, without its empty map of
// questions; or nil.
func withoutRequests(result []byte) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(result, &members) != nil {
		return nil
	}
	delete(members, "inputRequests")
	text, err := json.Marshal(members)
	if err != nil {
		return nil
	}
	return text
}

// resultMessage is a response with a result; an error in its place where there is none.
func resultMessage(id string, result json.RawMessage) []byte {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "result": result})
	if err != nil || result == nil {
		return rejection(id, "the result cannot be passed on")
	}
	return body
}

// patience is what the caller gets of a call that was put off to the end: still an
// input_required result with its state, for hosts that conduct their own rounds, but
// one that no other host takes for a success.
func patience(off *mcp.CallToolResult, e *observe.Error, text string) *mcp.CallToolResult {
	told, spoken := *off, modelResult(e, text)
	told.Meta = maps.Clone(off.Meta)
	if told.Meta == nil {
		told.Meta = mcp.Meta{}
	}
	maps.Copy(told.Meta, spoken.Meta)
	told.SetError(e)
	told.Content = spoken.Content
	return &told
}
