package middleware

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/observe"
)

// Attempt makes one attempt and says what it came to: it puts the evidence into
// the context for the [Transport], calls next, and judges what was seen on the
// wire before it judges what the SDK returned. It also learns a session's
// endpoint from its handshake.
func Attempt(opts *Options) mcp.Middleware { return newCore(opts).attempt }

func (c *core) attempt(next mcp.MethodHandler) mcp.MethodHandler {
	if c.opts.Shadow {
		return c.watched(next)
	}
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, cl := c.begin(ctx, method, req)
		switch {
		case cl == nil:
			return next(ctx, method, req)
		case isHandshake(method):
			res, err := c.greet(ctx, cl.session, func(ctx context.Context) (mcp.Result, error) {
				return c.try(ctx, cl, next)
			})
			if err == nil {
				c.observeSession(ctx, cl, res)
			}
			return res, err
		}
		return c.try(ctx, cl, next)
	}
}

// try makes the attempt. A reading method's error stays the SDK's own: hosts look
// for its JSON-RPC code.
func (c *core) try(ctx context.Context, cl *call, next mcp.MethodHandler) (mcp.Result, error) {
	ev := newEvidence(cl.method, cl.tool)
	ev.hideEmail = c.opts.HideEmail
	ev.keys = roundKeys{meta: cl.metaName(), key: cl.key, before: cl.rounds, header: cl.headers}
	ev.entry, ev.attended, ev.progress = cl.entry, true, cl.wantProgress()
	ev.asked = cl.asked
	if cl.isTool() && cl.params() != nil {
		ev.params, _ = c.headers.find(target{cl.server.name, cl.tool.Name})
		cl.mirrored = ev.params
		ev.given = cl.params().Arguments
	}
	in, seen := c.observeAttempt(ctx, cl)
	defer seen.end(nil)
	started := time.Now()
	res, err := c.converse(withEvidence(idempotency.Aside(in), ev), cl, ev, next)
	if err != nil && ctx.Err() != nil {
		ev.settle(settleTime)
	}
	w := wire{there: cl.server.wire, last: ev.lastPost()}
	w.posts, w.answer, w.unseen = ev.close()
	a, res, err := w.judge(ctx, res, err)
	a.heed(res, cl.tool)
	cl.believe(&a)
	a.started, a.took = started, time.Since(started)
	cl.rounds += a.rounds()
	cl.asked += a.rounds()
	cl.begun = cl.begun || rounds(a.posts)
	cl.add(a)
	if seen.ended != nil {
		seen.end(cl.attemptEnd())
	}
	if !cl.isTool() {
		c.learn(ctx, cl, res)
		return res, a.err
	}
	if err != nil {
		return nil, cl.failure(ctx)
	}
	if off, ok := putOff(res, nil); ok {
		failure := cl.failure(ctx)
		cl.text = failure.ModelText()
		return patience(off, failure, cl.text), nil
	}
	return res, nil
}

// invoke calls next, and comes back when the context ends even if next does not:
// without HTTP the SDK's write blocks for as long as a child process does not read
// its input, and every call for as long as it takes to end one; and with rounds it
// waits for the host's handlers, which may not look at their context (go-sdk v1.8.0).
// What goes on behind our back may still reach the server, unless our transport
// stands there, so that such an attempt is in the dark.
func (cl *call) invoke(ctx context.Context, next mcp.MethodHandler) (mcp.Result, error) {
	if cl.server.wire && !cl.server.piped && cl.protocolVersion() < sessionlessVersion {
		return next(ctx, cl.method, cl.request)
	}
	method, req := cl.method, cl.request
	type answer struct {
		res mcp.Result
		err error
	}
	a, ok := detach(ctx, func() answer {
		res, err := next(ctx, method, req)
		return answer{res, err}
	})
	if !ok {
		return nil, ctx.Err()
	}
	return a.res, a.err
}

// wire is what an attempt left behind below the SDK.
type wire struct {
	there  bool // our Transport stands below the session
	posts  []observe.Post
	last   *post
	answer []byte // raw result of the last usable answer
	unseen bool   // a request may have gone by that could not be read
}

// judge says what the attempt came to. A result that was read whole and lost in
// the SDK, which reports a context that ended meanwhile, is recovered.
func (w *wire) judge(ctx context.Context, res mcp.Result, err error) (attempt, mcp.Result, error) {
	var recovered *mcp.CallToolResult
	if err != nil && w.answer != nil {
		recovered = decodeResult(w.answer)
	}
	r := observe.Return{Err: err, CtxErr: ctx.Err(), Wire: w.there && !w.unseen, Unseen: w.unseen, Decoded: recovered != nil}
	if tool, ok := res.(*mcp.CallToolResult); ok && tool != nil {
		r.IsError, r.NeedsInput = tool.IsError, tool.NeedsInput()
	}
	a := attempt{Judgement: observe.Judge(w.posts, r), posts: w.posts, err: err}
	switch {
	case err == nil:
	case a.Outcome.Usable() && a.Outcome != observe.InputRequired:
		res, err = recovered, nil
	default:
		a.resume = w.resume()
	}
	return a, res, err
}

// decodeResult decodes the raw result of an answer, or returns nil.
func decodeResult(raw []byte) *mcp.CallToolResult {
	res := new(mcp.CallToolResult)
	if json.Unmarshal(raw, res) != nil {
		return nil
	}
	return res
}

// resume returns what the last round of a multi-round-trip call carried, or nil
// where there was one round alone: a repeat then goes on from that round, and the
// user is not asked again.
func (w *wire) resume() *resumption {
	if w.last == nil || !rounds(w.posts) {
		return nil
	}
	return w.last.carried()
}

// rounds is how many POSTs of the attempt were answered with a question.
func (a *attempt) rounds() int {
	n := 0
	for i := range a.posts {
		if asked(&a.posts[i]) {
			n++
		}
	}
	return n
}

// rounds reports whether an earlier round of the attempt was answered.
func rounds(posts []observe.Post) bool {
	for i := range posts[:max(len(posts)-1, 0)] {
		if posts[i].Verdict.Outcome == observe.InputRequired {
			return true
		}
	}
	return false
}

// status is the HTTP status that decided, or 0.
func (a *attempt) status() int {
	if a.Post == nil {
		return 0
	}
	return a.Post.Status
}

// failedToConnect reports whether no connection could be obtained.
func (a *attempt) failedToConnect() bool {
	return a.Delivery == observe.NotSent && a.Post != nil && a.Post.Status == 0 &&
		(a.Outcome == observe.NetworkError || a.Post.Limited)
}
