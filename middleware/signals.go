package middleware

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// signals are what an answer says about coming back.
type signals struct {
	wait       time.Duration
	hasWait    bool
	doNotRetry bool
}

// signalsOf reads an answer in the dialects that the policy reads.
func signalsOf(r *policy.Reply, t *policy.Tool) signals {
	wait, ok := r.Wait(t.Retry.Signals)
	return signals{wait, ok, r.DoNotRetry()}
}

// heed notes what an answer says, beside what it has said before: of several waits the
// longest counts.
func (p *post) heed(r *policy.Reply) {
	says := signalsOf(r, p.tool)
	p.update(func(s *observe.Post) {
		s.RetryAfter, s.HasRetryAfter = max(s.RetryAfter, says.wait), s.HasRetryAfter || says.hasWait
		s.DoNotRetry = s.DoNotRetry || says.doNotRetry
	})
}

// heedHead notes what the head of a response says, whose body is judged later, or not
// at all.
func (p *post) heedHead(h http.Header) {
	p.heed(&policy.Reply{Status: p.status, Header: h, Now: time.Now()})
}

// heedRefusal notes what head and body of a response say together.
func (p *post) heedRefusal(h http.Header, v *observe.Verdict) {
	r := policy.Reply{Status: p.status, Header: h, Now: time.Now()}
	if v.Error != nil {
		r.Data = v.Error.Data
	}
	p.heed(&r)
}

// heedMessage notes what a message says.
func (p *post) heedMessage(v *observe.Verdict) {
	var r policy.Reply
	if v.Error != nil {
		r.Data = v.Error.Data
	}
	if v.Outcome == observe.ToolError || v.Outcome == observe.InvalidToolResult {
		r.Meta = metaOf(v.Result)
	}
	if r.Data != nil || r.Meta != nil {
		p.heed(&r)
	}
}

// metaOf is the _meta of a result, or nil.
func metaOf(result []byte) json.RawMessage {
	var r struct {
		Meta json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(result, &r) // what cannot be read says nothing
	return r.Meta
}

// heed notes what an attempt came back with: the wait that the last POST was told, and
// whether any was told not to be sent again. Without a wire the result and the error
// are all there is.
func (a *attempt) heed(res mcp.Result, t *policy.Tool) {
	if p := a.Post; p != nil {
		forbids := slices.ContainsFunc(a.posts, func(p observe.Post) bool { return p.DoNotRetry })
		a.says = signals{p.RetryAfter, p.HasRetryAfter, forbids}
		return
	}
	r := policy.Reply{Now: time.Now()}
	if a.RPC != nil {
		r.Data = a.RPC.Data
	}
	if tool, ok := res.(*mcp.CallToolResult); ok && tool != nil && tool.IsError {
		r.Meta, _ = json.Marshal(tool.Meta)
	}
	a.says = signalsOf(&r, t)
}

// announce tells the server the number of the attempt, from 1, and how much time is
// left for the call as it begins, where the policy says so.
func (cl *call) announce(ctx context.Context) {
	if !cl.isTool() || !cl.tool.Retry.Announce || cl.params() == nil {
		return
	}
	params := *cl.params()
	params.Meta = maps.Clone(params.Meta)
	if params.Meta == nil {
		params.Meta = mcp.Meta{}
	}
	params.Meta[policy.MetaAttempt] = len(cl.attempts) + 1
	delete(params.Meta, policy.MetaTimeLeft)
	if deadline, ok := ctx.Deadline(); ok {
		params.Meta[policy.MetaTimeLeft] = max(time.Until(deadline).Milliseconds(), 0)
	}
	cl.replace(&params)
}
