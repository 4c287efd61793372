package otelobserve

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// readable is what the SDK's recording spans let be read (sdk/trace.ReadOnlySpan,
// v1.47.0); the API's spans let nothing be read.
type readable interface {
	Name() string
	Attributes() []attribute.KeyValue
}

// toolSpan returns the agent's own span for the call of this tool, or nil. It must say
// so itself: the operation execute_tool, and the tool's name. One that has an MCP
// method already tells of another call: of ours, in whose context a handler of the host
// calls in turn, or an earlier one.
func toolSpan(ctx context.Context, tool string) trace.Span {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return nil
	}
	r, ok := span.(readable)
	if !ok {
		return nil
	}
	var operation, name string
	for _, a := range r.Attributes() {
		switch a.Key {
		case keyOperation:
			operation = a.Value.AsString()
		case keyTool:
			name = a.Value.AsString()
		case keyMethod:
			return nil
		}
	}
	if operation != executeTool {
		return nil
	}
	if name == "" {
		name, _ = strings.CutPrefix(r.Name(), executeTool+" ")
	}
	if name != tool {
		return nil
	}
	return span
}
