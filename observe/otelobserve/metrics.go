package otelobserve

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/surecall/surecall/observe"
)

// metrics are the instruments.
type metrics struct {
	operation metric.Float64Histogram
	session   metric.Float64Histogram
	attempts  metric.Int64Counter
	repeats   metric.Int64Counter
	waits     metric.Float64Histogram
	breaker   metric.Int64Counter
	ledger    metric.Int64Counter
	unknown   metric.Int64Counter
}

func newMetrics(m metric.Meter) (*metrics, error) {
	b := builder{meter: m}
	x := &metrics{
		operation: b.seconds(metricOperation, "The duration of the MCP request or notification as observed on the sender from the time it was sent until the response or ack is received."),
		session:   b.seconds(metricSession, "The duration of the MCP session as observed on the MCP client."),
		attempts:  b.counter(metricAttempts, "{attempt}", "Attempts of tool calls, by what they came to; refusals of the client's own included."),
		repeats:   b.counter(metricRepeats, "{repeat}", "Times that a tool call was sent again, by whom and what for."),
		waits:     b.seconds(metricWaits, "Waits before attempts, by what for."),
		breaker:   b.counter(metricBreaker, "{change}", "Changes of state of circuit breakers."),
		ledger:    b.counter(metricLedger, "{call}", "Tool calls that went through the ledger, by what it made of them."),
		unknown:   b.counter(metricUnknown, "{call}", "Tool calls that may or may not have taken effect."),
	}
	return x, errors.Join(b.errs...)
}

// builder makes instruments and keeps the errors.
type builder struct {
	meter metric.Meter
	errs  []error
}

func (b *builder) seconds(name, description string) metric.Float64Histogram {
	h, err := b.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(durationBounds...))
	b.errs = append(b.errs, err)
	return h
}

func (b *builder) counter(name, unit, description string) metric.Int64Counter {
	c, err := b.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	b.errs = append(b.errs, err)
	return c
}

// measureCall records all that is counted of one call.
func (t *telemetry) measureCall(ctx context.Context, c *callSpan, s *observe.CallStart, r *observe.Record) {
	f := callFate(r)
	// A tool has a label only where its server has one.
	server := t.labels.server(s.Server)
	tool := t.labels.tool(s.Server, s.Tool, &f)
	of := func(more ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(append(more, keyServer.String(server), keyTool.String(tool))...))
	}
	x := t.metrics
	x.operation.Record(ctx, time.Since(s.Started).Seconds(), metric.WithAttributeSet(attribute.NewSet(t.operationAttributes(c, s, &f, tool)...)))
	countAttempts(r, func(o observe.Outcome, d observe.Delivery) {
		x.attempts.Add(ctx, 1, of(keyOutcome.String(string(o)), keyDelivery.String(string(d))))
	})
	for _, p := range repeats(r) {
		x.repeats.Add(ctx, 1, of(appendText([]attribute.KeyValue{keyOrigin.String(string(p.origin))}, keyRepeated, string(p.reason))...))
	}
	countWaits(r, func(why observe.WaitReason, seconds float64) {
		x.waits.Record(ctx, seconds, of(keyWaitReason.String(string(why))))
	})
	if step, kind, settled, ok := ledger(r); ok {
		attrs := []attribute.KeyValue{keyStep.String(step)}
		x.ledger.Add(ctx, 1, of(appendText(appendText(attrs, keyKind, kind), keySettled, settled)...))
	}
	if f.delivery == observe.Unknown {
		x.unknown.Add(ctx, 1, of(keySafety.String(s.Safety), keyOutcome.String(string(f.outcome))))
	}
}

// operationAttributes are those that the conventions name for the duration of a call.
func (t *telemetry) operationAttributes(c *callSpan, s *observe.CallStart, f *fate, tool string) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 12)
	attrs = append(attrs, keyMethod.String(methodCallTool), keyOperation.String(executeTool), keyTool.String(tool))
	attrs = appendText(attrs, keyProtocolVersion, s.ProtocolVersion)
	attrs = appendText(attrs, keyRPCStatus, t.labels.code(f.code))
	attrs = appendText(attrs, keyErrorType, t.labels.errorType(f))
	if t.labels.servers.has(s.Server) {
		attrs = c.endpoint.append(attrs)
	}
	return c.endpoint.appendVersion(attrs, c.httpVersion)
}

func (t *telemetry) measureSession(ctx context.Context, s *observe.SessionStart, errorType string) {
	e := endpointOf(s.Endpoint)
	attrs := appendText(nil, keyProtocolVersion, s.ProtocolVersion)
	attrs = appendText(attrs, keyErrorType, errorType)
	if t.labels.servers.admit(s.Server) {
		attrs = e.append(attrs)
	}
	attrs = e.appendVersion(attrs, "")
	t.metrics.session.Record(ctx, time.Since(s.Started).Seconds(), metric.WithAttributeSet(attribute.NewSet(attrs...)))
}

func (t *telemetry) breakerChanged(b observe.BreakerChange) {
	attrs := []attribute.KeyValue{keyServer.String(t.labels.server(b.Server)), keyFrom.String(b.From), keyTo.String(b.To)}
	attrs = appendText(attrs, keyTool, t.labels.breaker(&b))
	t.metrics.breaker.Add(context.Background(), 1, metric.WithAttributeSet(attribute.NewSet(attrs...)))
}
