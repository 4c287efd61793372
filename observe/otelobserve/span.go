package otelobserve

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/surecall/surecall/observe"
)

// callSpan is the span that tells of a call: ours, or the agent's.
type callSpan struct {
	trace.Span
	own      bool
	endpoint endpoint

	httpVersion string // of the last answer; the call's own goroutine alone touches it
}

type callSpanKey struct{}

func (t *telemetry) startCall(ctx context.Context, s *observe.CallStart) (context.Context, *callSpan) {
	c := &callSpan{endpoint: endpointOf(s.Endpoint)}
	attrs := startAttributes(s, &c.endpoint)
	if c.Span = toolSpan(ctx, s.Tool); c.Span != nil {
		c.SetAttributes(attrs...)
	} else {
		c.own = true
		ctx, c.Span = t.tracer.Start(ctx, t.labels.spanName(s.Server, s.Tool),
			trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(s.Started), trace.WithAttributes(attrs...))
	}
	return context.WithValue(ctx, callSpanKey{}, c), c
}

// startAttributes are known before the call, so that samplers can use them.
func startAttributes(s *observe.CallStart, e *endpoint) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 16)
	attrs = append(attrs,
		keyMethod.String(methodCallTool),
		keyOperation.String(executeTool),
		keyTool.String(clip(s.Tool)),
		keyServer.String(s.Server),
		keySafety.String(s.Safety),
	)
	attrs = appendText(attrs, keyProtocolVersion, s.ProtocolVersion)
	attrs = appendText(attrs, keySessionID, s.SessionID)
	return e.append(attrs)
}

// end tells what the call came to; r is nil where a panic ended it.
func (c *callSpan) end(r *observe.Record) {
	if c.own {
		defer c.End()
	}
	switch {
	case !c.IsRecording():
	case r == nil:
		c.fail(other, "panic")
	default:
		f := callFate(r)
		c.SetAttributes(c.endpoint.appendVersion(callAttributes(r, &f), c.httpVersion)...)
		if e := f.errorType(); e != "" {
			c.fail(e, f.message)
		}
	}
}

// fail says that the call failed. The status of the agent's span is the agent's.
func (c *callSpan) fail(errorType, message string) {
	c.SetAttributes(keyErrorType.String(errorType))
	if c.own {
		c.SetStatus(codes.Error, message)
	}
}

func (t *telemetry) attemptStarted(ctx context.Context, s observe.AttemptStart) (context.Context, map[string]string, func(*observe.AttemptEnd)) {
	call, _ := ctx.Value(callSpanKey{}).(*callSpan)
	ctx, span := t.tracer.Start(ctx, spanAttempt, trace.WithAttributes(keyNumber.Int(s.Number)))
	if span.IsRecording() {
		for _, w := range s.Waits {
			span.AddEvent(eventWait, trace.WithAttributes(keyWaitReason.String(string(w.For)), keyWaited.Float64(w.Ms/1000)))
		}
	}
	return ctx, t.inject(ctx, s.Meta), func(a *observe.AttemptEnd) {
		if call != nil && a != nil && a.HTTPVersion != "" {
			call.httpVersion = a.HTTPVersion
		}
		endAttempt(span, a)
	}
}

func endAttempt(span trace.Span, a *observe.AttemptEnd) {
	defer span.End()
	switch {
	case !span.IsRecording():
	case a == nil:
		span.SetAttributes(keyErrorType.String(other))
		span.SetStatus(codes.Error, "panic")
	default:
		f := attemptFate(a)
		attrs := attemptAttributes(a, &f)
		if e := f.errorType(); e != "" {
			attrs = append(attrs, keyErrorType.String(e))
			span.SetStatus(codes.Error, f.message)
		}
		span.SetAttributes(attrs...)
	}
}

func appendText(attrs []attribute.KeyValue, key attribute.Key, value string) []attribute.KeyValue {
	if value == "" {
		return attrs
	}
	return append(attrs, key.String(value))
}

// maxText bounds what models and servers name, in bytes.
const maxText = 128

func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	return observe.Redact(s, maxText)
}
