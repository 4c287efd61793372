// Package observe says what happened to a tool call.
//
// It reads the wire ([Classify] for one HTTP answer, [EventReader] for an SSE
// body), names what it saw in a closed vocabulary ([Outcome], [Layer],
// [Delivery], [Deviation]), puts the facts of a whole call into a [Record],
// and reports a call without a usable answer as an [Error]. A [Handler] takes
// records: [Log], [JSONL], [Tee]. A [Redactor] keeps what a call carried, and what
// looks like a credential, out of every text.
//
// The classifier and the judgement are pure: bytes and facts in, a verdict
// out; no clock, no I/O, no goroutine. The only goroutine is that of a [Queue].
package observe
