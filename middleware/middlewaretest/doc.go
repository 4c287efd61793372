// Package middlewaretest is an MCP server that misbehaves on purpose, for tests
// of MCP clients. It uses nothing but the standard library: it writes what it
// wants on the wire, and does not share a mistake with any SDK.
//
//	s := middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125})
//	defer s.Close()
//	s.Script("pay", middlewaretest.Status(503).Executed(), middlewaretest.Reset())
//	// ... call pay on s.URL() ...
//	if n := s.Effects("pay"); n > 1 {
//		t.Errorf("paid %d times", n)
//	}
//
// # The honest server
//
// Without faults a [Server] is a good one: it speaks 2026-07-28 (server/discover,
// no session, multi round-trip requests) or 2025-11-25 (initialize, with or without
// sessions), answers in JSON or as an event stream, over HTTP/1.1 or HTTP/2; see
// [Options]. It offers these tools, and answers to every other name too:
//
//	read_weather  reads (readOnlyHint)
//	set_label     can be repeated (idempotentHint)
//	pay           has an effect each time
//	pay_keyed     has one effect for each idempotency key
//	send_mail     has an effect each time
//	slow          has its effect after a number of milliseconds (argument ms)
//	big           answers with a text of so many bytes (argument size)
//	fail          ends with isError
//	ask           asks the user first
//	progress      reports progress (argument steps), if the client wants it
//
// A tool that runs does not notice that its client has gone, as most do not.
//
// # The ledger
//
// The server counts the calls that arrived whole ([Server.Posts]) and the
// executions ([Server.Effects]), which is what a client must be judged by, and
// keeps an [Entry] of each request ([Server.Entries]).
//
// # Faults
//
// A [Fault] says what goes on the wire in place of the honest answer, and whether
// the tool runs before, after, or not at all. [Faults] is the catalogue: one of
// each kind, with the outcome and the delivery that a client which tells the truth
// reports, in the words of package observe. Files under testdata show each of
// them byte for byte. [Server.Script] makes the next calls of a tool meet faults,
// [Server.Always] all of them; [Server.ScriptMethod] and [Server.ScriptPOSTs]
// reach other requests.
//
// # Plants
//
// [Plants] is a corpus of secrets, each in one place where a server can put one: drive
// them through a client, and look with [Plant.Shows] for what it lets through into
// records, logs, traces and the texts of errors.
//
// # Scenarios
//
// A [Scenario] is a fault of a whole session that can be chosen by name
// ([Server.Select]); the program example/kitchen serves them to clients in any
// language.
package middlewaretest
