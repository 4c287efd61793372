// Package otelobserve makes OpenTelemetry spans and metrics of tool calls.
//
//	observer, err := otelobserve.New(nil) // the global providers
//	stack := middleware.New(&middleware.Options{Observer: observer})
//
// The module needs OpenTelemetry's API alone; the SDK, its exporters and their
// settings are the host's.
//
// # Spans
//
// Each tools/call is a span "tools/call {tool}" of kind CLIENT, open while the call
// is under way, so that the host's own logs and spans within find it. Each attempt is
// a child of it, with its wait as an event. Where the agent's own span for this very
// tool call is open (gen_ai.operation.name is "execute_tool"), the call's attributes
// are added to that one instead, which is neither ended nor given a status.
//
// The trace context of the attempt travels in params._meta (traceparent, tracestate,
// baggage), unless the caller has put its own there. [Received] lets a server built on
// the same SDK take it up.
//
// # What never appears
//
// Arguments, results, header values, error texts that have not been redacted. Values
// of labels are bounded: the names of tools and servers, and JSON-RPC codes, beyond
// the first ones share the name "_OTHER".
//
// # When exporters fail
//
// A call hands ended spans and measurements to the SDK and does not wait. The SDK's
// batching span processor and periodic reader export on goroutines of their own and
// drop what they cannot deliver; a span processor that exports synchronously
// (trace.WithSyncer) makes calls wait, and is for tests.
//
// The names follow github.com/open-telemetry/semantic-conventions-genai, which is in
// development and may change them. docs/telemetry.md shows a trace and all metrics.
package otelobserve
