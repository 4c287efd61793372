package main

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"github.com/surecall/surecall/internal/plaintext"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// sample is the record of a call to an HTTP server.
func sample(o observe.Outcome, d observe.Delivery, statuses ...int) *observe.Record {
	r := &observe.Record{
		Endpoint: "http://h/mcp", Tool: "pay", Safety: "unsafe", Rule: "default",
		Outcome: o, Layer: o.Layer(), Delivery: d, PostCount: len(statuses), HTTPStatuses: statuses,
		Decision: observe.Choice{Action: "stop", Reason: "a reason"}, DurationMs: 12.345, RetryOrigin: observe.OriginNone,
	}
	for _, s := range statuses {
		r.ContentTypes = append(r.ContentTypes, "text/html")
		r.Attempts = append(r.Attempts, observe.Attempt{Outcome: o, Delivery: d, HTTPStatus: s, PostCount: 1, DurationMs: 2, WaitMs: 110})
	}
	return r
}

func TestTell(t *testing.T) {
	tool := sample(observe.ToolError, observe.Answered, 200)
	res := &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no such\norder\x1b[2J"}}}
	want := `
pay  HTTP 200 · JSON-RPC ok · tool reported an error
  outcome    TOOL_ERROR (application), after 12.3 ms
  delivery   answered: one complete answer came
  sent       1 POST in 1 attempt
    no. 1    TOOL_ERROR 200, answered, in 2 ms, after a wait of 110 ms
  safety     unsafe, by default
  decided    stop: a reason
  to do      Read what the tool says; the arguments may need correcting. The
             tool may have had an effect: do not repeat the call unchanged.
  result     "no such order [2J"
`
	if got := tell(&finding{record: tool, result: res}); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}

	failed := sample(observe.HTTPError, observe.Unknown, 503, 503)
	failed.Safety, failed.Rule, failed.Tool = "keyed", "-safety pay=keyed", "pay"
	failed.RetryAfterMs = new(int64(2500))
	failed.Deviations = []observe.Deviation{observe.DeviationSessionID}
	failed.Breaker, failed.RetryOrigin = "open", observe.OriginCaller
	failed.Excerpt, failed.Reason = "down", "the status is a failure"
	want = `
pay  HTTP 503, 503 · no JSON-RPC answer
  outcome    HTTP_ERROR (transport), after 12.3 ms
  seen       the status is a failure
  delivery   unknown: the tool may have run, or not
  sent       2 POSTs in 2 attempts
    no. 1    HTTP_ERROR 503, unknown, in 2 ms, after a wait of 110 ms
    no. 2    HTTP_ERROR 503, unknown, in 2 ms, after a wait of 110 ms
  safety     keyed, by -safety pay=keyed
  body       down
  noted      session id; the same call failed before; the circuit breaker is
             open
  decided    stop: a reason
  to do      A repeat of this tool is harmless: calling again is safe after 3 s.
`
	if got := tell(&finding{record: failed}); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestLayers(t *testing.T) {
	code := sample(observe.HTTPError, observe.Refused, 400)
	code.JSONRPC.ErrorCode = new(int64(-32602))
	pipes := sample(observe.NetworkError, observe.Unknown)
	pipes.Endpoint = ""
	many := sample(observe.ToolSuccess, observe.Answered, 200, 201, 202, 203, 204, 205, 206, 207)
	for want, r := range map[string]*observe.Record{
		"HTTP 200 · JSON-RPC ok · tool succeeded":                             sample(observe.ToolSuccess, observe.Answered, 200),
		"HTTP 200 · an answer that is not MCP: text/html":                     sample(observe.UnexpectedContent, observe.Unknown, 200),
		"HTTP 404 · the server has forgotten the session":                     sample(observe.SessionLost, observe.Refused, 404),
		"no HTTP answer · the connection failed":                              sample(observe.NetworkError, observe.Unknown),
		"nothing sent · the connection failed":                                sample(observe.NetworkError, observe.NotSent),
		"nothing sent · held back by the circuit breaker":                     sample(observe.BreakerOpen, observe.NotSent),
		"HTTP 400 · JSON-RPC error -32602":                                    code,
		"stdio · the connection failed":                                       pipes,
		"HTTP …, 202, 203, 204, 205, 206, 207 · JSON-RPC ok · tool succeeded": many,
	} {
		if got := r.Headline(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestEveryOutcomeIsTold: each outcome, with each delivery and safety, has words of its
// own for what was seen and, unless it is a success, for what to do.
func TestEveryOutcomeIsTold(t *testing.T) {
	lines := map[string]observe.Outcome{}
	for _, o := range observe.Outcomes() {
		seen := sample(o, observe.Unknown, 200)
		if o == observe.JSONRPCError {
			seen.JSONRPC.ErrorCode = new(int64(-32603))
		}
		line := seen.Headline()
		if other, taken := lines[line]; taken {
			t.Errorf("%s and %s are told alike: %s", o, other, line)
		}
		lines[line] = o
		for _, d := range []observe.Delivery{observe.NotSent, observe.Refused, observe.Answered, observe.Unknown} {
			for _, s := range []policy.Safety{policy.ReadOnly, policy.Idempotent, policy.Keyed, policy.Unsafe} {
				r := sample(o, d)
				r.Safety = string(s)
				checkAdvice(t, r)
			}
		}
	}
}

// checkAdvice holds the one rule against the advice: who may not repeat is not told
// that it is safe.
func checkAdvice(t *testing.T, r *observe.Record) {
	t.Helper()
	text := advice(r)
	safe := policy.Safety(r.Safety).SafeRepeat(r.Delivery)
	switch {
	case r.Outcome == observe.ToolSuccess:
		if text != "" {
			t.Errorf("a success needs nothing done: %s", text)
		}
	case text == "":
		t.Errorf("%s %s %s: no advice", r.Outcome, r.Delivery, r.Safety)
	case !safe && strings.Contains(text, "is safe"):
		t.Errorf("%s %s %s: %s", r.Outcome, r.Delivery, r.Safety, text)
	}
}

func TestAdviceByCause(t *testing.T) {
	code := func(n int64) *observe.Record {
		r := sample(observe.JSONRPCError, observe.Answered, 200)
		r.JSONRPC.ErrorCode = &n
		return r
	}
	for want, r := range map[string]*observe.Record{
		"correct the arguments":           code(-32602),
		"check the protocol version":      code(-32601),
		"use -list before -call":          code(-32020),
		"see -header":                     sample(observe.HTTPError, observe.Refused, 401),
		"Check the address":               sample(observe.HTTPError, observe.Refused, 404),
		"see -elicit":                     sample(observe.InputRequired, observe.Answered, 200),
		"-timeout":                        sample(observe.Timeout, observe.Unknown),
		"If the server is to be believed": sample(observe.SessionLost, observe.Refused, 404),
	} {
		if got := advice(r); !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

func TestContent(t *testing.T) {
	for want, res := range map[string]*mcp.CallToolResult{
		"":      nil,
		"empty": {},
		`"a" | an image, image/png, 3 bytes | a sound, audio/wav, 1 bytes`: {Content: []mcp.Content{
			&mcp.TextContent{Text: "a"}, &mcp.ImageContent{MIMEType: "image/png", Data: []byte("abc")},
			&mcp.AudioContent{MIMEType: "audio/wav", Data: []byte("a")},
		}},
		"a link to file:///x | an embedded resource": {Content: []mcp.Content{
			&mcp.ResourceLink{URI: "file:///x"}, &mcp.EmbeddedResource{},
		}},
		"map[n:7]": {StructuredContent: map[string]any{"n": 7}},
	} {
		if got := content(res); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	long := content(&mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("long ", 1e5)}}})
	many := content(&mcp.CallToolResult{Content: slices.Repeat([]mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", 350)}}, 100)})
	if len(many) > 2*maxResult || !strings.HasSuffix(many, ` | and 98 blocks more`) {
		t.Errorf("%d bytes: %s", len(many), many)
	}
	if len(long) > maxResult+10 || !strings.HasSuffix(long, `…"`) {
		t.Errorf("%d bytes: %s", len(long), long)
	}
}

// TestReportIsPlain: whatever a server says, a report has no control character but its
// line breaks and no line of more than 80 columns.
func TestReportIsPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		r := sample(rapid.SampledFrom(observe.Outcomes()).Draw(t, "outcome"), observe.Unknown, 200, 503)
		r.Tool, r.Rule, r.Excerpt = text.Draw(t, "tool"), text.Draw(t, "rule"), text.Draw(t, "excerpt")
		r.ContentTypes = []string{text.Draw(t, "media type")}
		r.JSONRPC = observe.RPCRecord{ErrorCode: new(int64(1)), ErrorMessage: text.Draw(t, "message"), ErrorData: text.Draw(t, "data")}
		res := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text.Draw(t, "text")}}}
		for line := range strings.SplitSeq(tell(&finding{record: r, result: res}), "\n") {
			if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) }) {
				t.Fatalf("%q holds what is not visible", line)
			}
			if n := utf8.RuneCountInString(line); n > plaintext.Columns {
				t.Fatalf("%q has %d columns", line, n)
			}
		}
	})
}
