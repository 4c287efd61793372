package otelobserve_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/observe/otelobserve"
)

// discard is an exporter that takes no time.
type discard struct{}

func (discard) ExportSpans(context.Context, []trace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                          { return nil }

// benchStack is a stack that is told of by the kind: "off", "record", "unsampled" (the
// SDK, with no trace sampled) or "otel" (spans and metrics, exported nowhere).
func benchStack(b *testing.B, kind string) *middleware.Stack {
	opts := &middleware.Options{NoLedger: true}
	switch kind {
	case "record":
		opts.OnRecord = func(context.Context, *observe.Record) {}
	case "otel", "unsampled":
		sampler := trace.AlwaysSample()
		if kind == "unsampled" {
			sampler = trace.NeverSample()
		}
		tracers := trace.NewTracerProvider(trace.WithBatcher(discard{}), trace.WithSampler(sampler))
		b.Cleanup(func() { _ = tracers.Shutdown(context.Background()) })
		observer, err := otelobserve.New(&otelobserve.Options{
			TracerProvider: tracers, MeterProvider: metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())),
		})
		if err != nil {
			b.Fatal(err)
		}
		opts.Observer = observer
	}
	return middleware.New(opts)
}

// BenchmarkObserver calls through the middlewares over an empty handler. It reports the
// processor time as well, of the exporter's goroutine and the collector too: on a busy
// machine that is the better number.
func BenchmarkObserver(b *testing.B) {
	result := &mcp.CallToolResult{Content: []mcp.Content{}}
	for _, kind := range []string{"off", "record", "unsampled", "otel"} {
		b.Run(kind, func(b *testing.B) {
			var next mcp.MethodHandler = func(context.Context, string, mcp.Request) (mcp.Result, error) { return result, nil }
			for _, m := range slices.Backward(benchStack(b, kind).Middleware()) {
				next = m(next)
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				req := &mcp.ClientRequest[mcp.Params]{Params: &mcp.CallToolParams{Name: "get", Arguments: map[string]any{}}}
				if _, err := next(ctx, "tools/call", req); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpuTime is the processor time that this process has taken.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCall makes 1 KB calls with the bare client, and with one that is wrapped and
// told of, in turn, and reports the median ratio of their times.
func BenchmarkCall(b *testing.B) {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	text := strings.Repeat("x", 1<<10)
	mcp.AddTool(server, &mcp.Tool{Name: "get"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	b.Cleanup(h.Close)
	for _, kind := range []string{"control", "off", "record", "unsampled", "otel"} {
		b.Run(kind, func(b *testing.B) {
			var stack *middleware.Stack
			if kind != "control" {
				stack = benchStack(b, kind)
			}
			bare, told := connect(b, h.URL, nil, nil), connect(b, h.URL, stack, nil)
			var ratios []float64
			var more int64
			const batch = 50
			callMany(b, bare, batch)
			callMany(b, told, batch)
			b.ResetTimer()
			for range b.N {
				t1, m1 := callMany(b, bare, batch)
				t2, m2 := callMany(b, told, batch)
				ratios, more = append(ratios, float64(t2)/float64(t1)), more+m2-m1
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "x-bare")
			b.ReportMetric(float64(more)/float64(b.N*batch), "more-allocs/call")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func callMany(b *testing.B, cs *mcp.ClientSession, n int) (time.Duration, int64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	for range n {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "get"}); err != nil {
			b.Fatal(err)
		}
		cancel()
	}
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return took, int64(after.Mallocs - before.Mallocs)
}
