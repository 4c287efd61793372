package otelobserve_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe/otelobserve"
)

func TestSpansOfACallWithTwoAttempts(t *testing.T) {
	for version, so := range servers {
		t.Run(version, func(t *testing.T) {
			r := newRig(t, so, otelobserve.Options{})
			r.server.Script("read_weather", middlewaretest.Status(503))
			ctx, root := r.tracer.Tracer("host").Start(t.Context(), "turn")
			if err := r.call(ctx, "read_weather"); err != nil {
				t.Fatal(err)
			}
			root.End()
			call := r.one("tools/call read_weather")
			if call.SpanKind() != trace.SpanKindClient || call.Parent().SpanID() != root.SpanContext().SpanID() || call.Status().Code != codes.Unset {
				t.Errorf("kind %s, parent %s, status %v", call.SpanKind(), call.Parent().SpanID(), call.Status())
			}
			got := values(call.Attributes())
			want := map[string]string{
				"mcp.method.name": "tools/call", "gen_ai.tool.name": "read_weather", "gen_ai.operation.name": "execute_tool",
				"mcp.protocol.version": version, "network.transport": "tcp", "network.protocol.name": "http",
				"network.protocol.version": "1.1", "server.address": "127.0.0.1", "surecall.safety": "read_only",
				"surecall.outcome": "TOOL_SUCCESS", "surecall.delivery": "answered", "surecall.attempts": "2", "surecall.decision": "stop",
			}
			if !contains(got, want) {
				t.Errorf("attributes %v", got)
			}
			if got["jsonrpc.request.id"] == "" || got["server.port"] == "" || got["error.type"] != "" || got["rpc.response.status_code"] != "" {
				t.Errorf("attributes %v", got)
			}
			if (got["mcp.session.id"] != "") != so.Sessions {
				t.Errorf("mcp.session.id %q on %s", got["mcp.session.id"], version)
			}
			attempts := r.named("surecall.attempt")
			if len(attempts) != 2 {
				t.Fatalf("%d attempts", len(attempts))
			}
			for i, want := range []map[string]string{
				{"surecall.attempt.number": "1", "http.response.status_code": "503", "error.type": "HTTP_ERROR", "surecall.outcome": "HTTP_ERROR", "surecall.delivery": "unknown"},
				{"surecall.attempt.number": "2", "http.response.status_code": "200", "surecall.outcome": "TOOL_SUCCESS", "surecall.delivery": "answered"},
			} {
				a := attempts[i]
				if a.Parent().SpanID() != call.SpanContext().SpanID() || !contains(values(a.Attributes()), want) {
					t.Errorf("attempt %d: parent %s, %v", i+1, a.Parent().SpanID(), values(a.Attributes()))
				}
				if failed := a.Status().Code == codes.Error; failed != (i == 0) {
					t.Errorf("attempt %d: status %v", i+1, a.Status())
				}
			}
			if n := len(attempts[0].Events()); n != 0 {
				t.Errorf("%d events before the first attempt", n)
			}
			waited := attempts[1].Events()
			if len(waited) != 1 || waited[0].Name != "surecall.wait" || values(waited[0].Attributes)["surecall.wait.reason"] != "backoff" {
				t.Errorf("events %v", waited)
			}
		})
	}
}

// How a call ends is told in the conventions' words.
func TestErrorTypes(t *testing.T) {
	for _, tt := range []struct {
		name, tool   string
		fault        *middlewaretest.Fault
		class, code  string
		outcome      string
		unknownFates uint64
	}{
		{"success", "pay", nil, "", "", "TOOL_SUCCESS", 0},
		{"isError", "fail", nil, "tool_error", "", "TOOL_ERROR", 0},
		{"JSON-RPC error", "pay", new(middlewaretest.JSONRPCError(-32603, "the <b>till</b> is closed, token=abcdefgh12345678")), "-32603", "-32603", "JSONRPC_ERROR", 0},
		{"HTTP error", "pay", new(middlewaretest.Status(500).Executed()), "HTTP_ERROR", "", "HTTP_ERROR", 1},
		{"cut", "pay", new(middlewaretest.Reset().Executed()), "NETWORK_ERROR", "", "NETWORK_ERROR", 1},
	} {
		for version, so := range servers {
			t.Run(tt.name+" "+version, func(t *testing.T) {
				r := newRig(t, so, otelobserve.Options{})
				if tt.fault != nil {
					r.server.Script(tt.tool, *tt.fault)
				}
				_ = r.call(t.Context(), tt.tool)
				call := r.one("tools/call " + tt.tool)
				got := values(call.Attributes())
				if got["error.type"] != tt.class || got["rpc.response.status_code"] != tt.code || got["surecall.outcome"] != tt.outcome {
					t.Errorf("attributes %v", got)
				}
				if failed := call.Status().Code == codes.Error; failed != (tt.class != "") {
					t.Errorf("status %v", call.Status())
				}
				want := map[string]string{"gen_ai.tool.name": tt.tool, "mcp.method.name": "tools/call", "mcp.protocol.version": version}
				if maps.Copy(want, map[string]string{"error.type": tt.class, "rpc.response.status_code": tt.code}); r.number("mcp.client.operation.duration", want) != 1 {
					t.Errorf("durations %v", r.points("mcp.client.operation.duration"))
				}
				if n := r.number("surecall.client.unknown_outcomes", map[string]string{"gen_ai.tool.name": tt.tool, "surecall.server": "shop"}); n != tt.unknownFates {
					t.Errorf("%d unknown outcomes, want %d", n, tt.unknownFates)
				}
				if tt.class != "tool_error" && (call.Status().Description != "") != (tt.class != "") {
					t.Errorf("description %q", call.Status().Description)
				}
				if d := call.Status().Description; strings.Contains(d, "abcdefgh") || tt.code != "" && !strings.Contains(d, "is closed") {
					t.Errorf("description %q", d)
				}
			})
		}
	}
}

func TestAgentsToolSpanIsUsed(t *testing.T) {
	operation := attribute.String("gen_ai.operation.name", "execute_tool")
	for _, tt := range []struct {
		name, span string
		attrs      []attribute.KeyValue
		used       bool
	}{
		{"by attribute", "tool", []attribute.KeyValue{operation, attribute.String("gen_ai.tool.name", "read_weather")}, true},
		{"by name", "execute_tool read_weather", []attribute.KeyValue{operation}, true},
		{"of another tool", "execute_tool plan_trip", []attribute.KeyValue{operation, attribute.String("gen_ai.tool.name", "plan_trip")}, false},
		{"of nothing", "execute_tool read_weather", nil, false},
		{"of another operation", "chat", []attribute.KeyValue{attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.tool.name", "read_weather")}, false},
		{"that tells of a call already", "tool", []attribute.KeyValue{operation, attribute.String("gen_ai.tool.name", "read_weather"), attribute.String("mcp.method.name", "tools/call")}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, servers["2026-07-28"], otelobserve.Options{})
			r.server.Script("read_weather", middlewaretest.Status(503), middlewaretest.Status(503), middlewaretest.Status(503))
			ctx, span := r.tracer.Tracer("agent").Start(t.Context(), tt.span, trace.WithAttributes(tt.attrs...))
			_ = r.call(ctx, "read_weather")
			if !span.IsRecording() {
				t.Error("the agent's span was ended")
			}
			span.End()
			agents := r.one(tt.span)
			if agents.Status().Code != codes.Unset {
				t.Errorf("the agent's span has the status %v", agents.Status())
			}
			own := r.named("tools/call read_weather")
			if (len(own) == 0) != tt.used {
				t.Fatalf("%d spans of our own", len(own))
			}
			if !tt.used {
				return
			}
			if got := values(agents.Attributes()); !contains(got, map[string]string{"mcp.method.name": "tools/call", "error.type": "HTTP_ERROR", "surecall.delivery": "unknown", "surecall.attempts": "3"}) {
				t.Errorf("attributes %v", got)
			}
			for _, a := range r.named("surecall.attempt") {
				if a.Parent().SpanID() != agents.SpanContext().SpanID() {
					t.Error("an attempt is not beneath the agent's span")
				}
			}
		})
	}
}

// What a handler of the host calls while it answers a question is a call of its own,
// beneath the attempt that asked, and no part of the first.
func TestCallsOfHandlersHaveSpansOfTheirOwn(t *testing.T) {
	r := newRig(t, servers["2026-07-28"], otelobserve.Options{})
	r.onAsk = func(ctx context.Context) {
		if err := r.call(ctx, "read_weather"); err != nil {
			t.Error(err)
		}
	}
	if err := r.call(t.Context(), "ask"); err != nil {
		t.Fatal(err)
	}
	ask, inner, attempts := r.one("tools/call ask"), r.one("tools/call read_weather"), r.named("surecall.attempt")
	if len(attempts) != 2 {
		t.Fatalf("%d attempts", len(attempts))
	}
	of, outer := attempts[0], attempts[1] // the inner one ended first
	if of.Parent().SpanID() != inner.SpanContext().SpanID() || inner.Parent().SpanID() != outer.SpanContext().SpanID() || outer.Parent().SpanID() != ask.SpanContext().SpanID() {
		t.Error("the spans do not hang together")
	}
	if got := values(outer.Attributes())["surecall.attempt.posts"]; got != "2" {
		t.Errorf("%s POSTs", got)
	}
}

// Without a sampled trace the call goes on, and is measured.
func TestUnrecordedCalls(t *testing.T) {
	r := newRig(t, servers["2026-07-28"], otelobserve.Options{})
	remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, Remote: true})
	if err := r.call(trace.ContextWithSpanContext(t.Context(), remote), "read_weather"); err != nil {
		t.Fatal(err)
	}
	if n := len(r.spans.Ended()); n != 0 {
		t.Errorf("%d spans", n)
	}
	if r.number("mcp.client.operation.duration", nil) != 1 {
		t.Error("not measured")
	}
}

func TestSpanOfACallThatWasNotSent(t *testing.T) {
	r := newRig(t, servers["2026-07-28"], otelobserve.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	_ = r.call(ctx, "pay")
	got := values(r.one("tools/call pay").Attributes())
	if got["surecall.delivery"] != "not_sent" || got["error.type"] != "TIMEOUT" {
		t.Errorf("attributes %v", got)
	}
}
