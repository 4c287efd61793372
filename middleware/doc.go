// Package middleware stands on both sides of the official Go SDK's client: an
// http.RoundTripper below it and a chain of client middlewares above it.
//
// Most hosts need two statements:
//
//	stack := middleware.New(&middleware.Options{Policy: policy})
//	transport := &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: stack.HTTPClient(nil)}
//	client.AddSendingMiddleware(stack.Middleware()...)
//
// A call on its way down and up; each line is an ordinary [mcp.Middleware] with
// the file of its name, usable alone:
//
//	session.CallTool
//	  Record      opens the call's record; closes and emits it on the way up
//	  Surface     on the way up: an error for the caller, or a text for the model
//	  Key         mints or adopts the idempotency key, above the loop
//	  Retry       the only loop; asks policy.Tool.Decide after every attempt
//	  Admit       gate, breaker, limiter; feeds the breaker from the outcome
//	  Attempt     one attempt: evidence + (result, error) -> outcome, delivery
//	    SDK: multi-round-trip loop -> JSON-RPC -> http.Client
//	      Transport   per POST: evidence, session guard, limits; repeats nothing
//	        base transport
//
// A POST on its way through the Transport, file by file: request (what is it),
// transport (send a clone, with trace hooks from sent and conn, and limits by
// alarm), then answer (a JSON document, or a refusal), stream and resume (events),
// or notify (nobody waits); synthetic makes the errors that take the place of an
// answer. The limits stand still for a server's own request (asked), progress extends
// them (progress), and where one runs out the server is told (cancel). What it saw is a
// post, kept in the evidence of its attempt.
//
// What an answer says about coming back is read, and the attempt announced to the server,
// by signals. Each call goes by the policy that it began with (policy); a file that is
// watched (policyfile) takes the place of that for the calls that come.
//
// The rounds of a call run in the SDK, inside one attempt: the Transport admits them
// and gives them their keys (admit, rounds); Attempt waits where a server only puts the
// call off (shedding). Retry resumes at the round that failed, and cures a header
// mismatch (mismatch, paramheader).
//
// Over standard input and output a connection stands in the Transport's place:
//
//	transport := stack.CommandTransport(exec.Command(program))
//
// A request on its way through the connection, file by file: command or stdio (whose
// streams), connection (evidence, limits, round key), outbox (write the line, or take
// it back), lines and incoming (which call does a line answer, and how), inflight (the
// calls that wait).
//
// Sessions (2025-11-25 and earlier) are an affair of the Transport alone: acquaint
// learns one from its handshake, which opening keeps; loss knows the answers that may
// say that it is lost; heal knows whether it is, and under which id requests go out;
// renew is the check and the handshake on the wire; listen is the server's own stream,
// which follows the session.
//
// In shadow mode (Options.Shadow) only Record and Attempt do anything, in shadow.go,
// and the Transport looks on while bytes pass, in shadowwire.go.
//
// What each layer can know, and when:
//
//   - The Transport sees status, headers, bytes and connections, one POST at a
//     time, but not which POSTs make up a call. It writes what it sees into the
//     evidence that Attempt put into the context. Body events come on another
//     goroutine, after RoundTrip has returned.
//   - Attempt sees the result or error of the SDK, which has lost status and
//     headers, calls a cut connection a rejection (code -32005), and may report a
//     dead context although the whole answer had been read. So the evidence is
//     judged first and the error second.
//   - Without HTTP and without a connection of ours (mcp.CommandTransport, in-memory)
//     there is no evidence: the result and the error are all there is.
package middleware
