// Package surecall is the root of a library that makes the tool calls of an
// MCP client trustworthy. It holds no code: the parts are
//
//   - [github.com/surecall/surecall/observe]: what happened. Reading the wire,
//     outcomes, deliveries, the record of a call. Its neighbour
//     observe/otelobserve, a module of its own, makes OpenTelemetry spans and
//     metrics of calls.
//   - [github.com/surecall/surecall/policy]: what to do about it. Safety
//     classes, rules per tool, the pure decision.
//   - [github.com/surecall/surecall/idempotency]: intents, keys, fingerprints.
//   - [github.com/surecall/surecall/middleware]: the RoundTripper below the
//     official Go SDK's client, the middlewares above it, and the stack that
//     composes them. Start here.
//   - [github.com/surecall/surecall/middleware/middlewaretest]: a server that
//     misbehaves on purpose, for tests.
//
// Imports point one way: middleware to policy to observe, and middleware to
// idempotency.
package surecall
