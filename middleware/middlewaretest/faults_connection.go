package middlewaretest

import "time"

// Reset is a TCP reset without a byte of an answer.
func Reset() Fault { return Fault{Name: "reset", Ending: EndReset} }

// Close is a closed TCP connection without a byte of an answer.
func Close() Fault { return Fault{Name: "close", Ending: EndClose} }

// Hang is silence, from the request on.
func Hang() Fault { return Fault{Name: "hang", Ending: EndSilent, Needs: NeedsDeadline} }

// Late is the honest answer after a delay. The tool runs after the delay.
func Late(d time.Duration) Fault { return Fault{Name: "late", Delay: d, Execute: After} }

// connectionFaults are those of the catalogue in which the connection breaks, or
// in which nothing comes.
func connectionFaults() []Fault {
	half := `{"jsonrpc":"2.0","id":%id%,"result":{"content":[`
	cut := func(name string, f Fault) Fault {
		f.Name, f.Status, f.Execute = name, 200, Before
		return f.expect("STREAM_INCOMPLETE", "unknown")
	}
	reset := Reset().expect("NETWORK_ERROR", "unknown")
	closed := Close().expect("NETWORK_ERROR", "unknown")
	hang := Hang().expect("TIMEOUT", "unknown")
	silent := cut("silent-after-headers", Fault{Missing: 100, Ending: EndSilent, Needs: NeedsDeadline}).expect("TIMEOUT", "unknown")
	late := Late(100*time.Millisecond).expect("TOOL_SUCCESS", "answered")
	all := []Fault{
		reset, reset.Executed(), reset.ExecutedLater(),
		closed, closed.Executed(), closed.ExecutedLater(),
		hang, hang.Executed(),
		late,
		cut("reset-after-headers", Fault{Missing: 100, Ending: EndReset}),
		cut("close-after-headers", Fault{Missing: 100, Ending: EndClose}),
		asNever(cut("close-after-headers", Fault{Missing: 100, Ending: EndClose})),
		cut("cut-body", Fault{Body: half, Missing: 100, Ending: EndClose}),
		cut("reset-body", Fault{Body: half, Missing: 100, Ending: EndReset}),
		cut("cut-chunked", Fault{Body: half, Chunked: true, Ending: EndClose}),
		silent, asNever(silent),
		cut("silent-in-body", Fault{Body: half, Missing: 100, Ending: EndSilent, Needs: NeedsDeadline}).expect("TIMEOUT", "unknown"),
	}
	slow := cut("slow-body", Fault{Body: "%response%", Pace: 2 * time.Millisecond}).expect("TOOL_SUCCESS", "answered")
	stale := cut("close-after-answer", Fault{Body: "%response%", Whole: true, Ending: EndClose, Needs: NeedsHTTP1}).
		expect("TOOL_SUCCESS", "answered").rests("The next call may be written into a connection that is closed.")
	whole := cut("cut-after-whole-json", Fault{Body: "%response%", Missing: 1, Ending: EndClose})
	whole.Rests = "HTTP says that the body is not complete, whatever it looks like."
	return append(append(all, slow, whole, stale), http2Faults()...)
}

// http2Faults are the ways of HTTP/2 to end a stream.
func http2Faults() []Fault {
	protocol := Fault{Name: "h2-protocol-error", Ending: EndProtocolError, Needs: NeedsHTTP2}.
		expect("NETWORK_ERROR", "unknown").rests("net/http sends the POST again if it can.")
	refused := Fault{Name: "h2-refused-stream", Ending: EndRefusedStream, Needs: NeedsHTTP2}.expect("NETWORK_ERROR", "not_sent").
		rests("RFC 9113, section 8.7: the request was not processed. net/http sends it again if it can.")
	goAway := Fault{Name: "h2-goaway", Ending: EndGoAway, Needs: NeedsHTTP2}.expect("NETWORK_ERROR", "not_sent").rests(refused.Rests)
	return []Fault{protocol, protocol.Executed(), refused, goAway}
}
