package otelobserve

import (
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/mcpconv"
)

// The names are those of the last Go semconv package that has them.
func TestConventionNames(t *testing.T) {
	for ours, theirs := range map[attribute.Key]attribute.Key{
		keyMethod:          semconv.McpMethodNameKey,
		keyProtocolVersion: semconv.McpProtocolVersionKey,
		keySessionID:       semconv.McpSessionIDKey,
		keyTool:            semconv.GenAIToolNameKey,
		keyOperation:       semconv.GenAIOperationNameKey,
		keyRequestID:       semconv.JSONRPCRequestIDKey,
		keyRPCStatus:       semconv.RPCResponseStatusCodeKey,
		keyErrorType:       semconv.ErrorTypeKey,
		keyHTTPStatus:      semconv.HTTPResponseStatusCodeKey,
		keyNetTransport:    semconv.NetworkTransportKey,
		keyNetProtocol:     semconv.NetworkProtocolNameKey,
		keyNetVersion:      semconv.NetworkProtocolVersionKey,
		keyServerAddress:   semconv.ServerAddressKey,
		keyServerPort:      semconv.ServerPortKey,
	} {
		if ours != theirs {
			t.Errorf("%s, want %s", ours, theirs)
		}
	}
	for ours, theirs := range map[string]string{
		methodCallTool:  semconv.McpMethodNameToolsCall.Value.AsString(),
		executeTool:     semconv.GenAIOperationNameExecuteTool.Value.AsString(),
		other:           semconv.ErrorTypeOther.Value.AsString(),
		metricOperation: mcpconv.ClientOperationDuration{}.Name(),
		metricSession:   mcpconv.ClientSessionDuration{}.Name(),
	} {
		if ours != theirs {
			t.Errorf("%s, want %s", ours, theirs)
		}
	}
	if (mcpconv.ClientOperationDuration{}).Unit() != "s" || (mcpconv.ClientSessionDuration{}).Unit() != "s" {
		t.Error("the conventions no longer measure in seconds")
	}
}

// What no package of names holds is as docs/gen-ai/mcp.md of
// open-telemetry/semantic-conventions-genai v0.1.0 has it.
func TestConventionValues(t *testing.T) {
	if !slices.Equal(durationBounds, []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}) {
		t.Errorf("boundaries %v", durationBounds)
	}
	if toolError != "tool_error" || metaTraceParent != "traceparent" || metaTraceState != "tracestate" || metaBaggage != "baggage" {
		t.Error("a name was changed")
	}
}
