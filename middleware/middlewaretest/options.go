package middlewaretest

import (
	"net/http"
	"time"
)

// The protocol versions that the server speaks.
const (
	// Version20260728 is stateless: server/discover, no session, multi
	// round-trip requests.
	Version20260728 = "2026-07-28"
	// Version20251125 starts with initialize and may have sessions.
	Version20251125 = "2025-11-25"
)

// Options configure a [Server]. The zero value, and nil, is a stateless
// 2026-07-28 server that answers in JSON over HTTP/1.1.
type Options struct {
	// Version is the protocol version; empty means [Version20260728]. Anything
	// else than the two constants of this package is read as
	// [Version20251125].
	Version string
	// Sessions makes a 2025-11-25 server hand out an Mcp-Session-Id and insist on
	// it. Ignored on 2026-07-28, which has no sessions.
	Sessions bool
	// UnknownSession is how a request of a session that the server does not know is
	// answered; nil means 404 with a text.
	UnknownSession *Fault
	// Stream makes tools/call answer with text/event-stream instead of
	// application/json.
	Stream bool
	// EventIDs gives ids to the events of a streamed answer. On 2025-11-25 a GET
	// with Last-Event-ID resumes such a stream; on 2026-07-28, which has no
	// resumption, it gets 405.
	EventIDs bool
	// StandaloneSSE makes a 2025-11-25 server answer GET with a stream for its own
	// messages; otherwise GET gets 405.
	StandaloneSSE bool
	// HTTP2 serves HTTP/2 over TLS, with a certificate made for this server; use
	// [Server.Client] or [Server.TLS] to reach it. Connection faults then strike
	// the stream (RST_STREAM) where they would strike the TCP connection.
	HTTP2 bool

	// Tools are served beside the built-in ones; a tool of the same name replaces
	// a built-in one.
	Tools []Tool
	// ListTTL is the time for which a 2026-07-28 client may keep the list of
	// tools. 0 means that it is stale at once.
	ListTTL time.Duration

	// MaxEntries bounds the entries that the ledger keeps; beyond it the oldest
	// go. 0 means 100,000. The counts of the ledger are not affected.
	MaxEntries int
	// MaxRequest bounds the body of a request, in bytes; beyond it the answer is
	// 413. 0 means 64 MiB.
	MaxRequest int64

	// Authorize, if set, sees every request, its body already read, before any
	// answer, and answers those that it does not let pass. It must be safe for concurrent
	// use.
	Authorize func(http.ResponseWriter, *http.Request) bool
}

// normalized returns a copy without zero values that stand for defaults.
func (o *Options) normalized() Options {
	var n Options
	if o != nil {
		n = *o
	}
	if n.Version == "" {
		n.Version = Version20260728
	}
	if n.Version != Version20260728 {
		n.Version = Version20251125
	}
	if n.stateless() {
		n.Sessions, n.StandaloneSSE = false, false
	}
	if n.MaxEntries <= 0 {
		n.MaxEntries = 100_000
	}
	if n.MaxRequest <= 0 {
		n.MaxRequest = 64 << 20
	}
	return n
}

func (o *Options) stateless() bool { return o.Version == Version20260728 }
