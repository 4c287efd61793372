//lint:file-ignore SA1019 hosts use sampling for as long as the SDK has it

package middleware_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
)

// hostile are requests for input on which the SDK, or the host's handler, follows a nil
// pointer or a circle, most of them on a goroutine on which nobody can recover.
var hostile = []string{
	`null`, `5`, `{}`, `{"method":null,"params":{}}`,
	`{"method":"sampling/createMessage","params":{"messages":[null]}}`,
	`{"method":"sampling/createMessage","PARAMS":{"Messages":[null]}}`,
	`{"method":"sampling/createMessage","params":{"messages":[],"tools":[null]}}`,
	`{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"string","oneOf":[null]}}}}}`,
	`{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[null]}}}}}}`,
	`{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","allOf":[null]}}}`,
	`{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","$ref":"#"}}}`,
	`{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","anyOf":[{"$dynamicRef":"#"}]}}}`,
}

// handlers answer whatever a server asks.
func (u *user) handlers() *mcp.ClientOptions {
	opts := u.options()
	opts.CreateMessageHandler = func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
		u.asked.Add(1)
		return &mcp.CreateMessageResult{Content: &mcp.TextContent{Text: "x"}, Role: "assistant"}, nil
	}
	return opts
}

// TestHostileQuestions: a question that would end the program is no question.
func TestHostileQuestions(t *testing.T) {
	for _, q := range hostile {
		t.Run(q, func(t *testing.T) {
			var u user
			r := newRig(t, middlewaretest.Options{}, never)
			r.session = r.connectAs(t, u.handlers())
			f := middlewaretest.ResultBody("hostile", `{"resultType":"input_required","requestState":"s","content":[],"messages":[],"contents":[],"inputRequests":{"q":`+q+`}}`)
			for _, f := range []middlewaretest.Fault{f, f.AsEvent()} {
				r.server.Script("pay", f)
				_, rec, err := r.call("pay", time.Minute)
				if e := failure(t, err); e.Outcome != observe.InvalidToolResult || rec.Delivery != observe.Unknown || rec.PostCount != 1 {
					t.Errorf("error %v, record %+v", err, rec)
				}
			}
			r.server.AlwaysMethod("prompts/get", f)
			r.server.AlwaysMethod("resources/read", f)
			if _, err := r.session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"}); err == nil {
				t.Error("the prompt was asked for")
			}
			if _, err := r.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "a://b"}); err == nil {
				t.Error("the resource was asked for")
			}
			if u.asked.Load() != 0 || r.server.Posts("pay") != 2 {
				t.Errorf("asked %d times, %d POSTs", u.asked.Load(), r.server.Posts("pay"))
			}
			r.stillServes(middlewaretest.Fault{})
		})
	}
}

// TestHostileRequests: the same as the server's own requests, on the stream of a call
// and on its own stream (before 2026-07-28): they end that call, and nothing else.
func TestHostileRequests(t *testing.T) {
	for _, q := range hostile[4:] {
		t.Run(q, func(t *testing.T) {
			request := fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":7,%s\n\n", q[1:])
			inBubble(t, middlewaretest.Options{StandaloneSSE: true}, middleware.Options{}, func(r *healRig) {
				var u user
				_ = r.session.Close()
				r.session = r.connectWith(r.stack, u.handlers())
				r.server.Broadcast(request)
				synctest.Wait()
				r.stillServes(middlewaretest.Fault{})
				r.server.Script("pay", middlewaretest.Stream("hostile", request, middlewaretest.EndSilent))
				_, rec, err := r.call("pay", time.Minute)
				tell(r.t, rec, err, observe.InvalidEnvelope, observe.Unknown, false)
				r.stillServes(middlewaretest.Fault{})
				if u.asked.Load() != 0 {
					r.t.Errorf("asked %d times", u.asked.Load())
				}
			}, never)
		})
	}
}

// TestQuestionsInAFinishedResult: the SDK takes any result with inputRequests for one
// that wants another round, and sends a call that has taken effect again.
func TestQuestionsInAFinishedResult(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		for _, requests := range []string{`{}`, `{"q":{"method":"roots/list","params":{}}}`} {
			r := newRig(t, so, never)
			r.server.Script("pay", middlewaretest.ResultBody("finished", `{"content":[],"inputRequests":`+requests+`}`).Executed())
			_, rec, err := r.call("pay", time.Minute)
			if e := failure(t, err); e.Outcome != observe.InvalidToolResult || rec.Delivery != observe.Unknown {
				t.Errorf("error %v, record %+v", err, rec)
			}
			if r.server.Posts("pay") != 1 || r.server.Effects("pay") != 1 {
				t.Errorf("%d POSTs, %d effects", r.server.Posts("pay"), r.server.Effects("pay"))
			}
		}
	})
}
