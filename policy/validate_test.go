package policy_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/surecall/surecall/policy"
)

// problems are the settings that Validate reports, as "rule: setting".
func problems(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%T holds no list", err)
	}
	var all []string
	for _, e := range joined.Unwrap() {
		var bad *policy.RuleError
		if !errors.As(e, &bad) {
			t.Fatalf("a %T", e)
		}
		if !strings.Contains(e.Error(), bad.Rule) || bad.Problem == "" || !strings.Contains(e.Error(), bad.Problem) {
			t.Errorf("%q does not say what is wrong", e)
		}
		all = append(all, bad.Rule+": "+bad.Setting)
	}
	return all
}

func TestValidate(t *testing.T) {
	settings := func(s policy.Settings) policy.Rule { return policy.Rule{Name: "r", Settings: s} }
	look := func(s policy.Safety, r policy.Reconcile) policy.Rule {
		return settings(policy.Settings{Safety: s, Reconcile: &r})
	}
	paid := policy.AnswerMatch{At: "/status", In: []string{"paid"}}
	retry := func(r policy.Retry) policy.Rule {
		return settings(policy.Settings{TrustAnnotations: new(true), Retry: r})
	}
	key := func(s policy.Safety, header string) policy.Rule {
		return settings(policy.Settings{Safety: s, Key: policy.Key{Header: header}})
	}
	for _, row := range []struct {
		name string
		rule policy.Rule
		want []string
	}{
		{"empty", policy.Rule{}, []string{"rules[0]: tool"}},
		{"sets nothing", policy.Rule{Name: "r", Tool: "pay"}, []string{"r: tool"}},
		{"address as server", policy.Rule{Name: "r", Server: "http://[::1]:8080/*", Settings: policy.Settings{Safety: policy.Unsafe}}, nil},
		{"server not UTF-8", policy.Rule{Name: "r", Server: "a\xff"}, []string{"r: server"}},
		{"control character", policy.Rule{Name: "r", Tool: "a\n"}, []string{"r: tool"}},
		{"stray space", policy.Rule{Name: "r", Tool: " pay"}, []string{"r: tool"}},
		{"character class", policy.Rule{Name: "r", Tool: "pay[0-9]"}, []string{"r: tool"}},
		{"alternatives", policy.Rule{Name: "r", Tool: "pay|send"}, []string{"r: tool"}},
		{"reserved name", policy.Rule{Name: "default"}, []string{"default: name"}},
		{"reserved name", policy.Rule{Name: "annotations"}, []string{"annotations: name"}},

		{"every safety", settings(policy.Settings{Safety: policy.Idempotent}), nil},
		{"unknown safety", settings(policy.Settings{Safety: "read-only"}), []string{"r: safety"}},
		{"key in _meta", settings(policy.Settings{Key: policy.Key{Meta: "com.example/key", Argument: "/a/b"}}), nil},
		{"key in _meta of MCP", settings(policy.Settings{Key: policy.Key{Meta: "io.modelcontextprotocol/key"}}), []string{"r: key.meta"}},
		{"key in _meta of an attempt", settings(policy.Settings{Key: policy.Key{Meta: policy.MetaAttempt}}), []string{"r: key.meta"}},
		{"signals", settings(policy.Settings{Retry: policy.Retry{Signals: []string{"retry_after", "error_data"}}}), nil},
		{"no signals", settings(policy.Settings{Retry: policy.Retry{Signals: []string{}}}), nil},
		{"unknown signal", settings(policy.Settings{Retry: policy.Retry{Signals: []string{"Retry-After"}}}), []string{"r: retry.signals"}},
		{"key in _meta with a space", settings(policy.Settings{Key: policy.Key{Meta: "my key"}}), []string{"r: key.meta"}},
		{"argument with an empty step", settings(policy.Settings{Key: policy.Key{Argument: "/a//b"}}), []string{"r: key.argument"}},
		{"reconcile", look(policy.Unsafe, policy.Reconcile{Tool: "find", Arguments: map[string]string{"a": "/b", "k": policy.ReconcileKey}, Happened: paid}), nil},
		{"no reconcile", look("", policy.Reconcile{}), nil},
		{"reconcile without a tool", look("", policy.Reconcile{Happened: paid}), []string{"r: reconcile"}},
		{"reconcile without a proof", look("", policy.Reconcile{Tool: "find"}), []string{"r: reconcile"}},
		{"reconcile for a reading tool", look(policy.ReadOnly, policy.Reconcile{Tool: "find", Happened: paid}), []string{"r: reconcile"}},
		{"reconcile with a place that is none", look("", policy.Reconcile{Tool: "find", Happened: policy.AnswerMatch{At: "status"}}), []string{"r: reconcile"}},
		{"reconcile with values nowhere", look("", policy.Reconcile{Tool: "find", Happened: paid, DidNotHappen: policy.AnswerMatch{In: []string{"x"}}}), []string{"r: reconcile"}},
		{"reconcile with an unknown word", look("", policy.Reconcile{Tool: "find", Arguments: map[string]string{"k": "$id"}, Happened: paid}), []string{"r: reconcile"}},
		{"unknown gate", settings(policy.Settings{Gate: "all"}), []string{"r: gate"}},
		{"unknown surface", settings(policy.Settings{Surface: "user"}), []string{"r: surface"}},
		{"known deviation", settings(policy.Settings{Tolerate: []string{"id_form"}}), nil},
		{"unknown deviation", settings(policy.Settings{Tolerate: []string{"id_form", "id form"}}), []string{"r: tolerate"}},
		{"result type", settings(policy.Settings{ResultTypes: []string{"task", "complete"}}), []string{"r: result_types"}},

		{"known outcomes", retry(policy.Retry{Outcomes: []string{
			"TOOL_ERROR", "JSONRPC_ERROR", "MALFORMED_JSON", "INVALID_ENVELOPE", "INVALID_TOOL_RESULT", "HTTP_ERROR",
			"NETWORK_ERROR", "STREAM_INCOMPLETE", "UNEXPECTED_CONTENT", "REDIRECTED", "RESULT_TOO_LARGE", "TIMEOUT"}}), nil},
		{"unknown outcome", retry(policy.Retry{Outcomes: []string{"malformed_json", ""}}), []string{"r: retry.outcomes", "r: retry.outcomes"}},
		{"outcomes that end a call", retry(policy.Retry{Outcomes: []string{
			"TOOL_SUCCESS", "INPUT_REQUIRED", "EXTENSION_RESULT", "SESSION_LOST", "CANCELED", "BREAKER_OPEN", "RATE_LIMITED", "BLOCKED"}}),
			slices.Repeat([]string{"r: retry.outcomes"}, 8)},
		{"statuses", retry(policy.Retry{Statuses: []int{404, 200}, RefusedStatuses: []int{529, -1}}), []string{"r: retry.statuses", "r: retry.refused_statuses"}},
		{"429 both ways", retry(policy.Retry{Throttled: new(false), RefusedStatuses: []int{429}}), []string{"r: retry.refused_statuses"}},
		{"empty match", retry(policy.Retry{ToolErrors: []string{"busy", ""}}), []string{"r: retry.tool_errors"}},
		{"no budget", retry(policy.Retry{Budget: -1}), nil},
		{"budget that pays for nothing", retry(policy.Retry{Budget: 0.5}), []string{"r: retry.budget"}},
		{"budget that is no number", retry(policy.Retry{Budget: math.NaN()}), []string{"r: retry.budget"}},
		{"endless budget", retry(policy.Retry{Budget: math.Inf(1)}), []string{"r: retry.budget"}},

		{"off", settings(policy.Settings{Breaker: policy.Breaker{Failures: -1}, Limiter: policy.Limiter{Rate: -1}, MaxResult: -1,
			Limits: policy.Limits{Connect: -1, Headers: -1, Silence: -1, Attempt: -1, Call: -1},
			Retry:  policy.Retry{Repeats: -1, Backoff: -1, BackoffCap: -1, RetryAfterCap: -1}}), nil},
		{"negative nonsense", settings(policy.Settings{Breaker: policy.Breaker{Open: -1}, Limiter: policy.Limiter{Burst: -1}}),
			[]string{"r: breaker.open", "r: limiter.burst"}},
		{"endless rate", settings(policy.Settings{Limiter: policy.Limiter{Rate: math.Inf(1)}}), []string{"r: limiter.rate"}},

		{"session of all tools", policy.Rule{Name: "r", Server: "s", Tool: "*", Settings: policy.Settings{Session: policy.Session{Heal: new(false), Timeout: -1}}}, nil},
		{"session of some tools", policy.Rule{Name: "r", Tool: "pay", Settings: policy.Settings{Session: policy.Session{Heal: new(false), Timeout: 1}}},
			[]string{"r: session.heal", "r: session.timeout"}},

		{"key header", key(policy.Keyed, "Idempotency-Key"), nil},
		{"key header for what the server calls keyed", settings(policy.Settings{TrustAnnotations: new(true), Key: policy.Key{Header: "X-Request-Key"}}), nil},
		{"key header for no tool", key("", "X-Request-Key"), []string{"r: key.header"}},
		{"key header on an unsafe rule", key(policy.Unsafe, "Idempotency-Key"), []string{"r: key.header"}},
		{"key header on a read-only rule", key(policy.ReadOnly, "Idempotency-Key"), []string{"r: key.header"}},
		{"key header with a space", key(policy.Keyed, "Idempotency Key"), []string{"r: key.header"}},
		{"key header not ASCII", key(policy.Keyed, "Clé"), []string{"r: key.header"}},
		{"key header of HTTP", key(policy.Keyed, "content-type"), []string{"r: key.header"}},
		{"key header of MCP", key(policy.Keyed, "mcp-session-id"), []string{"r: key.header"}},

		{"names on an unsafe rule", settings(policy.Settings{Safety: policy.Unsafe, Retry: policy.Retry{
			Codes: []int64{1}, Statuses: []int{404}, Outcomes: []string{"TOOL_ERROR"}, ToolErrors: []string{"x"}}}),
			[]string{"r: retry.codes", "r: retry.statuses", "r: retry.outcomes", "r: retry.tool_errors"}},
		{"names for no harmless tool", settings(policy.Settings{Retry: policy.Retry{
			Codes: []int64{1}, Statuses: []int{404}, Outcomes: []string{"TOOL_ERROR"}, ToolErrors: []string{"x"}}}),
			[]string{"r: retry.codes", "r: retry.statuses", "r: retry.outcomes", "r: retry.tool_errors"}},
		{"none for no harmless tool", settings(policy.Settings{Retry: policy.Retry{Codes: []int64{}}}), nil},
		{"refused on an unsafe rule", settings(policy.Settings{Safety: policy.Unsafe, Retry: policy.Retry{RefusedCodes: []int64{1}, RefusedStatuses: []int{529}}}), nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := problems(t, (&policy.Policy{Rules: []policy.Rule{row.rule}}).Validate())
			if !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// All rules are reported at once, each under its name.
func TestValidateReportsAll(t *testing.T) {
	p := &policy.Policy{Rules: []policy.Rule{
		{Settings: policy.Settings{Safety: "x"}},
		{Name: "fine", Tool: "pay", Settings: policy.Settings{MaxResult: 1}},
		{Name: "two", Tool: "{a,b}", Settings: policy.Settings{Surface: "x"}},
		{Name: "fine", Settings: policy.Settings{Strict: new(true)}},
	}}
	want := []string{"rules[0]: safety", "two: tool", "two: surface", "fine: name"}
	err := p.Validate()
	if got := problems(t, err); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var first *policy.RuleError
	if !errors.As(err, &first) || first.Index != 0 {
		t.Errorf("got %+v", first)
	}
	if err := (*policy.Policy)(nil).Validate(); err != nil {
		t.Errorf("nil: %v", err)
	}
}
