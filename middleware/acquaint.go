package middleware

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/surecall/surecall/observe"
)

// acquaint keeps what is needed to renew the session that a handshake has opened.
func (t *Transport) acquaint(p *post, resp *http.Response) {
	id := resp.Header.Get(headerSessionID)
	if p.envelope.method != "initialize" || id == "" || resp.StatusCode/100 != 2 {
		return
	}
	o, ok := readOpening(p.request, p.envelope)
	if !ok {
		return
	}
	o.answer = overhear(resp, p.envelope.id)
	resp.Body = o.answer
	name := observe.ServerFrom(p.request.Context())
	if name == "" {
		name = observe.RedactURL(askedURL(p.request))
	}
	s := &httpSession{transport: t, server: name, opening: o}
	s.open(id)
	// A server that began anew may give an id that another session of ours has had.
	for n := 2; ; n++ {
		if _, taken := t.sessions.find(sessionKey(p.request, s.shown)); !taken {
			break
		}
		s.shown = id + "-" + strconv.Itoa(n)
	}
	resp.Header.Set(headerSessionID, s.shown)
	t.sessions.put(sessionKey(p.request, s.shown), s)
	if h := handshakeFrom(p.request.Context()); h != nil {
		h.open(s)
	}
}

// sessionKey is where a session is found by the id that the SDK knows.
func sessionKey(req *http.Request, shown string) target {
	return target{observe.RedactURL(askedURL(req)), shown}
}

// session returns the session that a request belongs to, or nil.
func (t *Transport) session(req *http.Request) *httpSession {
	shown := req.Header.Get(headerSessionID)
	if shown == "" {
		return nil
	}
	s, _ := t.sessions.find(sessionKey(req, shown))
	return s
}

// forget lets go of a session that the SDK has ended.
func (t *Transport) forget(req *http.Request, s *httpSession) {
	t.sessions.drop(sessionKey(req, s.shown))
	s.end()
}

// enter takes the POST into its session, or ends it where nothing may be sent. It waits
// for a renewal no longer than the attempt may take, which is then counted anew.
func (p *post) enter(s *httpSession) error {
	came := time.Now()
	ctx := p.watch.ctx
	if limit := p.tool.Limits.Attempt; s != nil && limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, &limitError{"attempt", limit})
		defer cancel()
	}
	l, helped, err := s.pass(ctx, p.request)
	p.session, p.lease = s, l
	if err == nil {
		if helped {
			p.waited(observe.WaitSession, time.Since(came))
			p.update(func(o *observe.Post) { o.Healed = true })
		}
		return nil
	}
	if lost, ok := err.(*lostError); ok {
		p.conclude(observe.Verdict{Outcome: observe.SessionLost, Delivery: observe.NotSent, Reason: lost.reason})
	} else {
		p.watch.cancel(context.Cause(ctx))
		p.broken(observe.Canceled, "the call ended while its session was being renewed", err, true)
	}
	p.end()
	return p.err()
}
