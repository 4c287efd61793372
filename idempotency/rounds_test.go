package idempotency_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
)

// The connections over which a client goes through rounds itself.
var withRounds = []string{"in memory", "HTTP, 2026-07-28"}

var byHand = &mcp.MultiRoundTripOptions{Disabled: true}

// A call is executed once, whichever number of rounds it takes, and however many it
// takes when it is made again.
func TestOnceWhicheverNumberOfRounds(t *testing.T) {
	const first, again = "order 1", "replay: order 1"
	// A step is one round of a call, of which the server wants so many answers.
	type step struct {
		questions int32
		round     int
		want      string
	}
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"two rounds, then one", []step{{1, 1, "asked"}, {1, 2, first}, {0, 1, again}}},
		{"two rounds, then two", []step{{1, 1, "asked"}, {1, 2, first}, {1, 1, again}, {1, 2, again}}},
		{"two rounds, then three", []step{{1, 1, "asked"}, {1, 2, first}, {2, 1, again}, {2, 2, again}, {2, 3, again}}},
		{"three rounds, then one", []step{{2, 1, "asked"}, {2, 2, "asked"}, {2, 3, first}, {0, 1, again}}},
		{"three rounds, then from the second", []step{{2, 1, "asked"}, {2, 2, "asked"}, {2, 3, first}, {1, 2, again}}},
		{"one round, then two", []step{{0, 1, first}, {1, 1, again}, {1, 2, again}}},
		{"left after a question, then one", []step{{1, 1, "asked"}, {0, 1, first}, {1, 2, again}}},
		{"left after a question, then from the start", []step{{1, 1, "asked"}, {1, 1, "asked"}, {1, 2, first}, {1, 1, again}}},
	} {
		for _, over := range withRounds {
			t.Run(tt.name+" "+over, func(t *testing.T) {
				s := newShopServer(nil, nil)
				c := s.connectWith(t, connections[over], "ann", byHand)
				for i, step := range tt.steps {
					s.questions.Store(step.questions)
					if got := c.round(t.Context(), "asks", "k", step.round); got != step.want {
						t.Errorf("step %d, round %d: %s, want %s", i+1, step.round, got, step.want)
					}
				}
				if got := s.ran.Load(); got != 1 {
					t.Errorf("ran %d times", got)
				}
			})
		}
	}
}

// Who makes a call again while its last round runs waits for that.
func TestFirstRoundWaitsForTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShopServer(nil, nil)
		c := s.connectWith(t, inMemory, "", byHand)
		if got := c.round(t.Context(), "asks, held", "k", 1); got != "asked" {
			t.Fatalf("round 1: %s", got)
		}
		told := make(chan string)
		for _, round := range []int{2, 1, 2} {
			go func() { told <- c.round(t.Context(), "asks, held", "k", round) }()
			time.Sleep(time.Second)
		}
		close(s.hold)
		got := map[string]int{}
		for range 3 {
			got[<-told]++
		}
		if got["held"] != 1 || got["replay: held"] != 2 || s.ran.Load() != 1 {
			t.Errorf("told %v, ran %d times", got, s.ran.Load())
		}
	})
}

// A call's key counts as strictly as a round's, and stands for the same.
func TestCallKey(t *testing.T) {
	const (
		mismatch = `-32602 this idempotency key belongs to an earlier call of another tool or with other arguments {"idempotency":"mismatch"}`
		badKey   = `-32602 io.github.surecall/call-key in _meta must be a string of 1 to 1024 bytes`
	)
	s := newShopServer(nil, nil)
	c := s.connect(t, inMemory, "")
	for i, step := range []struct {
		tool         string
		key, callKey any
		args         any
		want         string
	}{
		{"order", "r2", "", nil, badKey},
		{"order", "r2", 7, nil, badKey},
		{"order", "r2", nil, nil, "order 1"},
		{"order", "r2", fmt.Sprintf("%01025d", 0), nil, badKey},
		{"order", "r2", fmt.Sprintf("%01024d", 0), nil, "order 2"},
		{"order", "r2", "k", nil, "order 3"},
		{"order", "r3", "k", nil, "replay: order 3"},
		{"order", "k", nil, nil, "replay: order 3"},
		{"order", "r2", "k", map[string]any{"n": 1}, mismatch},
		{"refund", "r2", "k", nil, mismatch},
		{"order", "r2", nil, nil, "replay: order 1"},
		{"order", nil, "k", nil, "order 4"},
	} {
		meta := mcp.Meta{}
		if step.key != nil {
			meta[idempotency.MetaKey] = step.key
		}
		if step.callKey != nil {
			meta[idempotency.MetaCallKey] = step.callKey
		}
		if got := c.told(t.Context(), &mcp.CallToolParams{Name: step.tool, Arguments: step.args, Meta: meta}); got != step.want {
			t.Errorf("call %d: %s, want %s", i+1, got, step.want)
		}
	}
}
