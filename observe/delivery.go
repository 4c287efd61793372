package observe

// Delivery says what the evidence tells about execution. It is what a decision
// to repeat rests on, and it never claims more than was seen.
type Delivery string

const (
	// NotSent: proven that no byte of the request reached a server.
	NotSent Delivery = "not_sent"
	// Refused: an answer whose meaning is that the tool was not run.
	Refused Delivery = "refused"
	// Answered: one complete, valid JSON-RPC response arrived. An error among
	// them says nothing about effects.
	Answered Delivery = "answered"
	// Unknown: everything else. The tool may have run.
	Unknown Delivery = "unknown"
)

// gravity orders deliveries: what may have had an effect outweighs what cannot.
func (d Delivery) gravity() int {
	switch d {
	case NotSent:
		return 1
	case Refused:
		return 2
	case Answered:
		return 3
	case Unknown:
		return 4
	}
	return 0
}

// Gravest returns the graver of two deliveries: unknown before answered, refused
// and not_sent. The zero Delivery weighs nothing.
func Gravest(a, b Delivery) Delivery {
	if b.gravity() > a.gravity() {
		return b
	}
	return a
}

// StatusDelivery says what an HTTP status alone tells about execution.
//
// Refused are the statuses that RFC 9110, RFC 6585 and RFC 8470 give to a
// request that was not acted upon. 408, 409, 410, 422, 423, 424 and 499 can
// follow execution; so can 5xx, which an intermediary may write after the
// server has run the tool. A 2xx says nothing by itself: see [Classify].
func StatusDelivery(status int) Delivery {
	switch {
	case status == 307, status == 308,
		status >= 400 && status <= 407,
		status == 411,
		status >= 413 && status <= 415,
		status == 417, status == 421, status == 425, status == 428,
		status == 429, status == 431, status == 451, status == 511:
		return Refused
	}
	return Unknown
}

// CodeRefused reports whether a JSON-RPC error code means that the request was
// not executed: parse error, invalid request, method not found (JSON-RPC 2.0),
// header mismatch, missing client capability and unsupported protocol version
// (MCP 2026-07-28). A server's other codes, -32602 and -32603 among them, may
// all come after an effect.
func CodeRefused(code int64) bool {
	switch code {
	case -32700, -32600, -32601, -32020, -32021, -32022:
		return true
	}
	return false
}
