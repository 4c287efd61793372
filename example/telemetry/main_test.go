package main

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// collector receives OTLP over HTTP, as an OpenTelemetry collector does.
type collector struct {
	mu      sync.Mutex
	spans   []*tracepb.Span
	metrics map[string]*metricspb.Metric
	errs    []error
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	var answer proto.Message = &collectortrace.ExportTraceServiceResponse{}
	switch {
	case err != nil:
	case r.URL.Path == "/v1/traces":
		var req collectortrace.ExportTraceServiceRequest
		err = proto.Unmarshal(body, &req)
		for _, rs := range req.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				c.spans = append(c.spans, ss.Spans...)
			}
		}
	case r.URL.Path == "/v1/metrics":
		answer = &collectormetrics.ExportMetricsServiceResponse{}
		var req collectormetrics.ExportMetricsServiceRequest
		err = proto.Unmarshal(body, &req)
		for _, rm := range req.ResourceMetrics {
			for _, sm := range rm.ScopeMetrics {
				for _, m := range sm.Metrics {
					c.metrics[m.Name] = m
				}
			}
		}
	}
	if err != nil {
		c.errs = append(c.errs, err)
	}
	out, _ := proto.Marshal(answer)
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(out)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A call with two attempts arrives at a collector: three spans of one trace, and the
// metrics.
func TestCollectorGetsAll(t *testing.T) {
	for _, version := range []string{middlewaretest.Version20260728, middlewaretest.Version20251125} {
		t.Run(version, func(t *testing.T) {
			c := &collector{metrics: map[string]*metricspb.Metric{}}
			h := httptest.NewServer(c)
			defer h.Close()
			if err := run(t.Context(), h.URL, &middlewaretest.Options{Version: version}); err != nil {
				t.Fatal(err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.check(t)
		})
	}
}

// Without a collector the call is made all the same, and the host is told.
func TestNoCollector(t *testing.T) {
	h := httptest.NewServer(http.NotFoundHandler())
	defer h.Close()
	if err := run(t.Context(), h.URL, nil); err == nil {
		t.Error("no error")
	}
}

func (c *collector) check(t *testing.T) {
	t.Helper()
	for _, err := range c.errs {
		t.Error(err)
	}
	if len(c.spans) != 3 {
		t.Fatalf("%d spans", len(c.spans))
	}
	call := c.spans[2] // it ended last
	if call.Name != "tools/call read_weather" || call.Kind != tracepb.Span_SPAN_KIND_CLIENT {
		t.Errorf("span %v", call)
	}
	for _, a := range c.spans[:2] {
		if a.Name != "surecall.attempt" || hex.EncodeToString(a.ParentSpanId) != hex.EncodeToString(call.SpanId) || string(a.TraceId) != string(call.TraceId) {
			t.Errorf("attempt %v", a)
		}
	}
	if n := len(c.spans[1].Events); n != 1 {
		t.Errorf("%d events on the second attempt", n)
	}
	d := c.metrics["mcp.client.operation.duration"].GetHistogram()
	if d == nil || len(d.DataPoints) != 1 || d.DataPoints[0].Count != 1 || len(d.DataPoints[0].ExplicitBounds) != 14 {
		t.Errorf("durations %v", d)
	}
	sum := c.metrics["surecall.client.repeats"].GetSum()
	if sum == nil || len(sum.DataPoints) != 1 || sum.DataPoints[0].GetAsInt() != 1 {
		t.Errorf("repeats %v", sum)
	}
}
