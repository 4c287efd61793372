package otelobserve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe/otelobserve"
)

// sent is the trace context in _meta of each tools/call that the server got.
func (r *rig) sent() (all []map[string]string) {
	for _, e := range r.server.Entries() {
		if e.Method != "tools/call" {
			continue
		}
		m := map[string]string{}
		for _, name := range []string{"traceparent", "tracestate", "baggage", "b3"} {
			var s string
			if json.Unmarshal(e.Meta[name], &s) == nil {
				m[name] = s
			}
		}
		all = append(all, m)
	}
	return all
}

// inBaggage returns a context with something in its baggage.
func inBaggage(t *testing.T, ctx context.Context) context.Context {
	t.Helper()
	b, err := baggage.Parse("tenant=acme")
	if err != nil {
		t.Fatal(err)
	}
	return baggage.ContextWithBaggage(ctx, b)
}

func TestTraceContextTravels(t *testing.T) {
	for version, so := range servers {
		t.Run(version, func(t *testing.T) {
			r := newRig(t, so, otelobserve.Options{})
			r.server.Script("read_weather", middlewaretest.Status(503))
			state, _ := oteltrace.ParseTraceState("vendor=1")
			parent := oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
				TraceID: oteltrace.TraceID{7}, SpanID: oteltrace.SpanID{7}, TraceFlags: oteltrace.FlagsSampled, TraceState: state,
			})
			if err := r.call(oteltrace.ContextWithSpanContext(inBaggage(t, t.Context()), parent), "read_weather"); err != nil {
				t.Fatal(err)
			}
			sent, attempts := r.sent(), r.named("surecall.attempt")
			if len(sent) != 2 || len(attempts) != 2 {
				t.Fatalf("%d calls sent, %d attempts", len(sent), len(attempts))
			}
			for i, m := range sent {
				sc := attempts[i].SpanContext()
				want := map[string]string{
					"traceparent": fmt.Sprintf("00-%s-%s-01", sc.TraceID(), sc.SpanID()), "tracestate": "vendor=1", "baggage": "tenant=acme",
				}
				if !contains(m, want) {
					t.Errorf("attempt %d: %v, want %v", i+1, m, want)
				}
			}
		})
	}
}

// What the caller has put into _meta stays, and is not mixed with ours.
func TestCallersTraceContextStays(t *testing.T) {
	const theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, tt := range []struct {
		name, has string
		meta      mcp.Meta
	}{
		{"traceparent", "traceparent=" + theirs + " tracestate= baggage=tenant=acme", mcp.Meta{"traceparent": theirs}},
		{"baggage", "baggage=mine=1", mcp.Meta{"baggage": "mine=1"}},
		{"of another type", "traceparent= tracestate=", mcp.Meta{"traceparent": 7}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, servers["2026-07-28"], otelobserve.Options{})
			state, _ := oteltrace.ParseTraceState("vendor=1")
			ctx := oteltrace.ContextWithSpanContext(inBaggage(t, t.Context()), oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
				TraceID: oteltrace.TraceID{7}, SpanID: oteltrace.SpanID{7}, TraceFlags: oteltrace.FlagsSampled, TraceState: state,
			}))
			if _, err := r.session.CallTool(ctx, &mcp.CallToolParams{Name: "pay", Meta: tt.meta}); err != nil {
				t.Fatal(err)
			}
			sent := r.sent()[0]
			for _, pair := range strings.Fields(tt.has) {
				name, value, _ := strings.Cut(pair, "=")
				if sent[name] != value {
					t.Errorf("%s is %q, want %q", name, sent[name], value)
				}
			}
			if tt.name == "baggage" && sent["traceparent"] == "" {
				t.Error("no traceparent")
			}
		})
	}
}

// b3 is a propagator that writes what MCP has no bare name for.
type b3 struct{ propagation.TraceContext }

func (b3) Inject(_ context.Context, c propagation.TextMapCarrier) { c.Set("b3", "1") }

func TestOnlyTheThreeNamesTravel(t *testing.T) {
	r := newRig(t, servers["2026-07-28"], otelobserve.Options{
		Propagator: propagation.NewCompositeTextMapPropagator(b3{}, propagation.TraceContext{}),
	})
	if err := r.call(inBaggage(t, t.Context()), "pay"); err != nil {
		t.Fatal(err)
	}
	sent := r.sent()[0]
	if sent["traceparent"] == "" || sent["b3"] != "" || sent["baggage"] != "" {
		t.Errorf("sent %v", sent)
	}
}

// A server on the same SDK takes the trace up: its span hangs beneath the attempt that
// reached it, and its handler finds the baggage.
func TestServerTakesUpTheTrace(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(recorder))
	var tenants []string
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	server.AddReceivingMiddleware(otelobserve.Received(&otelobserve.Options{TracerProvider: provider}))
	type in struct {
		Fail bool `json:"fail"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "work"}, func(ctx context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
		tenants = append(tenants, baggage.FromContext(ctx).Member("tenant").Value())
		return &mcp.CallToolResult{IsError: in.Fail}, nil, nil
	})
	mcpHandler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	// As instrumentation of net/http would, a span is open for the HTTP request.
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, span := provider.Tracer("http").Start(r.Context(), "HTTP")
		defer span.End()
		mcpHandler.ServeHTTP(w, r.WithContext(ctx))
	}))
	t.Cleanup(h.Close)
	observer, err := otelobserve.New(&otelobserve.Options{TracerProvider: provider})
	if err != nil {
		t.Fatal(err)
	}
	session := connect(t, h.URL, middleware.New(&middleware.Options{Observer: observer}), nil)
	for _, fail := range []bool{false, true} {
		if _, err := session.CallTool(inBaggage(t, t.Context()), &mcp.CallToolParams{Name: "work", Arguments: map[string]any{"fail": fail}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := session.ListTools(t.Context(), nil); err != nil { // passes by
		t.Fatal(err)
	}
	var attempts, served []trace.ReadOnlySpan
	for _, s := range recorder.Ended() {
		switch {
		case s.Name() == "surecall.attempt":
			attempts = append(attempts, s)
		case s.SpanKind() == oteltrace.SpanKindServer:
			served = append(served, s)
		}
	}
	if len(attempts) != 2 || len(served) != 2 || !slices.Equal(tenants, []string{"acme", "acme"}) {
		t.Fatalf("%d attempts, %d served, tenants %q", len(attempts), len(served), tenants)
	}
	for i, s := range served {
		if s.Name() != "tools/call work" || s.Parent().SpanID() != attempts[i].SpanContext().SpanID() || !s.Parent().IsRemote() {
			t.Errorf("%s beneath %s", s.Name(), s.Parent().SpanID())
		}
		if len(s.Links()) != 1 || s.Links()[0].SpanContext.TraceID() == s.SpanContext().TraceID() {
			t.Errorf("links %v", s.Links())
		}
	}
	if got := values(served[1].Attributes())["error.type"]; got != "tool_error" || served[1].Status().Code != codes.Error {
		t.Errorf("error.type %q, status %v", got, served[1].Status())
	}
}
