package policy

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// ParseRetryAfter reads the value of a Retry-After header (RFC 9110, section
// 10.2.3): a number of seconds in digits, or a date in one of HTTP's three
// formats. A date that has passed is no wait; a wait too long for a Duration is
// the longest one. False means that the value is neither, and says nothing.
//
// A date is compared with now. Give it the answer's own Date, where there is one:
// then the two clocks need not agree.
func ParseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.Trim(value, " \t")
	if value == "" {
		return 0, false
	}
	if strings.Trim(value, "0123456789") == "" {
		return delaySeconds(value), true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return max(at.Sub(now), 0), true
}

// delaySeconds reads a text of digits only.
func delaySeconds(digits string) time.Duration {
	const longest = math.MaxInt64 / int64(time.Second)
	var seconds int64
	for _, d := range digits {
		seconds = seconds*10 + int64(d-'0')
		if seconds > longest {
			return math.MaxInt64
		}
	}
	return time.Duration(seconds) * time.Second
}
