package otelobserve

import (
	"context"
	"errors"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Received returns a middleware for Server.AddReceivingMiddleware that takes up the
// trace context which a client put into the _meta of a tools/call: the call is a span
// "tools/call {tool}" of kind SERVER beneath the client's, linked to the one that was
// open, if any, such as that of the HTTP request. Only TracerProvider and Propagator
// of the options are used.
//
// Whoever can call the server can name any trace, and fill the baggage.
func Received(opts *Options) mcp.Middleware {
	o := opts.copy()
	tracer := o.TracerProvider.Tracer(scope)
	spans := newNames[string](o.MaxTools)
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			call, ok := req.(*mcp.CallToolRequest)
			if !ok || call.Params == nil {
				return next(ctx, method, req)
			}
			tool := call.Params.Name
			attrs := []attribute.KeyValue{keyMethod.String(method), keyOperation.String(executeTool), keyTool.String(clip(tool))}
			start := []trace.SpanStartOption{
				trace.WithSpanKind(trace.SpanKindServer),
				trace.WithAttributes(appendText(attrs, keyProtocolVersion, clip(call.ProtocolVersion()))...),
			}
			ambient := trace.SpanContextFromContext(ctx)
			ctx = o.Propagator.Extract(ctx, received(call.Params.Meta))
			if ambient.IsValid() && !ambient.Equal(trace.SpanContextFromContext(ctx)) {
				start = append(start, trace.WithLinks(trace.Link{SpanContext: ambient}))
			}
			name := method
			if spans.admit(tool) {
				name += " " + clip(tool)
			}
			ctx, span := tracer.Start(ctx, name, start...)
			defer span.End()
			res, err := next(ctx, method, req)
			if class := serverError(res, err); class != "" {
				span.SetAttributes(keyErrorType.String(class))
				span.SetStatus(codes.Error, "")
			}
			return res, err
		}
	}
}

// serverError is the class of error that a server answers with, or "".
func serverError(res mcp.Result, err error) string {
	var rpc *jsonrpc.Error
	switch {
	case errors.As(err, &rpc):
		return strconv.FormatInt(rpc.Code, 10)
	case err != nil:
		return other
	}
	if tool, ok := res.(*mcp.CallToolResult); ok && tool != nil && tool.IsError {
		return toolError
	}
	return ""
}
