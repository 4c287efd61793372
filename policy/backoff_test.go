package policy_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/surecall/surecall/policy"
)

func TestBackoff(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		name        string
		base, limit time.Duration
		n           int
		r           float64
		want        time.Duration
	}{
		{"first", 200 * ms, 5 * time.Second, 0, 0.5, 100 * ms},
		{"second", 200 * ms, 5 * time.Second, 1, 0.5, 200 * ms},
		{"third", 200 * ms, 5 * time.Second, 2, 0.5, 400 * ms},
		{"capped", 200 * ms, 5 * time.Second, 5, 0.5, 2500 * ms},
		{"just below the cap", 200 * ms, 5 * time.Second, 4, 0.5, 1600 * ms},
		{"no jitter at all", 200 * ms, 5 * time.Second, 3, 0, 0},
		{"base above the cap", time.Minute, time.Second, 0, 0.5, 500 * ms},
		{"no cap", time.Second, 0, 10, 0.5, 512 * time.Second},
		{"negative cap", time.Second, -1, 10, 0.5, 512 * time.Second},
		{"no base", 0, time.Second, 3, 0.5, 0},
		{"negative base", -time.Second, time.Second, 3, 0.5, 0},
		{"negative number", 200 * ms, time.Second, -7, 0.5, 100 * ms},
		{"overflow with cap", time.Second, time.Minute, math.MaxInt, 0.5, 30 * time.Second},
		{"overflow without cap", time.Second, 0, math.MaxInt, 1, math.MaxInt64},
		{"r above its range", time.Second, time.Minute, 0, 7, time.Second},
		{"r below its range", time.Second, time.Minute, 0, -7, 0},
		{"r is no number", time.Second, time.Minute, 0, math.NaN(), 0},
	} {
		if got := policy.Backoff(row.base, row.limit, row.n, row.r); got != row.want {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
}

func TestBackoffBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := time.Duration(rapid.Int64Range(-10, math.MaxInt64).Draw(t, "base"))
		limit := time.Duration(rapid.Int64Range(-10, math.MaxInt64).Draw(t, "limit"))
		n := rapid.IntRange(-3, 200).Draw(t, "n")
		r := rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "r")
		got := policy.Backoff(base, limit, n, r)
		if got < 0 || limit > 0 && got > limit {
			t.Fatalf("%v is out of bounds", got)
		}
		if ceiling := policy.Backoff(base, limit, n, 1); got > ceiling {
			t.Fatalf("%v is above %v", got, ceiling)
		} else if next := policy.Backoff(base, limit, n+1, 1); next < ceiling {
			t.Fatalf("the ceiling fell from %v to %v", ceiling, next)
		}
	})
}
