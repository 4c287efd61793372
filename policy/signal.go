package policy

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Signal is a dialect in which servers and gateways say when to come back
// (retry.signals).
type Signal string

const (
	// SignalRetryAfter is the Retry-After header (RFC 9110, section 10.2.3).
	SignalRetryAfter Signal = "retry_after"
	// SignalRetryAfterMs is the retry-after-ms header: milliseconds.
	SignalRetryAfterMs Signal = "retry_after_ms"
	// SignalRateLimitReset are the headers whose names begin with x-ratelimit-reset,
	// which say when a quota is full again: in seconds, as a Unix time, as a duration
	// such as 1m30s, or as a date. They are on every answer of some servers, so they are
	// read on 429 and 503 alone, and only where nothing says when to come back.
	SignalRateLimitReset Signal = "ratelimit_reset"
	// SignalErrorData is a member of a JSON-RPC error's data: retryAfter and
	// retry_after in seconds, retryAfterMs and retry_after_ms in milliseconds,
	// retryDelay (google.rpc.RetryInfo) as a duration in seconds such as "1.5s".
	SignalErrorData Signal = "error_data"
)

// Signals lists every signal. All are read where the policy says nothing.
func Signals() []Signal {
	return []Signal{SignalRetryAfter, SignalRetryAfterMs, SignalRateLimitReset, SignalErrorData}
}

// Valid reports whether s is one of the constants above.
func (s Signal) Valid() bool { return slices.Contains(Signals(), s) }

// The names in _meta under which an attempt is announced (retry.announce).
const (
	// MetaAttempt is the number of the attempt within its call: 1, then 2 for the first
	// repeat.
	MetaAttempt = "io.github.surecall/attempt"
	// MetaTimeLeft is how many milliseconds the call had left when the attempt began:
	// nobody waits for an answer that comes later. Missing where there is no deadline.
	MetaTimeLeft = "io.github.surecall/time-left-ms"
)

// A Reply is what an answer can say about coming back.
type Reply struct {
	Status int
	Header http.Header
	// Data is the data of the JSON-RPC error, if the answer was one; else nil.
	Data json.RawMessage
	// Meta is the _meta of the result, if the answer was one; else nil.
	Meta json.RawMessage
	// Now is when it came. Dates are compared with the answer's own Date, where there
	// is one: the two clocks need not agree.
	Now time.Time
}

// Wait is the wait that a server asks for, in the dialects that are read, and whether
// it asks for one. Of several that name a wait the longest counts.
func (r *Reply) Wait(read []Signal) (time.Duration, bool) {
	now := r.Now
	if date, err := http.ParseTime(r.Header.Get("Date")); err == nil {
		now = date
	}
	var w longest
	if slices.Contains(read, SignalRetryAfter) {
		w.take(ParseRetryAfter(r.Header.Get("Retry-After"), now))
	}
	if slices.Contains(read, SignalRetryAfterMs) {
		w.take(delay(strings.TrimSpace(r.Header.Get("Retry-After-Ms")), time.Millisecond))
	}
	if slices.Contains(read, SignalErrorData) && len(r.Data) > 0 {
		w.takeData(r.Data)
	}
	overloaded := r.Status == http.StatusTooManyRequests || r.Status == http.StatusServiceUnavailable
	if !w.found && overloaded && slices.Contains(read, SignalRateLimitReset) {
		w.takeResets(r.Header, now)
	}
	return w.wait, w.found
}

// DoNotRetry reports whether the server says in so many words that the call is not
// to be sent again: Stripe-Should-Retry or X-Should-Retry false, or a member of a
// JSON-RPC error's data or of _meta (retryable, shouldRetry or should_retry false,
// doNotRetry or do_not_retry true; in _meta also behind a prefix). There is no
// standard for it; these are the names in use.
func (r *Reply) DoNotRetry() bool {
	return r.Header.Get("Stripe-Should-Retry") == "false" || r.Header.Get("X-Should-Retry") == "false" ||
		forbids(r.Data) || forbids(r.Meta)
}

// longest is the longest of the waits that were found.
type longest struct {
	wait  time.Duration
	found bool
}

func (l *longest) take(wait time.Duration, ok bool) {
	if ok {
		l.wait, l.found = max(l.wait, wait), true
	}
}

// takeData reads the members of a JSON-RPC error's data, and of the details within.
func (l *longest) takeData(data json.RawMessage) {
	members := object(data)
	for _, m := range []struct {
		name string
		unit time.Duration
	}{
		{"retryAfter", time.Second}, {"retry_after", time.Second}, {"retry-after", time.Second},
		{"retryAfterMs", time.Millisecond}, {"retry_after_ms", time.Millisecond}, {"retry-after-ms", time.Millisecond},
		{"retryDelay", time.Second},
	} {
		if raw, ok := members[m.name]; ok {
			l.take(delay(strings.Trim(string(raw), `" `), m.unit))
		}
	}
	var details []json.RawMessage
	if json.Unmarshal(members["details"], &details) == nil {
		for _, d := range details[:min(len(details), maxDetails)] {
			if raw, ok := object(d)["retryDelay"]; ok {
				l.take(delay(strings.Trim(string(raw), `" `), time.Second))
			}
		}
	}
}

// maxDetails bounds what is looked at of a server's list.
const maxDetails = 16

const resetPrefix = "X-Ratelimit-Reset"

// takeResets reads when quotas are full again. Where the answer says what remains of
// a quota, one that is not used up does not count.
func (l *longest) takeResets(h http.Header, now time.Time) {
	for name := range h {
		quota, ok := strings.CutPrefix(name, resetPrefix)
		if !ok {
			continue
		}
		remaining := strings.TrimSpace(h.Get("X-Ratelimit-Remaining" + quota))
		if n, err := strconv.ParseFloat(remaining, 64); err == nil && n > 0 {
			continue
		}
		l.take(reset(strings.TrimSpace(h.Get(name)), now))
	}
}

// aUnixTime is the least number that stands for a point in time, not for a number of
// seconds to wait: that of September 2001.
const aUnixTime = 1e9

// reset reads a point in time, or a wait.
func reset(value string, now time.Time) (time.Duration, bool) {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || n < aUnixTime {
		if at, err := time.Parse(time.RFC3339, value); err == nil {
			return max(at.Sub(now), 0), true
		}
		if at, err := http.ParseTime(value); err == nil {
			return max(at.Sub(now), 0), true
		}
		return delay(value, time.Second)
	}
	return max(unixTime(n).Sub(now), 0), true
}

// unixTime is a Unix time in seconds, or in milliseconds where it is too great for
// seconds.
func unixTime(n float64) time.Time {
	whole, part := math.Modf(min(n, 1e15))
	if n < aUnixTime*1000 {
		return time.Unix(int64(whole), int64(part*float64(time.Second)))
	}
	return time.UnixMilli(int64(whole))
}

// delay reads a number of units, or a duration as Go writes it. What is negative is
// no wait, and what is too long for a Duration is the longest one.
func delay(value string, unit time.Duration) (time.Duration, bool) {
	if d, err := time.ParseDuration(value); err == nil && value != "0" {
		return max(d, 0), true
	}
	n, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil || math.IsNaN(n):
		return 0, false
	case n <= 0:
		return 0, true
	case n*float64(unit) >= math.MaxInt64:
		return math.MaxInt64, true
	}
	return time.Duration(math.Ceil(n * float64(unit))), true
}

// forbids reports whether an object says that a call is not to be sent again.
func forbids(doc json.RawMessage) bool {
	for name, value := range object(doc) {
		if i := strings.LastIndexByte(name, '/'); i >= 0 {
			name = name[i+1:]
		}
		switch name {
		case "retryable", "shouldRetry", "should_retry", "should-retry":
			if string(value) == "false" {
				return true
			}
		case "doNotRetry", "do_not_retry", "do-not-retry":
			if string(value) == "true" {
				return true
			}
		}
	}
	return false
}

// object reads an object's members; nil where it is none.
func object(doc json.RawMessage) map[string]json.RawMessage {
	if doc = bytes.TrimSpace(doc); len(doc) == 0 || doc[0] != '{' {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(doc, &members) != nil {
		return nil
	}
	return members
}
