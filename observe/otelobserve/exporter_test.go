package otelobserve_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe/otelobserve"
	"github.com/surecall/surecall/policy"
)

// badExporter fails, hangs until it is shut down, or panics.
type badExporter struct {
	do   func() error
	once sync.Once
	met  chan struct{} // closed when it was asked for the first time
}

func (e *badExporter) export() error {
	e.once.Do(func() { close(e.met) })
	return e.do()
}

func (e *badExporter) ExportSpans(context.Context, []trace.ReadOnlySpan) error { return e.export() }
func (e *badExporter) Shutdown(context.Context) error                          { return nil }

// badMetrics is the same for metrics.
type badMetrics struct{ *badExporter }

func (badMetrics) Temporality(metric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}
func (badMetrics) Aggregation(k metric.InstrumentKind) metric.Aggregation {
	return metric.DefaultAggregationSelector(k)
}
func (e badMetrics) Export(context.Context, *metricdata.ResourceMetrics) error { return e.export() }
func (badMetrics) ForceFlush(context.Context) error                            { return nil }

// An exporter that fails or hangs neither slows nor fails a call: the SDK's own
// goroutines wait for it, and its queue drops what is too much.
func TestBadExportersDoNoHarm(t *testing.T) {
	release := make(chan struct{})
	for name, do := range map[string]func() error{
		"fails": func() error { return errors.New("no collector") },
		"hangs": func() error { <-release; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			spans, points := &badExporter{do: do, met: make(chan struct{})}, &badExporter{do: do, met: make(chan struct{})}
			tracers := trace.NewTracerProvider(trace.WithBatcher(spans, trace.WithBatchTimeout(time.Millisecond), trace.WithMaxQueueSize(8), trace.WithMaxExportBatchSize(2)))
			meters := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(badMetrics{points}, metric.WithInterval(time.Millisecond))))
			server := middlewaretest.NewServer(nil)
			t.Cleanup(server.Close)
			observer, err := otelobserve.New(&otelobserve.Options{TracerProvider: tracers, MeterProvider: meters})
			if err != nil {
				t.Fatal(err)
			}
			session := connect(t, server.URL(), middleware.New(&middleware.Options{Policy: &policy.Policy{Rules: classes()}, Observer: observer}), nil)
			r := &rig{t: t, session: session}
			if err := r.call(t.Context(), "read_weather"); err != nil {
				t.Fatal(err)
			}
			<-spans.met
			<-points.met // now both stand still, or have failed once
			var took []time.Duration
			for range 50 {
				began := time.Now()
				if err := r.call(t.Context(), "read_weather"); err != nil {
					t.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			if slices.Sort(took); took[25] > 200*time.Millisecond {
				t.Errorf("a call takes %v", took[25])
			}
			if n := server.Effects("read_weather"); n != 51 {
				t.Errorf("%d calls arrived", n)
			}
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				_, _ = tracers.Shutdown(ctx), meters.Shutdown(ctx)
			})
			if name == "hangs" {
				close(release)
			}
		})
	}
}

// panicking is a span processor that panics whenever it can.
type panicking struct{}

func (panicking) OnStart(context.Context, trace.ReadWriteSpan) { panic("start") }
func (panicking) OnEnd(trace.ReadOnlySpan)                     { panic("end") }
func (panicking) Shutdown(context.Context) error               { return nil }
func (panicking) ForceFlush(context.Context) error             { return nil }

func TestPanickingProcessorDoesNoHarm(t *testing.T) {
	for version, so := range servers {
		t.Run(version, func(t *testing.T) {
			server := middlewaretest.NewServer(&so)
			t.Cleanup(server.Close)
			observer, err := otelobserve.New(&otelobserve.Options{TracerProvider: trace.NewTracerProvider(trace.WithSpanProcessor(panicking{}))})
			if err != nil {
				t.Fatal(err)
			}
			session := connect(t, server.URL(), middleware.New(&middleware.Options{Policy: &policy.Policy{Rules: classes()}, Observer: observer}), nil)
			server.Script("read_weather", middlewaretest.Status(503))
			if err := (&rig{t: t, session: session}).call(t.Context(), "read_weather"); err != nil {
				t.Error(err)
			}
			if n := server.Effects("read_weather"); n != 1 {
				t.Errorf("%d effects", n)
			}
		})
	}
}
