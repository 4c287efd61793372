package main

import (
	"time"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
)

// A call is one row of the table: what is called, what happens to it, and what must
// come of it.
type call struct {
	tool   string
	story  string // what the server does
	faults []middlewaretest.Fault
	within time.Duration // the caller's deadline; 0 is none
	again  bool          // with the arguments of the call before
	gone   bool          // the server is shut down before the call
	want   ending
}

// An ending is what a call came to.
type ending struct {
	outcome  observe.Outcome
	delivery observe.Delivery
	attempts int
	posts    int
	effects  int // how often the server ran the tool
}

// calls are made in this order.
func calls() []call {
	return []call{
		{
			tool: "read_weather", story: "answers 503, then well",
			faults: faults(middlewaretest.Status(503)),
			want:   ending{observe.ToolSuccess, observe.Answered, 2, 2, 1},
		},
		{
			tool: "pay", story: "pays; a gateway answers 503",
			faults: faults(middlewaretest.Status(503).Executed()),
			want:   ending{observe.HTTPError, observe.Unknown, 1, 1, 1},
		},
		{
			tool: "pay", story: "pays; the connection is cut",
			faults: faults(middlewaretest.Reset().Executed()),
			want:   ending{observe.NetworkError, observe.Unknown, 1, 1, 1},
		},
		{
			tool: "pay", story: "is held back: an equal call in doubt", again: true,
			want: ending{observe.Blocked, observe.NotSent, 1, 0, 0},
		},
		{
			tool: "pay_keyed", story: "pays; cut; knows the key when repeated",
			faults: faults(middlewaretest.Reset().Executed()),
			want:   ending{observe.ToolSuccess, observe.Answered, 2, 2, 1},
		},
		{
			tool: "send_mail", story: "answers 429 (wait 1 s), then well",
			faults: faults(middlewaretest.RetryAfter(429, time.Second)),
			want:   ending{observe.ToolSuccess, observe.Answered, 2, 2, 1},
		},
		{
			tool: "set_label", story: "answers 200 with isError",
			faults: faults(middlewaretest.ToolError("a label has 20 letters at most")),
			want:   ending{observe.ToolError, observe.Answered, 1, 1, 1},
		},
		{
			tool: "set_label", story: "answers 200 with a JSON-RPC error",
			faults: faults(middlewaretest.JSONRPCError(-32602, "id must be a string")),
			want:   ending{observe.JSONRPCError, observe.Answered, 1, 1, 0},
		},
		{
			tool: "ask", story: "asks the user, who agrees",
			want: ending{observe.ToolSuccess, observe.Answered, 1, 2, 1},
		},
		{
			tool: "read_weather", story: "answers 200 with a sign-in page",
			faults: faults(named("body-login-page-not-executed")),
			want:   ending{observe.UnexpectedContent, observe.Unknown, 1, 1, 0},
		},
		{
			tool: "set_label", story: "answers 200 with broken JSON",
			faults: faults(named("body-malformed")),
			want:   ending{observe.MalformedJSON, observe.Unknown, 1, 1, 1},
		},
		{
			tool: "pay", story: "pays; answers with another call's id",
			faults: faults(named("envelope-wrong-id")),
			want:   ending{observe.InvalidEnvelope, observe.Unknown, 1, 1, 1},
		},
		{
			tool: "pay", story: "pays; answers 500 with a good body",
			faults: faults(named("status-500-success-body-executed")),
			want:   ending{observe.HTTPError, observe.Unknown, 1, 1, 1},
		},
		{
			tool: "progress", story: "runs; the stream is cut after progress",
			faults: faults(named("sse-progress-then-cut")),
			want:   ending{observe.StreamIncomplete, observe.Unknown, 1, 1, 1},
		},
		{
			tool: "slow", story: "runs; never answers within 1 s",
			faults: faults(middlewaretest.Hang().Executed()), within: time.Second,
			want: ending{observe.Timeout, observe.Unknown, 1, 1, 1},
		},
		{
			tool: "read_report", story: "answers 503, three times",
			faults: faults(middlewaretest.Status(503), middlewaretest.Status(503), middlewaretest.Status(503)),
			want:   ending{observe.HTTPError, observe.Unknown, 3, 3, 0},
		},
		{
			tool: "read_report", story: "is not asked: the breaker is open",
			want: ending{observe.BreakerOpen, observe.NotSent, 1, 0, 0},
		},
		{
			tool: "send_mail", story: "is not asked: the limit is reached",
			want: ending{observe.RateLimited, observe.NotSent, 1, 0, 0},
		},
		{
			tool: "pay", story: "is down: the connection is refused", gone: true,
			want: ending{observe.NetworkError, observe.NotSent, 3, 3, 0},
		},
	}
}

func faults(all ...middlewaretest.Fault) []middlewaretest.Fault { return all }

// named is a fault of the test server's catalogue.
func named(name string) middlewaretest.Fault {
	f, ok := middlewaretest.FaultNamed(name)
	if !ok {
		panic("quickstart: no fault " + name)
	}
	return f
}
