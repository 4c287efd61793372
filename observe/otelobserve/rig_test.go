package otelobserve_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/observe/otelobserve"
	"github.com/surecall/surecall/policy"
)

// servers are the options of the test server for the protocol versions that matter.
var servers = map[string]middlewaretest.Options{
	"2026-07-28": {},
	"2025-11-25": {Version: middlewaretest.Version20251125, Sessions: true},
}

// rig is a wrapped client with telemetry in memory, connected to a server that
// misbehaves.
type rig struct {
	t       *testing.T
	server  *middlewaretest.Server
	session *mcp.ClientSession
	spans   *tracetest.SpanRecorder
	tracer  *sdktrace.TracerProvider
	reader  *metric.ManualReader
	onAsk   func(context.Context) // what the host does before it answers a question
}

func (r *rig) ask(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	if r.onAsk != nil {
		r.onAsk(ctx)
	}
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
}

func newRig(t *testing.T, so middlewaretest.Options, opts otelobserve.Options, rules ...policy.Rule) *rig {
	t.Helper()
	r := &rig{t: t, server: middlewaretest.NewServer(&so), spans: tracetest.NewSpanRecorder(), reader: metric.NewManualReader()}
	t.Cleanup(r.server.Close)
	r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans))
	opts.TracerProvider, opts.MeterProvider = r.tracer, metric.NewMeterProvider(metric.WithReader(r.reader))
	observer, err := otelobserve.New(&opts)
	if err != nil {
		t.Fatal(err)
	}
	r.session = connect(t, r.server.URL(), middleware.New(&middleware.Options{
		Policy: &policy.Policy{Rules: append(rules, classes()...)}, Observer: observer,
	}), r.ask)
	return r
}

// classes are the safety classes of the server's built-in tools.
func classes() []policy.Rule {
	return []policy.Rule{
		{Name: "reads", Tool: "read_*", Settings: policy.Settings{Safety: policy.ReadOnly}},
		{Name: "quick", Settings: policy.Settings{Retry: policy.Retry{Backoff: 20 * time.Millisecond}}},
	}
}

type elicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)

// connect connects a client to a server that it calls "shop".
func connect(t testing.TB, url string, stack *middleware.Stack, ask elicit) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: ask})
	hc := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 300}}
	t.Cleanup(hc.CloseIdleConnections)
	if stack != nil {
		client.AddSendingMiddleware(stack.Middleware()...)
		hc = stack.HTTPClient(hc)
	}
	cs, err := client.Connect(observe.WithServer(context.Background(), "shop"), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: hc}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

// call calls a tool, with arguments unlike those of any other call.
func (r *rig) call(ctx context.Context, tool string) error {
	r.t.Helper()
	_, err := r.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"n": time.Now().UnixNano()}})
	return err
}

// named are the ended spans of that name, in the order of their ends.
func (r *rig) named(name string) (spans []sdktrace.ReadOnlySpan) {
	for _, s := range r.spans.Ended() {
		if s.Name() == name {
			spans = append(spans, s)
		}
	}
	return spans
}

// one is the only ended span of that name.
func (r *rig) one(name string) sdktrace.ReadOnlySpan {
	r.t.Helper()
	spans := r.named(name)
	if len(spans) != 1 {
		r.t.Fatalf("%d spans %q", len(spans), name)
	}
	return spans[0]
}

// values are attributes by name, as text.
func values(attrs []attribute.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range attrs {
		m[string(a.Key)] = a.Value.String()
	}
	return m
}

// collect is what the instrument of that name has measured.
func (r *rig) collect(name string) metricdata.Aggregation {
	r.t.Helper()
	var rm metricdata.ResourceMetrics
	if err := r.reader.Collect(context.Background(), &rm); err != nil {
		r.t.Fatal(err)
	}
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			if m.Name == name {
				return m.Data
			}
		}
	}
	return nil
}

// A point is one series of a metric: its attributes, as text, and its value; for a
// histogram the number of measurements.
type point struct {
	attrs map[string]string
	n     uint64
	sum   float64
	edges []float64
}

func (r *rig) points(name string) (all []point) {
	r.t.Helper()
	switch data := r.collect(name).(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			all = append(all, point{values(p.Attributes.ToSlice()), uint64(p.Value), 0, nil})
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			all = append(all, point{values(p.Attributes.ToSlice()), p.Count, p.Sum, p.Bounds})
		}
	}
	return all
}

// number is the value of the series that have all of these attributes.
func (r *rig) number(name string, attrs map[string]string) (n uint64) {
	r.t.Helper()
	for _, p := range r.points(name) {
		if contains(p.attrs, attrs) {
			n += p.n
		}
	}
	return n
}

func contains(all, some map[string]string) bool {
	for k, v := range some {
		if all[k] != v {
			return false
		}
	}
	return true
}
