package otelobserve

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/surecall/surecall/observe"
)

// Options configure the observer. A nil pointer and the zero value mean the defaults.
type Options struct {
	// TracerProvider makes spans. Default: the global one.
	TracerProvider trace.TracerProvider
	// MeterProvider makes metrics. Default: the global one.
	MeterProvider metric.MeterProvider
	// Propagator writes the trace context into params._meta; only the names
	// traceparent, tracestate and baggage get there. Default: W3C trace context and
	// baggage. What is in the baggage goes to the server: use
	// propagation.TraceContext{} alone for servers that must not see it.
	Propagator propagation.TextMapPropagator
	// MaxTools is how many names of tools, over all servers, labels may tell apart.
	// Default 200.
	MaxTools int
	// MaxServers is how many servers labels may tell apart. Default 50.
	MaxServers int
}

// scope is the name of the tracer and the meter.
const scope = "github.com/surecall/surecall/observe/otelobserve"

const (
	maxTools   = 200
	maxServers = 50
)

func (o *Options) copy() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.TracerProvider == nil {
		c.TracerProvider = otel.GetTracerProvider()
	}
	if c.MeterProvider == nil {
		c.MeterProvider = otel.GetMeterProvider()
	}
	if c.Propagator == nil {
		c.Propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	}
	if c.MaxTools <= 0 {
		c.MaxTools = maxTools
	}
	if c.MaxServers <= 0 {
		c.MaxServers = maxServers
	}
	return c
}

// New returns an observer for middleware.Options.Observer, which may serve several
// stacks. An error says that the meter provider refused an instrument.
func New(opts *Options) (*observe.Observer, error) {
	o := opts.copy()
	t := &telemetry{
		tracer:     o.TracerProvider.Tracer(scope),
		propagator: o.Propagator,
		labels:     newLabels(&o),
	}
	var err error
	if t.metrics, err = newMetrics(o.MeterProvider.Meter(scope)); err != nil {
		return nil, err
	}
	return &observe.Observer{
		SessionStarted: t.sessionStarted,
		CallStarted:    t.callStarted,
		AttemptStarted: t.attemptStarted,
		BreakerChanged: t.breakerChanged,
	}, nil
}

// telemetry is the observer's state.
type telemetry struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	labels     *labels
	metrics    *metrics
}

func (t *telemetry) callStarted(ctx context.Context, s observe.CallStart) (context.Context, func(*observe.Record)) {
	ctx, span := t.startCall(ctx, &s)
	return ctx, func(r *observe.Record) {
		span.end(r)
		if r != nil {
			t.measureCall(ctx, span, &s, r)
		}
	}
}

func (t *telemetry) sessionStarted(_ context.Context, s observe.SessionStart) func(error) {
	return func(err error) {
		// The context of Connect may be long over, and its span ended.
		t.measureSession(context.Background(), &s, sessionError(err))
	}
}

// sessionError is the class of error that a session ended with, or "".
func sessionError(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, mcp.ErrSessionMissing):
		return string(observe.SessionLost)
	}
	return other
}
