package middleware

import (
	"net/http"

	"github.com/surecall/surecall/observe"
)

// weigh corrects a verdict on an answer that may say that the session is lost.
func (p *post) weigh(v *observe.Verdict, body []byte) {
	s := p.session
	if s == nil || v.Outcome.Usable() {
		return
	}
	suspicious, plain := p.suspicious(v, body)
	if !suspicious {
		return
	}
	p.watch.hold() // the server has said its word; only the attempt's limit goes on
	found := s.examine(p.watch.ctx, p.request, p.lease, plain)
	switch {
	case found == alive && v.Outcome == observe.SessionLost:
		// Whoever wrote it does not know what the server knows, and proves nothing.
		v.Outcome, v.Delivery = observe.HTTPError, observe.Unknown
		v.Reason = "404 in a session that the server knows"
	case found == unclear && v.Outcome == observe.SessionLost:
		unsure(v)
	case found == gone:
		lose(v, "the server does not know the session, and it was not renewed")
	case found == renewed:
		lose(v, "the server did not know the session; it has been renewed")
	}
	if v.Outcome == observe.SessionLost {
		p.update(func(o *observe.Post) { o.Healed = found == renewed })
	}
}

// unsure says that nobody could find out whether the session is lost.
func unsure(v *observe.Verdict) {
	v.Delivery, v.Reason = observe.Unknown, "404 in a session, and it could not be found out whether that is lost"
}

// lose says that the session is lost. What the answer said of execution stays: a 503
// proves nothing, whatever became of the session.
func lose(v *observe.Verdict, reason string) {
	v.Outcome, v.Reason = observe.SessionLost, reason
	if v.Delivery != observe.Refused {
		v.Delivery = observe.Unknown
	}
}

// Codes with which servers speak of sessions.
const (
	codeInvalidRequest  = -32600
	codeBadRequest      = -32000
	codeSessionNotFound = -32001
)

// suspicious reports whether an answer may say that the session is lost, and whether
// it says so plainly. Servers say it by 404 (MCP 2025-11-25, session management), by
// 503, or by an error of their own choice, in a body of any status.
func (p *post) suspicious(v *observe.Verdict, body []byte) (suspicious, plain bool) {
	if v.Outcome == observe.SessionLost || p.session.losesBy(p.status, v.Error, body) {
		return true, true
	}
	switch {
	case p.envelope.method == "ping":
		return false, false // asking the same again would tell no more
	case p.status == http.StatusServiceUnavailable:
		return true, false
	case v.Error == nil:
		return false, false
	}
	switch v.Error.Code {
	case codeInvalidRequest, codeBadRequest, codeSessionNotFound:
		return true, false
	}
	return v.Outcome == observe.InvalidEnvelope && !v.EchoedID, false
}

// losesBy asks the host whether this server says so that a session is lost.
func (s *httpSession) losesBy(status int, rpc *observe.RPCError, body []byte) bool {
	ask := s.transport.core.opts.SessionLost
	return ask != nil && ask(&SessionAnswer{Server: s.server, Status: status, RPC: rpc, Body: body[:min(len(body), errorBodyLimit)]})
}

// A SessionAnswer is an answer without a result, to a request that carried a session
// id.
type SessionAnswer struct {
	Server string // what the host calls it
	Status int    // of HTTP
	// RPC is the JSON-RPC error in the body, or nil.
	RPC *observe.RPCError
	// Body is the beginning of the body, or the data of the event. It must not be
	// changed or kept.
	Body []byte
}
