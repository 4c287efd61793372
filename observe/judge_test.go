package observe_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"github.com/surecall/surecall/observe"
)

// posts builds what was seen from (outcome, delivery) pairs; an empty outcome is a
// POST that is still open.
func posts(pairs ...string) []observe.Post {
	var all []observe.Post
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, observe.Post{ID: fmt.Sprint(i), Verdict: observe.Verdict{
			Outcome: observe.Outcome(pairs[i]), Delivery: observe.Delivery(pairs[i+1]), InputRequests: 1,
		}})
	}
	return all
}

func TestJudge(t *testing.T) {
	failed := errors.New("some error of the SDK")
	shed := posts("INPUT_REQUIRED", "answered")
	shed[0].Verdict.InputRequests = 0
	for name, c := range map[string]struct {
		posts    []observe.Post
		ret      observe.Return
		outcome  observe.Outcome
		delivery observe.Delivery
	}{
		"success":                        {posts("TOOL_SUCCESS", "answered"), observe.Return{}, "TOOL_SUCCESS", "answered"},
		"success lost to a dead context": {posts("TOOL_SUCCESS", "answered"), observe.Return{Err: context.DeadlineExceeded, CtxErr: context.DeadlineExceeded, Decoded: true}, "TOOL_SUCCESS", "answered"},
		"a result that does not decode":  {posts("TOOL_SUCCESS", "answered"), observe.Return{Err: failed}, "INVALID_TOOL_RESULT", "unknown"},
		"503":                            {posts("HTTP_ERROR", "unknown"), observe.Return{Err: failed}, "HTTP_ERROR", "unknown"},
		"429":                            {posts("HTTP_ERROR", "refused"), observe.Return{Err: failed}, "HTTP_ERROR", "refused"},
		"401 and then success":           {posts("HTTP_ERROR", "refused", "TOOL_SUCCESS", "answered"), observe.Return{}, "TOOL_SUCCESS", "answered"},
		"307 and then a reset":           {posts("REDIRECTED", "refused", "NETWORK_ERROR", "unknown"), observe.Return{Err: failed}, "NETWORK_ERROR", "unknown"},
		"307 and then a refused dial":    {posts("REDIRECTED", "refused", "NETWORK_ERROR", "not_sent"), observe.Return{Err: failed}, "NETWORK_ERROR", "refused"},
		"a reset and then a 429":         {posts("NETWORK_ERROR", "unknown", "HTTP_ERROR", "refused"), observe.Return{Err: failed}, "HTTP_ERROR", "unknown"},
		"round two refused":              {posts("INPUT_REQUIRED", "answered", "HTTP_ERROR", "refused"), observe.Return{Err: failed}, "HTTP_ERROR", "refused"},
		"round two in the dark":          {posts("INPUT_REQUIRED", "answered", "HTTP_ERROR", "unknown"), observe.Return{Err: failed}, "HTTP_ERROR", "unknown"},
		"deadline while the user thinks": {posts("INPUT_REQUIRED", "answered"), observe.Return{Err: failed, CtxErr: context.DeadlineExceeded}, "TIMEOUT", "answered"},
		"input for the caller":           {posts("INPUT_REQUIRED", "answered"), observe.Return{NeedsInput: true}, "INPUT_REQUIRED", "answered"},
		"rounds without end":             {posts("INPUT_REQUIRED", "answered"), observe.Return{Err: failed}, "INVALID_TOOL_RESULT", "unknown"},
		"shedding without end":           {shed, observe.Return{Err: failed}, "INPUT_REQUIRED", "answered"},
		"open at the deadline":           {posts("", ""), observe.Return{Err: failed, CtxErr: context.DeadlineExceeded}, "TIMEOUT", "unknown"},
		"open at a cancel":               {posts("", ""), observe.Return{Err: failed, CtxErr: context.Canceled}, "CANCELED", "unknown"},
		"open at the session's end":      {posts("", ""), observe.Return{Err: failed}, "NETWORK_ERROR", "unknown"},
		"a result out of nowhere":        {posts("", ""), observe.Return{}, "STREAM_INCOMPLETE", "unknown"},

		"stdio: result":                      {nil, observe.Return{}, "TOOL_SUCCESS", "answered"},
		"stdio: tool error":                  {nil, observe.Return{IsError: true}, "TOOL_ERROR", "answered"},
		"stdio: input":                       {nil, observe.Return{NeedsInput: true}, "INPUT_REQUIRED", "answered"},
		"stdio: server error":                {nil, observe.Return{Err: fmt.Errorf("calling: %w", &jsonrpc.Error{Code: -32602})}, "JSONRPC_ERROR", "answered"},
		"stdio: no such method":              {nil, observe.Return{Err: fmt.Errorf("calling: %w", &jsonrpc.Error{Code: -32601})}, "JSONRPC_ERROR", "refused"},
		"stdio: a line that the SDK rejects": {nil, observe.Return{Err: fmt.Errorf("calling: %w", &jsonrpc.Error{Code: -32600, Message: "invalid request"})}, "NETWORK_ERROR", "unknown"},
		"stdio: the server rejects":          {nil, observe.Return{Err: fmt.Errorf("calling: %w", &jsonrpc.Error{Code: -32600, Message: "no such thing"})}, "JSONRPC_ERROR", "refused"},
		"unseen: a refused dial":             {posts("NETWORK_ERROR", "not_sent"), observe.Return{Err: failed, Unseen: true}, "NETWORK_ERROR", "unknown"},
		"unseen: nothing":                    {nil, observe.Return{Err: failed, Unseen: true}, "NETWORK_ERROR", "unknown"},
		"stdio: the marker":                  {nil, observe.Return{Err: fmt.Errorf("calling: %w", fmt.Errorf("%w: write", &jsonrpc.Error{Code: -32005}))}, "NETWORK_ERROR", "unknown"},
		"stdio: EOF":                         {nil, observe.Return{Err: fmt.Errorf("calling: %w", io.EOF)}, "NETWORK_ERROR", "unknown"},
		"stdio: does not decode":             {nil, observe.Return{Err: fmt.Errorf("calling: %w", &json.UnmarshalTypeError{})}, "INVALID_TOOL_RESULT", "unknown"},
		"stdio: deadline":                    {nil, observe.Return{Err: failed, CtxErr: context.DeadlineExceeded}, "TIMEOUT", "unknown"},

		"wire: session closed before sending": {nil, observe.Return{Err: fmt.Errorf("%w: calling", mcp.ErrConnectionClosed), Wire: true}, "SESSION_LOST", "not_sent"},
		"wire: failed before sending":         {nil, observe.Return{Err: failed, Wire: true}, "NETWORK_ERROR", "not_sent"},
		"wire: canceled before sending":       {nil, observe.Return{Err: failed, CtxErr: context.Canceled, Wire: true}, "CANCELED", "not_sent"},
		"wire: a code is no answer":           {nil, observe.Return{Err: fmt.Errorf("calling: %w", &jsonrpc.Error{Code: -32005}), Wire: true}, "NETWORK_ERROR", "not_sent"},
	} {
		t.Run(name, func(t *testing.T) {
			j := observe.Judge(c.posts, c.ret)
			if j.Outcome != c.outcome || j.Delivery != c.delivery {
				t.Errorf("%s, %s (%s); want %s, %s", j.Outcome, j.Delivery, j.Reason, c.outcome, c.delivery)
			}
			if !j.Outcome.Usable() && j.Reason == "" && c.posts == nil {
				t.Error("no reason")
			}
		})
	}
}

// TestJudgeNeverHides: whatever else was seen, a POST in the dark keeps the attempt in
// the dark unless an answer came last.
func TestJudgeNeverHides(t *testing.T) {
	outcomes := []string{"HTTP_ERROR", "NETWORK_ERROR", "STREAM_INCOMPLETE", "REDIRECTED", ""}
	deliveries := []string{"not_sent", "refused", "unknown"}
	rapid.Check(t, func(t *rapid.T) {
		var pairs []string
		dark := false
		for range rapid.IntRange(1, 5).Draw(t, "posts") {
			o := rapid.SampledFrom(outcomes).Draw(t, "outcome")
			d := rapid.SampledFrom(deliveries).Draw(t, "delivery")
			pairs = append(pairs, o, d)
			dark = dark || o == "" || d == "unknown"
		}
		j := observe.Judge(posts(pairs...), observe.Return{Err: errors.New("e")})
		if dark && j.Delivery != observe.Unknown {
			t.Fatalf("%v became %s", pairs, j.Delivery)
		}
		if j.Outcome.Usable() {
			t.Fatalf("%v became %s", pairs, j.Outcome)
		}
	})
}
