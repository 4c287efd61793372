package policy_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// classes in the order of the table's columns.
var classes = []policy.Safety{policy.ReadOnly, policy.Idempotent, policy.Keyed, policy.Unsafe}

// tool is a tool of this class with the defaults, changed by the functions.
func tool(s policy.Safety, change ...func(*policy.Tool)) *policy.Tool {
	t := policy.Defaults()
	t.Safety = s
	for _, f := range change {
		f(&t)
	}
	return &t
}

// start is the state after a call's first attempt, with nothing in the way of a
// repeat and half of the jitter.
func start() policy.State {
	return policy.State{Remaining: policy.NoDeadline, Budget: true, Rand: 0.5}
}

func http(status int, d observe.Delivery) policy.Attempt {
	return policy.Attempt{Outcome: observe.HTTPError, Delivery: d, Status: status}
}

func rpc(code int64, d observe.Delivery) policy.Attempt {
	return policy.Attempt{Outcome: observe.JSONRPCError, Delivery: d, Status: 200, Code: code, HasCode: true}
}

func ended(o observe.Outcome, d observe.Delivery) policy.Attempt {
	return policy.Attempt{Outcome: o, Delivery: d}
}

func echoed(a policy.Attempt) policy.Attempt {
	a.EchoedID = true
	return a
}

func refreshed(s *policy.State) { s.Refreshed = true }
func healed(s *policy.State)    { s.Healed = true }

const (
	half    = 100 * time.Millisecond // half of the first backoff
	atOnce  = time.Duration(0)
	refuses = time.Duration(-1) // stop
)

func TestDecisionTable(t *testing.T) {
	for _, row := range []struct {
		name    string
		attempt policy.Attempt
		state   func(*policy.State)

		readOnly, idempotent, keyed, unsafe time.Duration
	}{
		// NETWORK_ERROR before sending; a timeout while connecting.
		{"connection refused", ended(observe.NetworkError, observe.NotSent), nil, half, half, half, half},
		{"connect timeout", ended(observe.Timeout, observe.NotSent), nil, half, half, half, half},
		// 429, 425.
		{"429", http(429, observe.Refused), nil, half, half, half, half},
		{"425", http(425, observe.Refused), nil, half, half, half, half},
		{"429 after an unknown POST of the same attempt", http(429, observe.Unknown), nil, half, half, half, refuses},
		// 408, 500, 502, 503, 504, 520-524.
		{"408", http(408, observe.Unknown), nil, half, half, half, refuses},
		{"500", http(500, observe.Unknown), nil, half, half, half, refuses},
		{"502", http(502, observe.Unknown), nil, half, half, half, refuses},
		{"503", http(503, observe.Unknown), nil, half, half, half, refuses},
		{"504", http(504, observe.Unknown), nil, half, half, half, refuses},
		{"520", http(520, observe.Unknown), nil, half, half, half, refuses},
		{"521", http(521, observe.Unknown), nil, half, half, half, refuses},
		{"522", http(522, observe.Unknown), nil, half, half, half, refuses},
		{"523", http(523, observe.Unknown), nil, half, half, half, refuses},
		{"524", http(524, observe.Unknown), nil, half, half, half, refuses},
		// NETWORK_ERROR after sending, STREAM_INCOMPLETE, attempt TIMEOUT.
		{"reset", ended(observe.NetworkError, observe.Unknown), nil, half, half, half, refuses},
		{"cut stream", ended(observe.StreamIncomplete, observe.Unknown), nil, half, half, half, refuses},
		{"attempt timeout", ended(observe.Timeout, observe.Unknown), nil, half, half, half, refuses},
		// 409, 422.
		{"409", http(409, observe.Unknown), nil, refuses, refuses, half, refuses},
		{"422", http(422, observe.Unknown), nil, refuses, refuses, refuses, refuses},
		// SESSION_LOST.
		{"session lost, healed", ended(observe.SessionLost, observe.Refused), healed, atOnce, atOnce, atOnce, refuses},
		{"session lost, healed, no budget", ended(observe.SessionLost, observe.Refused),
			func(s *policy.State) { s.Healed, s.Budget = true, false }, atOnce, atOnce, atOnce, refuses},
		{"session lost, not healed", ended(observe.SessionLost, observe.Refused), nil, refuses, refuses, refuses, refuses},
		{"session lost, healed, again", ended(observe.SessionLost, observe.Refused),
			func(s *policy.State) { s.Healed, s.HealSpent = true, true }, refuses, refuses, refuses, refuses},
		// -32020.
		{"mismatch, refreshed, echoed", echoed(rpc(-32020, observe.Refused)), refreshed, atOnce, atOnce, atOnce, atOnce},
		{"mismatch, refreshed, id unknown", rpc(-32020, observe.Refused), refreshed, atOnce, atOnce, atOnce, refuses},
		{"mismatch, not refreshed", echoed(rpc(-32020, observe.Refused)), nil, refuses, refuses, refuses, refuses},
		{"mismatch, refreshed, again", echoed(rpc(-32020, observe.Refused)),
			func(s *policy.State) { s.Refreshed, s.RefreshSpent = true, true }, refuses, refuses, refuses, refuses},
		{"mismatch in HTTP 400", policy.Attempt{Outcome: observe.HTTPError, Delivery: observe.Refused, Status: 400, Code: -32020, HasCode: true, EchoedID: true},
			refreshed, atOnce, atOnce, atOnce, atOnce},
		{"mismatch in HTTP 500", policy.Attempt{Outcome: observe.HTTPError, Delivery: observe.Unknown, Status: 500, Code: -32020, HasCode: true, EchoedID: true},
			refreshed, half, half, half, refuses},
		// Other HTTP statuses and transport outcomes.
		{"400", http(400, observe.Refused), nil, refuses, refuses, refuses, refuses},
		{"401", http(401, observe.Refused), nil, refuses, refuses, refuses, refuses},
		{"404", http(404, observe.Refused), nil, refuses, refuses, refuses, refuses},
		{"410", http(410, observe.Unknown), nil, refuses, refuses, refuses, refuses},
		{"501", http(501, observe.Unknown), nil, refuses, refuses, refuses, refuses},
		{"511", http(511, observe.Refused), nil, refuses, refuses, refuses, refuses},
		{"525", http(525, observe.Unknown), nil, refuses, refuses, refuses, refuses},
		{"400 with a refused code", policy.Attempt{Outcome: observe.HTTPError, Delivery: observe.Refused, Status: 400, Code: -32601, HasCode: true},
			nil, refuses, refuses, refuses, refuses},
		{"redirected 307", ended(observe.Redirected, observe.Refused), nil, refuses, refuses, refuses, refuses},
		{"redirected 302", ended(observe.Redirected, observe.Unknown), nil, refuses, refuses, refuses, refuses},
		{"login page", ended(observe.UnexpectedContent, observe.Unknown), nil, refuses, refuses, refuses, refuses},
		{"too large", ended(observe.ResultTooLarge, observe.Unknown), nil, refuses, refuses, refuses, refuses},
		// Answers.
		{"-32601", rpc(-32601, observe.Refused), nil, refuses, refuses, refuses, refuses},
		{"-32602", rpc(-32602, observe.Answered), nil, refuses, refuses, refuses, refuses},
		{"-32603", rpc(-32603, observe.Answered), nil, refuses, refuses, refuses, refuses},
		{"server code", rpc(-32005, observe.Answered), nil, refuses, refuses, refuses, refuses},
		{"tool error", ended(observe.ToolError, observe.Answered), nil, refuses, refuses, refuses, refuses},
		{"malformed", ended(observe.MalformedJSON, observe.Unknown), nil, refuses, refuses, refuses, refuses},
		{"invalid envelope", ended(observe.InvalidEnvelope, observe.Unknown), nil, refuses, refuses, refuses, refuses},
		{"invalid result", ended(observe.InvalidToolResult, observe.Unknown), nil, refuses, refuses, refuses, refuses},
		{"success", ended(observe.ToolSuccess, observe.Answered), nil, refuses, refuses, refuses, refuses},
		{"input required", ended(observe.InputRequired, observe.Answered), nil, refuses, refuses, refuses, refuses},
		{"extension", ended(observe.ExtensionResult, observe.Answered), nil, refuses, refuses, refuses, refuses},
		// Local refusals.
		{"canceled before sending", ended(observe.Canceled, observe.NotSent), nil, refuses, refuses, refuses, refuses},
		{"canceled after sending", ended(observe.Canceled, observe.Unknown), nil, refuses, refuses, refuses, refuses},
		{"breaker open", ended(observe.BreakerOpen, observe.NotSent), nil, refuses, refuses, refuses, refuses},
		{"rate limited", ended(observe.RateLimited, observe.NotSent), nil, refuses, refuses, refuses, refuses},
		{"blocked", ended(observe.Blocked, observe.NotSent), nil, refuses, refuses, refuses, refuses},
		// What is not an attempt.
		{"zero", policy.Attempt{}, nil, refuses, refuses, refuses, refuses},
		{"no such outcome", ended("NO_SUCH", observe.NotSent), nil, refuses, refuses, refuses, refuses},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := start()
			if row.state != nil {
				row.state(&s)
			}
			for i, want := range []time.Duration{row.readOnly, row.idempotent, row.keyed, row.unsafe} {
				check(t, tool(classes[i]).Decide(row.attempt, s), want)
			}
			check(t, tool("").Decide(row.attempt, s), row.unsafe)
			check(t, tool("bogus").Decide(row.attempt, s), row.unsafe)
			check(t, (*policy.Tool)(nil).Decide(row.attempt, s), row.unsafe)
		})
	}
}

// check compares a decision with a wait, or with refuses.
func check(t *testing.T, d policy.Decision, want time.Duration) {
	t.Helper()
	switch {
	case want == refuses && (d.Action != policy.Stop || d.Wait != 0):
		t.Errorf("got %+v, want stop", d)
	case want != refuses && (d.Action != policy.Repeat || d.Wait != want):
		t.Errorf("got %+v, want repeat after %v", d, want)
	case d.Reason == "" || d.Rule == "":
		t.Errorf("%+v does not say why", d)
	}
}

func TestDecideByRules(t *testing.T) {
	codes := func(t *policy.Tool) { t.Retry.Codes = []int64{-32603, -32000} }
	statuses := func(t *policy.Tool) { t.Retry.Statuses = []int{404, 422} }
	outcomes := func(t *policy.Tool) {
		t.Retry.Outcomes = []observe.Outcome{observe.InvalidEnvelope, observe.UnexpectedContent, observe.SessionLost, observe.Canceled, observe.ToolSuccess}
	}
	toolErrors := func(t *policy.Tool) { t.Retry.ToolErrors = []string{"", "try again"} }
	refused := func(t *policy.Tool) {
		t.Retry.RefusedStatuses, t.Retry.RefusedCodes = []int{503, 529}, []int64{-32050}
	}
	disbelieved := func(t *policy.Tool) { t.Retry.Throttled = false }
	heals := func(t *policy.Tool) { t.Retry.Healed = true }
	toolError := func(text string) policy.Attempt {
		return policy.Attempt{Outcome: observe.ToolError, Delivery: observe.Answered, ToolErrorText: text}
	}
	httpCode := func(status int, code int64, d observe.Delivery) policy.Attempt {
		return policy.Attempt{Outcome: observe.HTTPError, Delivery: d, Status: status, Code: code, HasCode: true}
	}

	for _, row := range []struct {
		name    string
		rule    func(*policy.Tool)
		attempt policy.Attempt
		state   func(*policy.State)

		harmless, unsafe time.Duration
	}{
		{"code", codes, rpc(-32603, observe.Answered), nil, half, refuses},
		{"code in an HTTP error", codes, httpCode(400, -32000, observe.Refused), nil, half, refuses},
		{"another code", codes, rpc(-32602, observe.Answered), nil, refuses, refuses},
		{"no code", func(t *policy.Tool) { t.Retry.Codes = []int64{0} }, http(400, observe.Refused), nil, refuses, refuses},
		{"code of another outcome", codes, policy.Attempt{Outcome: observe.InvalidEnvelope, Delivery: observe.Unknown, Code: -32603, HasCode: true}, nil, refuses, refuses},
		{"status", statuses, http(404, observe.Refused), nil, half, refuses},
		{"status of a conflicting key", statuses, http(422, observe.Unknown), nil, half, refuses},
		{"status of another outcome", statuses, policy.Attempt{Outcome: observe.MalformedJSON, Delivery: observe.Unknown, Status: 404}, nil, refuses, refuses},
		{"outcome", outcomes, ended(observe.InvalidEnvelope, observe.Unknown), nil, half, refuses},
		{"outcome of transport", outcomes, ended(observe.UnexpectedContent, observe.Unknown), nil, half, refuses},
		{"outcome of a lost session", outcomes, ended(observe.SessionLost, observe.Refused), nil, refuses, refuses},
		{"outcome of a cancel", outcomes, ended(observe.Canceled, observe.NotSent), nil, refuses, refuses},
		{"outcome of a success", outcomes, ended(observe.ToolSuccess, observe.Answered), nil, refuses, refuses},
		{"tool error", toolErrors, toolError("busy, try again later"), nil, half, refuses},
		{"tool error, another text", toolErrors, toolError("no"), nil, refuses, refuses},
		{"declared status", refused, http(529, observe.Refused), nil, half, half},
		{"declared status of the table", refused, http(503, observe.Refused), nil, half, half},
		{"declared status after an unknown POST", refused, http(503, observe.Unknown), nil, half, refuses},
		{"declared code", refused, rpc(-32050, observe.Refused), nil, half, half},
		{"declared code in an HTTP error", refused, httpCode(500, -32050, observe.Refused), nil, half, half},
		{"declared code, not applied", refused, rpc(-32050, observe.Answered), nil, half, refuses},
		{"declared status of another outcome", refused,
			policy.Attempt{Outcome: observe.Redirected, Delivery: observe.Refused, Status: 503}, nil, refuses, refuses},
		{"429 not believed", disbelieved, http(429, observe.Unknown), nil, half, refuses},
		{"429 not believed, not applied", disbelieved, http(429, observe.Refused), nil, half, refuses},
		{"healed", heals, ended(observe.SessionLost, observe.Refused), healed, atOnce, atOnce},
		{"healed after an unknown POST", heals, ended(observe.SessionLost, observe.Unknown), healed, atOnce, refuses},
		{"not healed", heals, ended(observe.SessionLost, observe.Refused), nil, refuses, refuses},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := start()
			if row.state != nil {
				row.state(&s)
			}
			for _, c := range classes[:3] {
				check(t, tool(c, row.rule).Decide(row.attempt, s), row.harmless)
			}
			check(t, tool(policy.Unsafe, row.rule).Decide(row.attempt, s), row.unsafe)
		})
	}
}

// Whatever would be repeated stops where one of the bounds is reached.
func TestDecideBounds(t *testing.T) {
	attempt := http(429, observe.Refused)
	wait := func(d time.Duration) func(*policy.Attempt) {
		return func(a *policy.Attempt) { a.RetryAfter, a.HasRetryAfter = d, true }
	}
	for _, row := range []struct {
		name    string
		tool    func(*policy.Tool)
		attempt func(*policy.Attempt)
		state   func(*policy.State)
		want    time.Duration
		reason  string
	}{
		{name: "no bound in the way", want: half},
		{name: "second repeat", state: func(s *policy.State) { s.Repeats = 1 }, want: 2 * half},
		{name: "no repeats left", state: func(s *policy.State) { s.Repeats = 2 }, want: refuses, reason: "no repeats left"},
		{name: "no repeats at all", tool: func(t *policy.Tool) { t.Retry.Repeats = 0 }, want: refuses, reason: "allows no repeat"},
		{name: "session ended", attempt: func(a *policy.Attempt) { a.SessionEnded = true }, want: refuses, reason: "session has ended"},
		{name: "do not retry", attempt: func(a *policy.Attempt) { a.DoNotRetry = true }, want: refuses, reason: "asks not to repeat"},

		{name: "no budget left", state: func(s *policy.State) { s.Budget = false }, want: refuses, reason: "budget is spent"},
		{name: "no budget in force", tool: func(t *policy.Tool) { t.Retry.Budget = 0 }, state: func(s *policy.State) { s.Budget = false }, want: half},

		{name: "backoff ends in time", state: func(s *policy.State) { s.Remaining = half + 1 }, want: half},
		{name: "backoff ends at the deadline", state: func(s *policy.State) { s.Remaining = half }, want: refuses, reason: "cannot end before the deadline"},
		{name: "deadline is now", state: func(s *policy.State) { s.Remaining = 0 }, want: refuses, reason: "deadline"},
		{name: "deadline has passed", state: func(s *policy.State) { s.Remaining = -time.Second }, want: refuses, reason: "deadline"},
		{name: "no backoff, deadline is now", tool: func(t *policy.Tool) { t.Retry.Backoff = 0 }, state: func(s *policy.State) { s.Remaining = 0 }, want: refuses, reason: "deadline"},

		{name: "server's wait, jitter on top", attempt: wait(time.Second), want: time.Second + half},
		{name: "server's wait of zero", attempt: wait(0), want: half},
		{name: "server's wait below zero", attempt: wait(-time.Hour), want: half},
		{name: "jitter does not fit", attempt: wait(time.Second), state: func(s *policy.State) { s.Remaining = time.Second + half }, want: time.Second},
		{name: "server's wait does not fit", attempt: wait(time.Second), state: func(s *policy.State) { s.Remaining = time.Second }, want: refuses, reason: "server's wait cannot end"},
		{name: "server's wait at the cap", attempt: wait(time.Minute), want: time.Minute + half},
		{name: "server's wait above the cap", attempt: wait(time.Minute + 1), want: refuses, reason: "longer wait than the policy allows"},
		{name: "server's wait without cap", attempt: wait(time.Hour), tool: func(t *policy.Tool) { t.Retry.RetryAfterCap = 0 }, want: time.Hour + half},
		{name: "longest wait without cap", attempt: wait(math.MaxInt64), tool: func(t *policy.Tool) { t.Retry.RetryAfterCap = 0 }, want: math.MaxInt64},
		{name: "wait without the word", attempt: func(a *policy.Attempt) { a.RetryAfter = time.Hour }, want: half},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, c := range classes {
				tool, a, s := tool(c), attempt, start()
				if row.tool != nil {
					row.tool(tool)
				}
				if row.attempt != nil {
					row.attempt(&a)
				}
				if row.state != nil {
					row.state(&s)
				}
				d := tool.Decide(a, s)
				check(t, d, row.want)
				if !strings.Contains(d.Reason, row.reason) {
					t.Errorf("reason %q, want %q", d.Reason, row.reason)
				}
			}
		})
	}
}

// Every row that is repeated obeys a server's wait, 503 among them.
func TestRetryAfterOfAnyStatus(t *testing.T) {
	for _, a := range []policy.Attempt{
		http(503, observe.Unknown), http(500, observe.Unknown), http(408, observe.Unknown), http(429, observe.Refused),
	} {
		a.RetryAfter, a.HasRetryAfter = 3*time.Second, true
		check(t, tool(policy.ReadOnly).Decide(a, start()), 3*time.Second+half)
	}
	a := http(409, observe.Unknown)
	a.RetryAfter, a.HasRetryAfter = 3*time.Second, true
	check(t, tool(policy.Keyed).Decide(a, start()), 3*time.Second+half)
}

// An earlier attempt that may have had an effect keeps an unsafe call from being
// repeated, however this one ended.
func TestGraverAttempt(t *testing.T) {
	for _, row := range []struct {
		graver observe.Delivery
		unsafe time.Duration
	}{
		{"", half}, {observe.NotSent, half}, {observe.Refused, half},
		{observe.Answered, refuses}, {observe.Unknown, refuses}, {"bogus", refuses},
	} {
		s := start()
		s.Graver = row.graver
		for _, a := range []policy.Attempt{http(429, observe.Refused), ended(observe.NetworkError, observe.NotSent)} {
			check(t, tool(policy.Unsafe).Decide(a, s), row.unsafe)
			check(t, tool(policy.Keyed).Decide(a, s), half)
		}
	}
}

func TestDecisionNamesItsRule(t *testing.T) {
	p := &policy.Policy{Rules: []policy.Rule{
		{Name: "gateway", Settings: policy.Settings{Retry: policy.Retry{RefusedStatuses: []int{529}, Codes: []int64{7}}}},
		{Tool: "read_*", Settings: policy.Settings{Safety: policy.ReadOnly}},
		{Name: "few", Tool: "read_*", Settings: policy.Settings{Retry: policy.Retry{Repeats: 1}}},
		{Name: "trust", Settings: policy.Settings{TrustAnnotations: new(true)}},
	}}
	for _, row := range []struct {
		tool    string
		attempt policy.Attempt
		repeats int
		want    string
	}{
		{"pay", http(529, observe.Refused), 0, "gateway"},
		{"pay", http(503, observe.Unknown), 0, "default"},
		{"pay", http(429, observe.Refused), 0, "default"},
		{"pay", ended(observe.ToolSuccess, observe.Answered), 0, "default"},
		{"read_x", http(503, observe.Unknown), 0, "rules[1]"},
		{"read_x", rpc(7, observe.Answered), 0, "gateway"},
		{"read_x", http(503, observe.Unknown), 1, "few"},
		{"hinted", http(503, observe.Unknown), 0, "annotations"},
	} {
		hints := &policy.Annotations{ReadOnly: row.tool == "hinted"}
		s := start()
		s.Repeats = row.repeats
		if d := p.Resolve("", row.tool, hints).Decide(row.attempt, s); d.Rule != row.want {
			t.Errorf("%s: %+v: got %+v, want the rule %q", row.tool, row.attempt, d, row.want)
		}
	}
}

func TestDeclares(t *testing.T) {
	declaring := func(t *policy.Tool) {
		t.Retry.RefusedStatuses, t.Retry.RefusedCodes = []int{503}, []int64{-32050}
	}
	disbelieving := func(t *policy.Tool) {
		t.Retry.Throttled, t.Retry.RefusedStatuses = false, []int{429}
	}
	for _, row := range []struct {
		name    string
		tool    *policy.Tool
		outcome observe.Outcome
		status  int
		code    int64
		hasCode bool
		want    observe.Delivery
	}{
		{"declared status", tool(policy.Unsafe, declaring), observe.HTTPError, 503, 0, false, observe.Refused},
		{"another status", tool(policy.Unsafe, declaring), observe.HTTPError, 502, 0, false, ""},
		{"declared code", tool(policy.Unsafe, declaring), observe.JSONRPCError, 200, -32050, true, observe.Refused},
		{"declared code in an HTTP error", tool(policy.Unsafe, declaring), observe.HTTPError, 500, -32050, true, observe.Refused},
		{"another code", tool(policy.Unsafe, declaring), observe.JSONRPCError, 200, -32051, true, ""},
		{"no code", tool(policy.Unsafe, func(t *policy.Tool) { t.Retry.RefusedCodes = []int64{0} }), observe.HTTPError, 500, 0, false, ""},
		{"a code that the declared status came with", tool(policy.Unsafe, declaring), observe.JSONRPCError, 503, 1, true, ""},
		{"cut stream", tool(policy.Unsafe, declaring), observe.StreamIncomplete, 503, -32050, true, ""},
		{"tool error", tool(policy.Unsafe, declaring), observe.ToolError, 200, -32050, true, ""},
		{"429 believed", tool(policy.Unsafe), observe.HTTPError, 429, 0, false, ""},
		{"429 not believed", tool(policy.Unsafe, disbelieving), observe.HTTPError, 429, 0, false, observe.Unknown},
		{"425 not believed", tool(policy.Unsafe, disbelieving), observe.HTTPError, 425, 0, false, observe.Unknown},
		{"nil", nil, observe.HTTPError, 503, 0, false, ""},
	} {
		got, ok := row.tool.Declares(row.outcome, row.status, row.code, row.hasCode)
		if got != row.want || ok != (row.want != "") {
			t.Errorf("%s: got %q, %v, want %q", row.name, got, ok, row.want)
		}
	}
}

// hardest is a decision that looks at every list before it repeats.
func hardest() (*policy.Tool, policy.Attempt, policy.State) {
	t := tool(policy.Keyed, func(t *policy.Tool) {
		t.Retry.RefusedStatuses = []int{529, 530, 531}
		t.Retry.RefusedCodes = []int64{-1, -2, -3}
		t.Retry.Outcomes = []observe.Outcome{observe.MalformedJSON, observe.InvalidEnvelope}
		t.Retry.Statuses = []int{400, 401, 404}
		t.Retry.Codes = []int64{-4, -5, -32603}
	})
	a := policy.Attempt{Outcome: observe.HTTPError, Delivery: observe.Unknown, Status: 501, Code: -32603, HasCode: true, RetryAfter: time.Second, HasRetryAfter: true}
	s := start()
	s.Remaining = time.Minute
	return t, a, s
}

func TestDecideDoesNotAllocate(t *testing.T) {
	tool, a, s := hardest()
	if d := tool.Decide(a, s); d.Action != policy.Repeat {
		t.Fatalf("got %+v, want a repeat", d)
	}
	if n := testing.AllocsPerRun(100, func() { tool.Decide(a, s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDecide(b *testing.B) {
	b.Run("hardest", func(b *testing.B) {
		tool, a, s := hardest()
		b.ReportAllocs()
		for b.Loop() {
			tool.Decide(a, s)
		}
	})
	b.Run("503", func(b *testing.B) {
		tool, a, s := tool(policy.ReadOnly), http(503, observe.Unknown), start()
		b.ReportAllocs()
		for b.Loop() {
			tool.Decide(a, s)
		}
	})
	b.Run("success", func(b *testing.B) {
		tool, a, s := tool(policy.ReadOnly), ended(observe.ToolSuccess, observe.Answered), start()
		b.ReportAllocs()
		for b.Loop() {
			tool.Decide(a, s)
		}
	})
}
