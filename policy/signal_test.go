package policy_test

import (
	"encoding/json"
	"math"
	nethttp "net/http"
	"strings"
	"testing"
	"time"

	"github.com/surecall/surecall/policy"
)

// answerHeaders reads "Name: value" lines.
func answerHeaders(lines ...string) nethttp.Header {
	h := nethttp.Header{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		h.Add(name, value)
	}
	return h
}

func TestReplyWait(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	const none = time.Duration(-1)
	for _, c := range []struct {
		name   string
		status int
		header nethttp.Header
		data   string
		want   time.Duration
	}{
		{"nothing", 429, answerHeaders(), "", none},
		{"Retry-After", 503, answerHeaders("Retry-After: 3"), "", 3 * time.Second},
		{"a date by the server's clock", 503, answerHeaders("Retry-After: Tue, 01 Dec 2026 09:00:05 GMT", "Date: Tue, 01 Dec 2026 09:00:00 GMT"), "", 5 * time.Second},
		{"a broken Retry-After", 503, answerHeaders("Retry-After: soon"), "", none},
		{"milliseconds", 429, answerHeaders("retry-after-ms: 1500"), "", 1500 * time.Millisecond},
		{"a part of a millisecond is waited for", 429, answerHeaders("retry-after-ms: 0.5"), "", 500 * time.Microsecond},
		{"the longer of two", 429, answerHeaders("Retry-After: 1", "retry-after-ms: 1200"), "", 1200 * time.Millisecond},
		{"negative", 429, answerHeaders("retry-after-ms: -5"), "", 0},
		{"broken", 429, answerHeaders("retry-after-ms: NaN"), "", none},
		{"too long", 429, answerHeaders("retry-after-ms: 1e300"), "", math.MaxInt64},

		{"reset in seconds", 429, answerHeaders("X-RateLimit-Reset: 7"), "", 7 * time.Second},
		{"reset as a Unix time", 429, answerHeaders("X-RateLimit-Reset: 1796126410"), "", 10 * time.Second},
		{"in milliseconds", 429, answerHeaders("X-RateLimit-Reset: 1796126400250"), "", 250 * time.Millisecond},
		{"in the past", 429, answerHeaders("X-RateLimit-Reset: 1796126300"), "", 0},
		{"as a duration", 429, answerHeaders("x-ratelimit-reset-requests: 1m30s"), "", 90 * time.Second},
		{"as a date", 503, answerHeaders("x-ratelimit-reset: 2026-12-01T12:00:02Z"), "", 2 * time.Second},
		{"the quota that is used up", 429, answerHeaders("x-ratelimit-reset-requests: 2s", "x-ratelimit-remaining-requests: 0",
			"x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 400"), "", 2 * time.Second},
		{"the longer of two quotas", 429, answerHeaders("x-ratelimit-reset-requests: 2s", "x-ratelimit-reset-tokens: 6s"), "", 6 * time.Second},
		{"a wait that is named comes first", 429, answerHeaders("x-ratelimit-reset: 90", "Retry-After: 1"), "", time.Second},
		{"reset on another status", 500, answerHeaders("x-ratelimit-reset: 90"), "", none},

		{"data in seconds", 200, nil, `{"retryAfter": 1.5}`, 1500 * time.Millisecond},
		{"data in words", 200, nil, `{"retry_after": "2"}`, 2 * time.Second},
		{"data in milliseconds", 200, nil, `{"retryAfterMs": 40}`, 40 * time.Millisecond},
		{"google.rpc.RetryInfo", 200, nil, `{"details": [{"@type": "x"}, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.2s"}]}`, 3200 * time.Millisecond},
		{"no object", 200, nil, `[{"retryAfter": 1}]`, none},
		{"no number", 200, nil, `{"retryAfter": {}}`, none},
		{"not JSON", 200, nil, `{"retryAfter": 1`, none},
	} {
		r := policy.Reply{Status: c.status, Header: c.header, Data: json.RawMessage(c.data), Now: now}
		wait, ok := r.Wait(policy.Signals())
		if !ok {
			wait = none
		}
		if wait != c.want {
			t.Errorf("%s: %v, want %v", c.name, wait, c.want)
		}
		if wait, ok := r.Wait(nil); ok {
			t.Errorf("%s: %v although nothing is read", c.name, wait)
		}
	}
}

// Each dialect is read only where the policy reads it.
func TestSignalsOneByOne(t *testing.T) {
	r := policy.Reply{Status: 429, Header: answerHeaders("Retry-After: 1", "retry-after-ms: 2000", "x-ratelimit-reset: 4"), Data: json.RawMessage(`{"retryAfter": 3}`)}
	for i, s := range policy.Signals() {
		want := []time.Duration{1, 2, 4, 3}[i] * time.Second
		if wait, ok := r.Wait([]policy.Signal{s}); !ok || wait != want {
			t.Errorf("%s: %v, %t", s, wait, ok)
		}
	}
}

func TestDoNotRetry(t *testing.T) {
	for _, c := range []struct {
		name string
		r    policy.Reply
		want bool
	}{
		{"nothing", policy.Reply{}, false},
		{"Stripe", policy.Reply{Header: answerHeaders("stripe-should-retry: false")}, true},
		{"Stripe says yes", policy.Reply{Header: answerHeaders("stripe-should-retry: true")}, false},
		{"gateway", policy.Reply{Header: answerHeaders("x-should-retry: false")}, true},
		{"data", policy.Reply{Data: json.RawMessage(`{"retryable": false}`)}, true},
		{"data says yes", policy.Reply{Data: json.RawMessage(`{"retryable": true}`)}, false},
		{"data, a text", policy.Reply{Data: json.RawMessage(`"retryable"`)}, false},
		{"_meta", policy.Reply{Meta: json.RawMessage(`{"io.github.surecall/do-not-retry": true}`)}, true},
		{"_meta of others", policy.Reply{Meta: json.RawMessage(`{"com.example/shouldRetry": false}`)}, true},
		{"_meta says no such thing", policy.Reply{Meta: json.RawMessage(`{"com.example/shouldRetry": null}`)}, false},
	} {
		if got := c.r.DoNotRetry(); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func FuzzReply(f *testing.F) {
	f.Add("3", "1500", "1796126410", "0", `{"retryAfter":1,"details":[{"retryDelay":"3s"}]}`)
	f.Add("", "1e400", "-1h", "x", `{"retryAfterMs":"9223372036854775808"}`)
	f.Fuzz(func(t *testing.T, after, ms, at, remaining, data string) {
		r := policy.Reply{Status: 429, Data: json.RawMessage(data), Meta: json.RawMessage(data), Now: time.Unix(1796126400, 0), Header: nethttp.Header{
			"Retry-After": {after}, "Retry-After-Ms": {ms}, "X-Ratelimit-Reset": {at}, "X-Ratelimit-Remaining": {remaining},
		}}
		for _, read := range [][]policy.Signal{policy.Signals(), {policy.SignalRateLimitReset}} {
			if wait, ok := r.Wait(read); wait < 0 || !ok && wait != 0 {
				t.Errorf("%v, %t", wait, ok)
			}
		}
		_ = r.DoNotRetry()
	})
}
