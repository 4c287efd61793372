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

// Record tells each tools/call to Options.OnRecord, once, on the way up. It stands
// outermost, so that its record holds everything the others did.
func Record(opts *Options) mcp.Middleware { return newCore(opts).recorded }

func (c *core) recorded(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, cl := c.begin(ctx, method, req)
		if cl == nil || !cl.isTool() || c.opts.OnRecord == nil {
			return next(ctx, method, req)
		}
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
		c.opts.OnRecord(ctx, r)
		return res, err
	}
}

// record tells a finished call.
func (c *core) record(cl *call) *observe.Record {
	a := &cl.attempts[len(cl.attempts)-1]
	r := &observe.Record{
		Time:            cl.started.UTC(),
		Client:          c.opts.Client,
		Server:          cl.server.name,
		Endpoint:        cl.server.endpoint,
		ProtocolVersion: cl.protocolVersion(),
		Method:          cl.method,
		Tool:            cl.tool.Name,
		Safety:          string(cl.tool.Safety),
		Rule:            cl.tool.Rule,
		Outcome:         a.Outcome,
		Layer:           a.Outcome.Layer(),
		Delivery:        cl.delivery(),
		HTTPStatuses:    []int{},
		ContentTypes:    []string{},
		Deviations:      []observe.Deviation{},
		Attempts:        cl.attemptRecords(),
		Decision:        choice(cl.decision),
		Breaker:         cl.breaker,
		IdempotencyKey:  idempotency.Hash(cl.key),
		DurationMs:      milliseconds(time.Since(cl.started)),
		Ledger:          cl.ledger,
		ModelText:       cl.text,
	}
	if a.says.hasWait {
		r.RetryAfterMs = new(a.says.wait.Milliseconds())
	}
	for i := range cl.attempts {
		for j := range cl.attempts[i].posts {
			tellPost(r, &cl.attempts[i].posts[j])
		}
	}
	tellAnswer(r, a)
	return r
}

// choice is the decision as the record tells it; without a loop nothing was
// decided, which is to stop.
func choice(d policy.Decision) observe.Choice {
	if d.Action == "" {
		return observe.Choice{Action: string(policy.Stop), Reason: "no retry loop"}
	}
	return observe.Choice{Action: string(d.Action), Reason: d.Reason}
}

// tellPost adds a POST to the record.
func tellPost(r *observe.Record, p *observe.Post) {
	r.PostCount++
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

// tellAnswer adds what the last attempt's deciding POST held.
func tellAnswer(r *observe.Record, a *attempt) {
	if e := a.RPC; e != nil {
		r.JSONRPC.ErrorCode = new(e.Code)
		r.JSONRPC.ErrorMessage = observe.Redact(e.Message, recordText)
		r.JSONRPC.ErrorData = observe.Redact(string(e.Data), recordText)
	}
	if a.Post == nil {
		return
	}
	v := &a.Post.Verdict
	if a.Post.ID != "" {
		r.JSONRPC.ID = json.RawMessage(a.Post.ID)
	}
	if v.ID != "" && !v.EchoedID {
		r.JSONRPC.AnswerID = observe.Redact(v.ID, recordText)
	}
	r.SSE = a.Post.Stream
	r.Excerpt = a.Post.Excerpt
	r.IsError = v.IsError
	if v.ResultType != "" {
		r.ResultType = new(v.ResultType)
	}
}

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
