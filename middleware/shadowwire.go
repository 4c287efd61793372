package middleware

import (
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptrace"
	"sync"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// shadow passes a request as it is, and looks at what passes where it belongs to a
// call: headers, then the body while somebody else reads it.
func (t *Transport) shadow(req *http.Request) (*http.Response, error) {
	if p := resumedPost(req); p != nil {
		resp, err := t.base.RoundTrip(req)
		if err == nil && resp != nil && resp.StatusCode == http.StatusOK && mediaType(resp.Header) == "text/event-stream" && resp.Body != nil {
			p.update(func(s *observe.Post) { s.Stream.Resumed++ })
			p.watchEvents(resp)
		}
		return resp, err
	}
	if !mayCarryMessage(req) || req.GetBody == nil {
		return t.pass(req)
	}
	e, ok := readEnvelope(req)
	switch {
	case !ok:
		return t.pass(req)
	case e.kind != observe.KindRequest:
		return t.base.RoundTrip(req)
	case isHandshake(e.method):
		if h := handshakeFrom(req.Context()); h != nil {
			h.reach(req.URL)
		}
		return t.base.RoundTrip(req)
	}
	p := t.post(req, e)
	if evidenceFor(p) == nil {
		return t.base.RoundTrip(req)
	}
	return t.watchPost(p)
}

// resumedPost is the POST whose stream a GET goes on with, as the SDK sends it: with
// the context of the call and the id of the last event.
func resumedPost(req *http.Request) *post {
	if req.Method != http.MethodGet || req.Header.Get(headerLastEventID) == "" {
		return nil
	}
	e, _ := req.Context().Value(evidenceKey{}).(*evidence)
	if e == nil || e.method != methodCallTool {
		return nil
	}
	p := e.lastPost()
	if p == nil || !p.streamed {
		return nil
	}
	return p
}

// watchPost sends the request itself, with nothing added but trace hooks.
func (t *Transport) watchPost(p *post) (*http.Response, error) {
	t.begin(p, &policy.Limits{})
	p.proof.lookOnly = true
	resp, err := t.base.RoundTrip(p.request.WithContext(httptrace.WithClientTrace(p.ctx, p.proof.trace())))
	if err != nil || resp == nil {
		p.broken(observe.NetworkError, "the connection failed", err, err != nil && p.proof.notSent(err))
		p.end()
		return resp, err
	}
	p.status, p.media, p.httpVersion = resp.StatusCode, mediaType(resp.Header), httpVersion(resp)
	p.evidence.respond(p, cleanType(resp.Header))
	p.heedHead(resp.Header)
	p.update(func(s *observe.Post) {
		s.Location = observe.Redact(observe.URLOrigin(location(p.request, resp)), maxLocation)
	})
	if resp.Body == nil {
		p.conclude(p.classify(resp.Header, nil))
		p.end()
		return resp, nil
	}
	if p.media == "text/event-stream" && resp.StatusCode/100 == 2 && !coded(resp.Header) {
		p.update(func(s *observe.Post) { s.Stream = &observe.Stream{} })
		p.streamed = true
		p.watchEvents(resp)
		return resp, nil
	}
	p.watchDocument(resp)
	return resp, nil
}

// classify judges a whole body.
func (p *post) classify(h http.Header, body []byte) observe.Verdict {
	q := p.question()
	q.Status, q.Header, q.Body = p.status, h, body
	if p.status/100 == 2 {
		q.Header = contentHeader(h)
	}
	v := observe.Classify(q, &p.tool.Reading)
	if v.Outcome == observe.SessionLost {
		unsure(&v) // nobody asks the server
	}
	return v
}

// watchDocument judges a body that somebody reads, when its end has passed. Nobody may
// ever read that of a refusal, or of another media type: the head counts meanwhile.
func (p *post) watchDocument(resp *http.Response) {
	limit, header := p.tool.MaxResult, resp.Header.Clone()
	verdict := observe.Verdict{Outcome: observe.StreamIncomplete, Delivery: observe.Unknown, Reason: "the body was not read to its end"}
	switch {
	case p.status/100 != 2:
		limit, verdict = errorBodyLimit, p.classify(header, nil)
	case p.media != "application/json": // the SDK reads none of it
		verdict = p.classify(header, []byte("?"))
	}
	p.suppose(verdict)
	var body []byte
	done := false
	resp.Body = &shadowBody{ReadCloser: resp.Body, post: p, see: func(b []byte, err error) {
		if done {
			return
		}
		body = append(body, b...)
		p.update(func(s *observe.Post) { s.Bytes += int64(len(b)) })
		tooLong := limit > 0 && int64(len(body)) > limit
		switch {
		case tooLong && p.status/100 == 2:
			p.conclude(tooLarge())
		case err == nil && !tooLong:
			return
		case p.status/100 != 2 || errors.Is(err, io.EOF):
			p.conclude(p.classify(header, body))
		case !errors.Is(err, errClosed):
			p.broken(observe.StreamIncomplete, "the body was cut short", err, false)
		}
		if done = true; !p.usable() {
			p.excerpt(body)
		}
	}}
}

// watchEvents judges the events of a stream as they pass.
func (p *post) watchEvents(resp *http.Response) {
	p.suppose(observe.Verdict{Outcome: observe.StreamIncomplete, Delivery: observe.Unknown, Reason: "the stream ended without a response"})
	var passing []byte
	var end error
	// The reader of events asks for bytes, and here they come when somebody else reads
	// them: so it runs as a coroutine, a step for each read.
	next, stop := iter.Pull(func(yield func(struct{}) bool) {
		p.readEvents(observe.NewEventReader(readFunc(func(b []byte) (int, error) {
			for len(passing) == 0 && end == nil {
				if !yield(struct{}{}) {
					return 0, errClosed
				}
			}
			if len(passing) == 0 {
				return 0, end
			}
			n := copy(b, passing)
			passing = passing[n:]
			return n, nil
		}), int(p.tool.MaxResult)))
	})
	next()
	resp.Body = &shadowBody{ReadCloser: resp.Body, post: p, see: func(b []byte, err error) {
		p.update(func(s *observe.Post) { s.Bytes += int64(len(b)) })
		if passing, end = b, err; len(b) > 0 || err != nil {
			next()
			passing = nil
		}
		if err != nil {
			stop()
		}
	}}
}

// readEvents reads to the terminal response, or to the end. What ends after an event
// with an id may be resumed by the SDK, and is not judged yet.
func (p *post) readEvents(events *observe.EventReader) {
	resumable := false
	for {
		e, err := events.Next()
		switch {
		case errors.Is(err, observe.ErrEventTooLarge):
			p.conclude(tooLarge())
			return
		case errors.Is(err, errClosed):
			p.streamEnd("canceled")
			return
		case errors.Is(err, io.EOF):
			p.streamEnd("ended")
			if !resumable {
				p.broken(observe.StreamIncomplete, "the stream ended without a response", nil, false)
			}
			return
		case err != nil:
			p.streamEnd("cut")
			if !resumable || p.request.Context().Err() != nil {
				p.broken(observe.StreamIncomplete, "the stream was cut before the response", err, false)
			}
			return
		}
		resumable = resumable || e.HasID && e.ID != ""
		p.update(func(s *observe.Post) { s.Stream.Events++ })
		if e.Rewritten {
			p.deviate(observe.DeviationEventForm)
		}
		if len(e.Data) == 0 || !e.IsMessage() {
			continue
		}
		kind, v := observe.ClassifyMessage(e.Data, p.question(), &p.tool.Reading)
		if kind != observe.KindRequest && kind != observe.KindNotification {
			p.update(func(s *observe.Post) { s.Stream.Terminal, s.Stream.Close = v.Outcome.Answered(), "complete" })
			if p.conclude(v); !v.Outcome.Answered() {
				p.excerpt(e.Data)
			}
			return
		}
		for _, d := range v.Deviations {
			p.deviate(d)
		}
	}
}

func (p *post) streamEnd(how string) {
	p.update(func(s *observe.Post) {
		if s.Stream.Close == "" {
			s.Stream.Close = how
		}
	})
}

// suppose says what the POST counts as while its end is open.
func (p *post) suppose(v observe.Verdict) { p.evidence.update(func() { p.supposed = v }) }

// usable reports whether the POST was answered with something usable.
func (p *post) usable() bool {
	p.evidence.mu.Lock()
	defer p.evidence.mu.Unlock()
	return p.seen.Verdict.Outcome.Answered()
}

var errClosed = errors.New("the body was closed")

// shadowBody is a body that is read as it is, while see looks on.
type shadowBody struct {
	io.ReadCloser
	post *post

	mu  sync.Mutex // a body is closed while it is read
	see func(b []byte, err error)
}

func (s *shadowBody) look(b []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.see(b, err)
}

func (s *shadowBody) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	s.look(b[:n], err)
	return n, err
}

func (s *shadowBody) Close() error {
	err := s.ReadCloser.Close()
	s.look(nil, errClosed)
	s.post.end()
	return err
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }
