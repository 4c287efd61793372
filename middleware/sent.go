package middleware

import (
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"regexp"
	"sync"
)

// sendProof collects what proves that no byte of a request reached a server.
//
// A connection that was asked for and never obtained proves it; so does a
// connection of ours on which not a byte moved since. Silence of the trace proves
// nothing: a base transport need not call it. WroteHeaders and WroteRequest prove
// nothing either: they fire for a stale connection on which no byte left
// (net/http, Go 1.26).
type sendProof struct {
	watch *watch
	// lookOnly leaves connections alone: without a seal the proof holds for now.
	lookOnly bool

	mu      sync.Mutex
	asked   bool
	got     int
	headers int // how often headers were written: more than once is a replay
	conn    *countedConn
	mark    int64
	shared  bool // HTTP/2: other streams move the same counter
}

func (p *sendProof) trace() *httptrace.ClientTrace {
	t := &httptrace.ClientTrace{
		GetConn:      func(string) { p.mu.Lock(); p.asked = true; p.mu.Unlock(); p.watch.connecting() },
		GotConn:      p.gotConn,
		WroteHeaders: func() { p.mu.Lock(); p.headers++; p.mu.Unlock() },
	}
	if p.watch.limits.Headers > 0 {
		t.WroteRequest = func(httptrace.WroteRequestInfo) { p.watch.waiting() }
	}
	return t
}

func (p *sendProof) gotConn(info httptrace.GotConnInfo) {
	p.mu.Lock()
	p.got++
	p.conn, p.shared = counted(info.Conn)
	if p.conn != nil {
		p.mark = p.conn.written()
	}
	p.mu.Unlock()
	p.watch.connected()
}

// replays is how often the layer below wrote the request again.
func (p *sendProof) replays() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.headers-1)
}

// notSent reports whether err, returned by the base transport, comes with proof
// that nothing was sent.
func (p *sendProof) notSent(err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.asked:
		return false
	case p.got == 0:
		return true
	case p.got > 1:
		return false
	case p.conn != nil && !p.shared && p.lookOnly:
		return p.conn.written() == p.mark
	case p.conn != nil && !p.shared:
		return p.conn.seal(p.mark)
	}
	return streamRefused(err)
}

// refusedText matches the errors of net/http (Go 1.26) with which a server says that
// it has not processed a stream: RST_STREAM with REFUSED_STREAM, and GOAWAY below the
// stream's number (RFC 9113, sections 6.8 and 8.7). net/http does not export the
// types. The whole text must match: the error of another GOAWAY quotes the peer's
// own code and words, which may be these. The texts are pinned by a test.
var refusedText = regexp.MustCompile(`^(?:http2: Transport: cannot retry err \[)?` +
	`(?:stream error: stream ID \d+; REFUSED_STREAM; received from peer|http2: Transport received Server's graceful shutdown GOAWAY)` +
	`(?:\] after Request\.Body was written; define Request\.GetBody to avoid this error)?$`)

func streamRefused(err error) bool { return err != nil && refusedText.MatchString(err.Error()) }

// counted finds our connection beneath conn, and says whether several requests
// share it.
func counted(conn net.Conn) (c *countedConn, shared bool) {
	if t, ok := conn.(*tls.Conn); ok {
		shared = t.ConnectionState().NegotiatedProtocol == "h2"
		conn = t.NetConn()
	}
	c, _ = conn.(*countedConn)
	return c, shared
}
