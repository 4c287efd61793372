package policy_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/surecall/surecall/policy"
)

// now is a second before the date that RFC 9110 uses in its examples.
var now = time.Date(1994, time.November, 6, 8, 49, 36, 0, time.UTC)

func TestParseRetryAfter(t *testing.T) {
	for _, row := range []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"0", 0, true},
		{"1", time.Second, true},
		{"120", 2 * time.Minute, true},
		{"0007", 7 * time.Second, true},
		{" 7\t", 7 * time.Second, true},
		{"9223372036", 9223372036 * time.Second, true},
		{"9223372037", math.MaxInt64, true},
		{"18446744073709551617", math.MaxInt64, true},
		{strings.Repeat("9", 1000), math.MaxInt64, true},

		{"Sun, 06 Nov 1994 08:49:37 GMT", time.Second, true},
		{"Sunday, 06-Nov-94 08:49:37 GMT", time.Second, true},
		{"Sun Nov  6 08:49:37 1994", time.Second, true},
		{"Sun, 06 Nov 1994 08:49:36 GMT", 0, true},
		{"Thu, 01 Jan 1970 00:00:00 GMT", 0, true},
		{"Fri, 31 Dec 9999 23:59:59 GMT", math.MaxInt64, true},

		{"", 0, false},
		{" ", 0, false},
		{"-1", 0, false},
		{"+1", 0, false},
		{"1.5", 0, false},
		{"1e3", 0, false},
		{"0x10", 0, false},
		{"1 2", 0, false},
		{"1s", 0, false},
		{"1,1", 0, false},
		{"١", 0, false},
		{"soon", 0, false},
		{"1994-11-06T08:49:37Z", 0, false},
		{"Sun, 06 Nov 1994 08:49:37 +0100", 0, false},
		{"Sun, 32 Nov 1994 08:49:37 GMT", 0, false},
	} {
		got, ok := policy.ParseRetryAfter(row.value, now)
		if got != row.want || ok != row.ok {
			t.Errorf("%q: got %v, %v, want %v, %v", row.value, got, ok, row.want, row.ok)
		}
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, seed := range []string{"7", "99999999999999999999", "-1", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got, ok := policy.ParseRetryAfter(value, now)
		if got < 0 || !ok && got != 0 {
			t.Errorf("%q: got %v, %v", value, got, ok)
		}
	})
}
