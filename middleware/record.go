package middleware

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// Record tells each tools/call to Options.OnRecord, once, on the way up, and to
// Options.Observer on both ways. It stands outermost, so that its record holds
// everything the others did.
func Record(opts *Options) mcp.Middleware { return newCore(opts).recorded }

func (c *core) recorded(next mcp.MethodHandler) mcp.MethodHandler {
	if c.opts.OnRecord == nil && c.opts.Observer == nil {
		return next
	}
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != methodCallTool {
			return next(ctx, method, req)
		}
		ctx, cl := c.begin(ctx, method, req)
		ctx, seen := c.observeCall(ctx, cl)
		defer seen.end(nil)
		original := *cl
		byCaller := c.repeatedByCaller(ctx, cl)
		res, err := next(ctx, method, req)
		a := cl.last(ctx, res, err)
		if a.Outcome != observe.ToolSuccess && a.Outcome != observe.InputRequired {
			c.remember(ctx, &original)
		}
		r := c.record(cl)
		if a.Post == nil && a.Outcome == observe.ToolError {
			r.IsError = new(true) // without a wire, the result is all there is
		}
		r.Scenario = observe.ScenarioFrom(ctx)
		r.RetryOrigin = cl.origin(ctx, byCaller)
		c.disclose(r, &original, res)
		c.emit(ctx, r)
		seen.end(r)
		return res, err
	}
}

// emit hands a record out. The call is over and may have had its effect: a handler
// that panics must not take its result.
func (c *core) emit(ctx context.Context, r *observe.Record) {
	if c.opts.OnRecord == nil {
		return
	}
	defer contained()
	c.opts.OnRecord(ctx, r)
}

// record tells a finished call.
func (c *core) record(cl *call) *observe.Record {
	a := &cl.attempts[len(cl.attempts)-1]
	r := &observe.Record{
		Schema:          observe.RecordSchema,
		Time:            cl.started.UTC(),
		Client:          c.opts.Client,
		Server:          cl.server.shownName,
		Endpoint:        cl.server.shownEndpoint,
		ProtocolVersion: cl.protocolVersion(),
		Method:          cl.method,
		Tool:            cl.tool.Name,
		Safety:          string(cl.tool.Safety),
		Rule:            cl.tool.Rule,
		Outcome:         a.Outcome,
		Layer:           a.Outcome.Layer(),
		Delivery:        cl.delivery(),
		Reason:          a.Reason,
		Deviations:      []observe.Deviation{},
		Attempts:        cl.attemptRecords(),
		Decision:        choice(cl.decision),
		Would:           cl.would,
		Breaker:         cl.breaker,
		Limiter:         c.limiterState(cl),
		IdempotencyKey:  idempotency.Hash(cl.key),
		DurationMs:      milliseconds(time.Since(cl.started)),
		Ledger:          cl.ledger,
		ModelText:       cl.text,
	}
	if a.says.hasWait {
		r.RetryAfterMs = new(a.says.wait.Milliseconds())
	}
	tellPosts(r, cl)
	tellAnswer(r, cl, a)
	return r
}

// choice is the decision as the record tells it; without a loop nothing was
// decided, which is to stop.
func choice(d policy.Decision) observe.Choice {
	if d.Action == "" {
		return observe.Choice{Action: string(policy.Stop), Reason: "no retry loop"}
	}
	return made(d)
}

// made is a decision that was made, or nothing.
func made(d policy.Decision) observe.Choice {
	return observe.Choice{Action: string(d.Action), Reason: d.Reason, Rule: d.Rule, WaitMs: milliseconds(d.Wait)}
}

// tellPosts adds what the POSTs of all attempts have in common.
func tellPosts(r *observe.Record, cl *call) {
	n := 0
	for i := range cl.attempts {
		n += len(cl.attempts[i].posts)
	}
	r.PostCount = n
	r.HTTPStatuses, r.ContentTypes = make([]int, 0, n), make([]string, 0, n)
	for i := range cl.attempts {
		for j := range cl.attempts[i].posts {
			p := &cl.attempts[i].posts[j]
			r.Healed = r.Healed || p.Healed
			if p.Status != 0 {
				r.HTTPStatuses = append(r.HTTPStatuses, p.Status)
				r.ContentTypes = append(r.ContentTypes, p.ContentType)
			}
			for _, d := range p.Verdict.Deviations {
				if !contains(r.Deviations, d) {
					r.Deviations = append(r.Deviations, d)
				}
			}
		}
	}
}

// tellAnswer adds what the last attempt's deciding POST held.
func tellAnswer(r *observe.Record, cl *call, a *attempt) {
	if e := a.RPC; e != nil {
		words := cl.redactor(a)
		r.JSONRPC.ErrorCode = new(e.Code)
		r.JSONRPC.ErrorMessage = words.Text(e.Message, recordText)
		r.JSONRPC.ErrorData = words.Text(string(e.Data), recordText)
	}
	if a.Post == nil {
		return
	}
	v := &a.Post.Verdict
	if a.Post.ID != "" {
		r.JSONRPC.ID = json.RawMessage(a.Post.ID)
	}
	if v.ID != "" && !v.EchoedID {
		r.JSONRPC.AnswerID = cl.redactor(a).Text(v.ID, recordText)
	}
	r.SSE = a.Post.Stream
	r.Excerpt = a.Post.Excerpt
	r.Location = a.Post.Location
	r.IsError = v.IsError
	switch v.ResultType {
	case "":
	case resultComplete:
		r.ResultType = &resultComplete
	default:
		r.ResultType = new(observe.Redact(v.ResultType, recordText))
	}
}

// resultComplete is what nearly every result is; records share it.
var resultComplete = "complete"

// recordText bounds a server's words in a record, in bytes.
const recordText = 512

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}

func contains(all []observe.Deviation, d observe.Deviation) bool {
	for _, x := range all {
		if x == d {
			return true
		}
	}
	return false
}
