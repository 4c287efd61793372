// Package idempotency sees to it that one decision to act has at most one effect,
// and says so honestly where that cannot be known.
//
// The words:
//
//   - An intent is one decision to act ([WithIntent]). A call without an intent is
//     an intent of its own.
//   - A principal is on whose behalf a call is made ([WithPrincipal]). Nothing
//     crosses principals or servers.
//   - A key ([DeriveKey], [NewKey]) travels with a call and lets a server recognise
//     a repeat of it. [RoundKey] gives each round of a call its own.
//   - A [Fingerprint] says what a call asks for. It lets us recognise an equal call
//     where nobody named it.
//
// A [Ledger] remembers calls in a [Store]: [Ledger.Begin] before the first byte
// leaves, [Ticket.Settle] when the outcome is known. What it answers:
//
//	earlier call             the same intent or key     an equal call, in the window
//	-----------------------  -------------------------  ----------------------------
//	none                     send                       send
//	running in this process  wait for its answer        send: another intent
//	failed (did not run)     send, same key             send
//	completed                its answer, nothing sent   send: another intent
//	unknown, or left behind  unsafe: refuse             unsafe: refuse
//	  by a dead process      keyed: send, same key      keyed: send, adopted key
//
// [Deduplicate] is the other end: a middleware for servers on the same SDK that
// executes a call once for each key.
//
// Stores are [Memory], the default, and the module idempotency/boltstore, one file
// that outlives the process; package storetest holds what every store must pass.
package idempotency
