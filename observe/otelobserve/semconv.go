package otelobserve

import "go.opentelemetry.io/otel/attribute"

// The names of OpenTelemetry's conventions that are used here. Those for MCP and
// GenAI are from github.com/open-telemetry/semantic-conventions-genai
// (docs/gen-ai/mcp.md, v0.1.0, status Development); the Go semconv package has had
// them in v1.39 to v1.41 alone, which a test compares with these.
const (
	keyMethod          = attribute.Key("mcp.method.name")
	keyProtocolVersion = attribute.Key("mcp.protocol.version")
	keySessionID       = attribute.Key("mcp.session.id")
	keyTool            = attribute.Key("gen_ai.tool.name")
	keyOperation       = attribute.Key("gen_ai.operation.name")
	keyRequestID       = attribute.Key("jsonrpc.request.id")
	keyRPCStatus       = attribute.Key("rpc.response.status_code")
	keyErrorType       = attribute.Key("error.type")
	keyHTTPStatus      = attribute.Key("http.response.status_code")
	keyNetTransport    = attribute.Key("network.transport")
	keyNetProtocol     = attribute.Key("network.protocol.name")
	keyNetVersion      = attribute.Key("network.protocol.version")
	keyServerAddress   = attribute.Key("server.address")
	keyServerPort      = attribute.Key("server.port")
)

const (
	methodCallTool = "tools/call"
	executeTool    = "execute_tool" // gen_ai.operation.name of a tool call
	toolError      = "tool_error"   // error.type of a result with isError
	other          = "_OTHER"       // error.type of what has no name of its own
)

const (
	metricOperation = "mcp.client.operation.duration"
	metricSession   = "mcp.client.session.duration"
)

// durationBounds are the bucket boundaries, in seconds, that the conventions
// recommend for both.
var durationBounds = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}

// The names of the trace context in params._meta: bare ones, which MCP allows for
// these three alone (SEP-414).
const (
	metaTraceParent = "traceparent"
	metaTraceState  = "tracestate"
	metaBaggage     = "baggage"
)

// Our own names, for what the conventions have none.
const (
	keyServer     = attribute.Key("surecall.server") // as records name it
	keySafety     = attribute.Key("surecall.safety")
	keyOutcome    = attribute.Key("surecall.outcome")
	keyDelivery   = attribute.Key("surecall.delivery")
	keyDecision   = attribute.Key("surecall.decision")
	keyReason     = attribute.Key("surecall.decision.reason")
	keyAttempts   = attribute.Key("surecall.attempts")
	keyNumber     = attribute.Key("surecall.attempt.number")
	keyPosts      = attribute.Key("surecall.attempt.posts")
	keyOrigin     = attribute.Key("surecall.repeat.origin")
	keyRepeated   = attribute.Key("surecall.repeat.reason")
	keyWaitReason = attribute.Key("surecall.wait.reason")
	keyWaited     = attribute.Key("surecall.wait.duration") // seconds
	keyFrom       = attribute.Key("surecall.breaker.from")
	keyTo         = attribute.Key("surecall.breaker.to")
	keyStep       = attribute.Key("surecall.ledger.step")
	keyKind       = attribute.Key("surecall.ledger.kind")
	keySettled    = attribute.Key("surecall.ledger.settled")

	spanAttempt = "surecall.attempt"
	eventWait   = "surecall.wait"

	metricAttempts = "surecall.client.attempts"
	metricRepeats  = "surecall.client.repeats"
	metricWaits    = "surecall.client.wait.duration"
	metricBreaker  = "surecall.client.breaker.changes"
	metricLedger   = "surecall.client.ledger.results"
	metricUnknown  = "surecall.client.unknown_outcomes"
)
