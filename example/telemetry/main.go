// Telemetry makes a tool call whose first attempt fails, and sends its spans and
// metrics to an OpenTelemetry collector:
//
//	cd example/telemetry && go run . -otlp http://localhost:4318
//
// The server runs in this process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe/otelobserve"
	"github.com/surecall/surecall/policy"
)

func main() {
	collector := flag.String("otlp", "http://localhost:4318", "OTLP over HTTP, base `URL`")
	flag.Parse()
	if err := run(context.Background(), *collector, nil); err != nil {
		fmt.Fprintln(os.Stderr, "telemetry:", err)
		os.Exit(1)
	}
}

// run makes the call and returns when all of it has been sent.
func run(ctx context.Context, collector string, so *middlewaretest.Options) (err error) {
	traces, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(collector+"/v1/traces"))
	if err != nil {
		return err
	}
	points, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(collector+"/v1/metrics"))
	if err != nil {
		return err
	}
	// The batcher and the periodic reader send on goroutines of their own.
	tracers := trace.NewTracerProvider(trace.WithBatcher(traces))
	meters := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(points)))
	defer func() {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		err = errors.Join(err, tracers.Shutdown(ctx), meters.Shutdown(ctx))
	}()

	observer, err := otelobserve.New(&otelobserve.Options{TracerProvider: tracers, MeterProvider: meters})
	if err != nil {
		return err
	}
	stack := middleware.New(&middleware.Options{
		Policy:   &policy.Policy{Rules: []policy.Rule{{Tool: "read_*", Settings: policy.Settings{Safety: policy.ReadOnly}}}},
		Observer: observer,
	})
	return call(ctx, stack, so)
}

// call calls a server that answers the first attempt with 503.
func call(ctx context.Context, stack *middleware.Stack, so *middlewaretest.Options) error {
	server := middlewaretest.NewServer(so)
	defer server.Close()
	server.Script("read_weather", middlewaretest.Status(503))
	client := mcp.NewClient(&mcp.Implementation{Name: "telemetry", Version: "1"}, nil)
	client.AddSendingMiddleware(stack.Middleware()...)
	hc := stack.HTTPClient(nil)
	defer hc.CloseIdleConnections()
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: server.URL(), HTTPClient: hc}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "read_weather", Arguments: map[string]any{"city": "Oslo"}})
	return err
}
