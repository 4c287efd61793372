// Package observe says what happened to a tool call.
//
// It reads the wire ([Classify] for one HTTP answer, [EventReader] for an SSE
// body), names what it saw in a closed vocabulary ([Outcome], [Layer],
// [Delivery], [Deviation]), puts the facts of a whole call into a [Record],
// and reports a call without a usable answer as an [Error].
//
// The classifier and the judgement are pure: bytes and facts in, a verdict
// out; no clock, no I/O, no goroutine.
package observe
