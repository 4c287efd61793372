package middleware

import (
	"errors"
	"net/http"
	"net/http/httptrace"
	"strings"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

const (
	methodCallTool = "tools/call"

	headerSessionID       = "Mcp-Session-Id"
	headerProtocolVersion = "Mcp-Protocol-Version"
	headerLastEventID     = "Last-Event-ID"

	// sessionlessVersion is the first protocol version without sessions, without
	// resumption and without the server's own requests (MCP 2026-07-28).
	sessionlessVersion = "2026-07-28"
)

// A Transport is the http.RoundTripper below the SDK. For each POST it writes what
// it sees into the evidence of the attempt, and it keeps an unusable answer from
// ending the session or hanging the call: such an answer becomes an *observe.Error
// (or, on a stream, an error event with the call's id).
//
// It guards every POST but the handshake (initialize, server/discover), whose
// failures the SDK handles, and subscriptions/listen. The server's own stream (GET) it
// keeps open; everything that is not JSON-RPC passes untouched.
//
// It renews a session that the server has lost, where the policy allows it: the SDK
// goes on to see the id that it knows. It does so for the sessions that were used
// last, a few thousand.
//
// Where a limit of the policy runs out it tells the server, as far as the protocol
// version asks for that.
//
// It never sends a request of the SDK's twice, and for a tools/call it lets nothing below do
// so: net/http would repeat a POST with an idempotency header on a dead
// connection, and on HTTP/2 any POST after RST_STREAM(PROTOCOL_ERROR), as long as
// the request can rewind its body (Go 1.26). GetBody is therefore cleared on the
// clone that is sent. The harmless cases come back as errors that prove not_sent.
//
// Where it departs from the contract of http.RoundTripper: a response that was
// received is turned into an error where the SDK would end the session on it or
// drop what it says; 401 and 403, which an authorization handler must see, keep
// status and headers and get another body. Everything else holds: the request is
// not changed, its body is closed, and concurrent use is fine.
type Transport struct {
	base  http.RoundTripper
	core  *core
	alarm alarm // for the limits of all its POSTs

	sessions registry[target, *httpSession] // by endpoint and the id that the SDK knows
	requests serverRequests
}

// NewTransport returns a Transport over base. A nil base is a transport like
// http.DefaultTransport that also counts bytes on its connections, which proves
// more calls unsent.
func NewTransport(base http.RoundTripper, opts *Options) *Transport {
	return newCore(opts).transport(base)
}

func (c *core) transport(base http.RoundTripper) *Transport {
	if base == nil {
		base = newBase()
	}
	return &Transport{base: base, core: c}
}

// CloseIdleConnections closes the idle connections of the base transport.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip sends one request. For a guarded POST without a usable answer the
// error is an *observe.Error.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	switch {
	case t.core.opts.Shadow:
		return t.shadow(req)
	case isListening(req):
		return t.listen(req)
	case !mayCarryMessage(req):
		return t.pass(req)
	}
	req, err := rewindable(req)
	if err != nil {
		return nil, err
	}
	e, ok := readEnvelope(req)
	switch {
	case !ok:
		return t.pass(req)
	case e.kind != observe.KindRequest:
		if e.kind == observe.KindResponse {
			t.requests.answer(newServerRequest(req, e.id))
		}
		return t.notify(req)
	case e.method == "subscriptions/listen":
		return t.base.RoundTrip(req)
	case isHandshake(e.method):
		return t.handshake(req, e)
	}
	return t.call(req, e)
}

// pass lets a request by that is not a JSON-RPC message, or not one that we can read.
func (t *Transport) pass(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost {
		blind(req.Context())
	}
	s := t.session(req)
	if s != nil && req.Method == http.MethodDelete {
		defer t.forget(req, s)
		return t.follow(s.under(req, s.current()))
	}
	return t.base.RoundTrip(s.under(req, s.current()))
}

// isHandshake reports whether a method opens a session.
func isHandshake(method string) bool { return method == "initialize" || method == "server/discover" }

// call sends a request and guards its answer.
func (t *Transport) call(req *http.Request, e envelope) (*http.Response, error) {
	p := t.open(req, e)
	if err := p.enter(t.session(req)); err != nil {
		return nil, err
	}
	if err := p.admit(); err != nil {
		return nil, err
	}
	resp, err := t.send(p)
	if err != nil {
		return nil, err
	}
	return t.answer(p, resp)
}

// handshake sends a request whose answer the SDK judges itself; what is seen of it
// serves the bounded repeat of reading methods alone.
func (t *Transport) handshake(req *http.Request, e envelope) (*http.Response, error) {
	if h := handshakeFrom(req.Context()); h != nil {
		h.reach(askedURL(req))
	}
	p := t.open(req, e)
	resp, err := t.send(p)
	if err != nil {
		return nil, err
	}
	p.look(resp)
	p.heedHead(resp.Header)
	p.conclude(handshakeVerdict(resp.StatusCode))
	t.acquaint(p, resp)
	resp.Body = &watchedBody{resp.Body, p}
	return resp, nil
}

// handshakeVerdict judges a handshake by its status alone.
func handshakeVerdict(status int) observe.Verdict {
	if status/100 == 2 {
		return observe.Verdict{Outcome: observe.ToolSuccess, Delivery: observe.Answered}
	}
	return observe.Classify(observe.Answer{Status: status}, nil)
}

// open begins the evidence of a POST: the attempt's, or its own where no
// middleware is in use.
func (t *Transport) open(req *http.Request, e envelope) *post {
	p := t.post(req, e)
	t.begin(p, nil)
	return p
}

func (t *Transport) post(req *http.Request, e envelope) *post {
	return &post{
		transport: t,
		envelope:  e,
		ctx:       req.Context(),
		version:   req.Header.Get(headerProtocolVersion),
		body:      req.GetBody,
		request:   req,
	}
}

// begin joins the POST to its evidence. The limits are those of its tool, unless others
// are given.
func (t *Transport) begin(p *post, limits *policy.Limits) {
	p.join(t.core, func() *policy.Tool { return t.core.unknownTool(p.request) })
	if limits == nil {
		limits = &p.tool.Limits
	}
	p.watch.start(p.ctx, &t.alarm, *limits)
	p.proof.watch = &p.watch
}

// send hands a clone of the request to the base transport. On failure the POST has
// come to its end.
func (t *Transport) send(p *post) (*http.Response, error) {
	out := p.session.under(p.request, p.lease).WithContext(httptrace.WithClientTrace(p.watch.ctx, p.proof.trace()))
	if p.isCall() {
		out.GetBody = nil
		if params := p.evidence.params; params != nil {
			out.Header = params.apply(out.Header, p.evidence.given)
		}
		if err := p.evidence.keys.dress(out, p.round); err != nil {
			p.broken(observe.NetworkError, "the request body could not be read", err, true)
			p.end()
			return nil, p.err()
		}
	}
	p.watch.sending()
	resp, err := t.base.RoundTrip(out)
	if err == nil && resp == nil {
		err = errNoResponse
	}
	if err != nil {
		p.broken(observe.NetworkError, "the connection failed", err, p.proof.notSent(err))
		p.end()
		return nil, p.err()
	}
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	p.watch.reading()
	return resp, nil
}

var errNoResponse = errors.New("the base transport gave neither a response nor an error")

// withHeaders returns h with more headers; h itself stays as it is.
func withHeaders(h http.Header, more map[string]string) http.Header {
	if len(more) == 0 {
		return h
	}
	h = h.Clone()
	for name, value := range more {
		h.Set(name, value)
	}
	return h
}

// look records status and headers of a response, and corrects its session id.
func (p *post) look(resp *http.Response) {
	p.status, p.media, p.httpVersion = resp.StatusCode, mediaType(resp.Header), httpVersion(resp)
	if p.status/100 == 2 {
		p.session.serve(p.lease)
	}
	p.evidence.respond(p, cleanType(resp.Header))
	p.session.show(resp, p.lease)
	if correctSession(p.request, resp, isHandshake(p.envelope.method)) {
		p.deviate(observe.DeviationSessionID)
	}
}

// httpVersion is the protocol version of a response, as network.protocol.version has
// it in OpenTelemetry's conventions.
func httpVersion(resp *http.Response) string {
	switch {
	case resp.ProtoMajor == 1 && resp.ProtoMinor == 1:
		return "1.1"
	case resp.ProtoMajor == 2:
		return "2"
	}
	return strings.TrimPrefix(resp.Proto, "HTTP/")
}

// correctSession sees to it that an answer carries the session id of its request:
// the SDK ends the session on another one, takes the first of two that arrive beside
// each other for its own, and adopts one on versions that have none (go-sdk v1.8.0).
// Only a handshake may bring one. It reports whether it had to.
func correctSession(req *http.Request, resp *http.Response, handshake bool) bool {
	id, sent := resp.Header.Get(headerSessionID), req.Header.Get(headerSessionID)
	sessionless := req.Header.Get(headerProtocolVersion) >= sessionlessVersion
	switch {
	case id == "" || id == sent && !sessionless:
		return false
	case sessionless || sent == "" && !handshake:
		resp.Header.Del(headerSessionID)
	case sent != "":
		resp.Header.Set(headerSessionID, sent)
	default:
		return false
	}
	return true
}
