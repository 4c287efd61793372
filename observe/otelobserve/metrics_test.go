package otelobserve_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe/otelobserve"
	"github.com/surecall/surecall/policy"
)

// want is a series that must have counted to n.
type want struct {
	metric string
	attrs  map[string]string
	n      uint64
}

func (r *rig) check(all []want) {
	r.t.Helper()
	for _, w := range all {
		if n := r.number(w.metric, w.attrs); n != w.n {
			r.t.Errorf("%s %v: %d, want %d; all: %v", w.metric, w.attrs, n, w.n, r.points(w.metric))
		}
	}
}

func TestMetrics(t *testing.T) {
	for version, so := range servers {
		t.Run(version, func(t *testing.T) {
			r := newRig(t, so, otelobserve.Options{}, policy.Rule{
				Name: "narrow", Tool: "send_mail", Settings: policy.Settings{Limiter: policy.Limiter{Rate: 2, Burst: 1}, Breaker: policy.Breaker{Failures: 1}},
			})
			r.server.Script("read_weather", middlewaretest.Status(503), middlewaretest.Status(503))
			_ = r.call(t.Context(), "read_weather") // repeated twice
			r.server.Script("pay", middlewaretest.Reset().Executed())
			_ = r.call(t.Context(), "pay") // in the dark
			_ = r.call(t.Context(), "send_mail")
			r.server.Script("send_mail", middlewaretest.Status(500))
			_ = r.call(t.Context(), "send_mail") // waits for the limiter, opens the breaker
			_ = r.call(t.Context(), "send_mail") // refused
			r.check([]want{
				{"mcp.client.operation.duration", map[string]string{"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "mcp.protocol.version": version, "server.address": "127.0.0.1", "network.transport": "tcp"}, 5},
				{"mcp.client.operation.duration", map[string]string{"gen_ai.tool.name": "pay", "error.type": "NETWORK_ERROR"}, 1},
				{"surecall.client.attempts", map[string]string{"gen_ai.tool.name": "read_weather", "surecall.server": "shop"}, 3},
				{"surecall.client.attempts", map[string]string{"gen_ai.tool.name": "send_mail", "surecall.outcome": "BREAKER_OPEN", "surecall.delivery": "not_sent"}, 1},
				{"surecall.client.repeats", map[string]string{"gen_ai.tool.name": "read_weather", "surecall.repeat.origin": "middleware", "surecall.repeat.reason": "HTTP_ERROR"}, 2},
				{"surecall.client.repeats", nil, 2},
				{"surecall.client.wait.duration", map[string]string{"gen_ai.tool.name": "send_mail", "surecall.wait.reason": "limiter"}, 1},
				{"surecall.client.wait.duration", map[string]string{"gen_ai.tool.name": "read_weather", "surecall.wait.reason": "backoff"}, 2},
				{"surecall.client.breaker.changes", map[string]string{"gen_ai.tool.name": "send_mail", "surecall.server": "shop", "surecall.breaker.from": "closed", "surecall.breaker.to": "open"}, 1},
				{"surecall.client.ledger.results", map[string]string{"gen_ai.tool.name": "pay", "surecall.ledger.step": "sent", "surecall.ledger.settled": "unknown"}, 1},
				{"surecall.client.ledger.results", map[string]string{"gen_ai.tool.name": "read_weather"}, 0},
				{"surecall.client.unknown_outcomes", map[string]string{"gen_ai.tool.name": "pay", "surecall.safety": "unsafe", "surecall.outcome": "NETWORK_ERROR"}, 1},
			})
		})
	}
}

// A wait that the caller ends is measured, and no attempt is told of.
func TestWaitThatLedToNothing(t *testing.T) {
	r := newRig(t, servers["2026-07-28"], otelobserve.Options{}, policy.Rule{
		Name: "narrow", Tool: "send_mail", Settings: policy.Settings{Limiter: policy.Limiter{Rate: 0.1, Burst: 1}},
	})
	_ = r.call(t.Context(), "send_mail")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_ = r.call(ctx, "send_mail")
	r.check([]want{
		{"surecall.client.wait.duration", map[string]string{"gen_ai.tool.name": "send_mail", "surecall.wait.reason": "limiter"}, 1},
		{"surecall.client.attempts", map[string]string{"surecall.outcome": "CANCELED", "surecall.delivery": "not_sent"}, 1},
	})
	if n := len(r.named("surecall.attempt")); n != 1 {
		t.Errorf("%d spans of attempts", n)
	}
}

// The session's duration is that from Connect to its end, once.
func TestSessionDuration(t *testing.T) {
	for version, so := range servers {
		t.Run(version, func(t *testing.T) {
			r := newRig(t, so, otelobserve.Options{})
			time.Sleep(20 * time.Millisecond)
			if r.number("mcp.client.session.duration", nil) != 0 {
				t.Error("measured before its end")
			}
			if err := r.session.Close(); err != nil {
				t.Fatal(err)
			}
			for range 500 {
				if r.number("mcp.client.session.duration", nil) > 0 {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			all := r.points("mcp.client.session.duration")
			if len(all) != 1 || all[0].n != 1 || all[0].sum < 0.02 || all[0].attrs["error.type"] != "" {
				t.Fatalf("measured %v", all)
			}
			if !contains(all[0].attrs, map[string]string{"mcp.protocol.version": version, "server.address": "127.0.0.1", "network.transport": "tcp"}) {
				t.Errorf("attributes %v", all[0].attrs)
			}
		})
	}
}

// Both durations have the boundaries that the conventions recommend.
func TestBoundaries(t *testing.T) {
	r := newRig(t, servers["2026-07-28"], otelobserve.Options{})
	_ = r.call(t.Context(), "pay")
	all := r.points("mcp.client.operation.duration")
	if len(all) != 1 || !slices.Equal(all[0].edges, []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}) {
		t.Errorf("%v", all)
	}
}

// A model makes up names, a server makes up codes: labels stay few.
func TestLabelsAreBounded(t *testing.T) {
	r := newRig(t, servers["2026-07-28"], otelobserve.Options{MaxTools: 5})
	for i := range 100 {
		name := fmt.Sprintf("made_up_%d", i)
		r.server.Script(name, middlewaretest.JSONRPCError(-32602, "unknown tool"))
		_ = r.call(t.Context(), name)
	}
	for i := range 8 {
		_ = r.call(t.Context(), fmt.Sprintf("real_%d", i))
	}
	for i := range 100 {
		r.server.Script("pay", middlewaretest.JSONRPCError(1000+i, "no"))
		_ = r.call(t.Context(), "pay")
	}
	tools, classes, codes := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, p := range r.points("mcp.client.operation.duration") {
		tools[p.attrs["gen_ai.tool.name"]] = true
		classes[p.attrs["error.type"]] = true
		codes[p.attrs["rpc.response.status_code"]] = true
	}
	if len(tools) != 6 || !tools["real_0"] || !tools["_OTHER"] || tools["made_up_0"] {
		t.Errorf("tools %v", tools)
	}
	if len(codes) > 40 || !codes["_OTHER"] || len(classes) > 40 {
		t.Errorf("%d codes, %d classes of errors", len(codes), len(classes))
	}
	names := map[string]bool{}
	for _, s := range r.spans.Ended() {
		names[s.Name()] = true
	}
	if len(names) != 7 || !names["tools/call"] {
		t.Errorf("%d names of spans: %v", len(names), names)
	}
}
