package otelobserve_test

import (
	"context"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe/otelobserve"
)

// Of many calls at once, each has a span, and attempts hang beneath their own call.
func TestParallelCalls(t *testing.T) {
	for version, so := range servers {
		t.Run(version, func(t *testing.T) {
			r := newRig(t, so, otelobserve.Options{})
			r.server.Script("read_weather", middlewaretest.Status(503), middlewaretest.Status(503), middlewaretest.Status(503))
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					if err := r.call(t.Context(), "read_weather"); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			beneath := map[string]int{}
			for _, a := range r.named("surecall.attempt") {
				beneath[a.Parent().SpanID().String()]++
			}
			calls, attempts := r.named("tools/call read_weather"), 0
			for _, c := range calls {
				n := beneath[c.SpanContext().SpanID().String()]
				if attempts += n; n == 0 {
					t.Error("a call without an attempt")
				}
			}
			if len(calls) != 50 || attempts != 53 || r.number("surecall.client.attempts", nil) != 53 {
				t.Errorf("%d calls, %d attempts", len(calls), attempts)
			}
		})
	}
}

// Without HTTP there is no network to tell of; the rest is the same.
func TestWithoutHTTP(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	observer, err := otelobserve.New(&otelobserve.Options{TracerProvider: trace.NewTracerProvider(trace.WithSpanProcessor(spans))})
	if err != nil {
		t.Fatal(err)
	}
	var meta mcp.Meta
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "work"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		meta = req.Params.Meta
		return &mcp.CallToolResult{}, nil, nil
	})
	here, there := mcp.NewInMemoryTransports()
	ss, err := server.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
	client.AddSendingMiddleware(middleware.New(&middleware.Options{Observer: observer}).Middleware()...)
	cs, err := client.Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cs.Close(), ss.Wait() }()
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "work"}); err != nil {
		t.Fatal(err)
	}
	ended := spans.Ended()
	if len(ended) != 2 {
		t.Fatalf("%d spans", len(ended))
	}
	got := values(ended[1].Attributes())
	for name := range got {
		switch name {
		case "server.address", "server.port", "network.transport", "network.protocol.name", "network.protocol.version", "mcp.session.id":
			t.Errorf("%s is %q", name, got[name])
		}
	}
	if got["surecall.outcome"] != "TOOL_SUCCESS" || meta["traceparent"] == nil {
		t.Errorf("attributes %v, _meta %v", got, meta)
	}
}
