package middleware

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// post is one POST on its way through the Transport, or one request on a connection
// without HTTP.
type post struct {
	transport *Transport // nil without HTTP
	evidence  *evidence
	envelope  envelope
	ctx       context.Context               // of the request, as the SDK gave it
	version   string                        // of the protocol, or ""
	body      func() (io.ReadCloser, error) // the request's message
	request   *http.Request                 // as the SDK made it; nil without HTTP
	peer      *connection                   // nil over HTTP
	tool      *policy.Tool
	watch     watch
	proof     sendProof
	round     int          // of a multi-round-trip call, from 1
	session   *httpSession // nil where the server has none
	lease     lease        // of the session, under which the POST goes out
	words     *observe.Redactor
	streamed  bool            // in shadow mode: the answer is an event stream
	supposed  observe.Verdict // in shadow mode, while the end is open; guarded by evidence.mu

	status      int          // of the response, with
	media       string       // its media type and
	httpVersion string       // HTTP's; written before the body is handed on
	seen        observe.Post // guarded by evidence.mu
}

// isCall reports whether the POST is a tools/call.
func (p *post) isCall() bool { return p.envelope.method == methodCallTool }

// question is what an answer to this POST is judged against.
func (p *post) question() observe.Answer {
	return observe.Answer{
		ID:              p.envelope.id,
		ProtocolVersion: p.version,
		HadSession:      p.request != nil && p.request.Header.Get(headerSessionID) != "",
		Method:          p.envelope.method,
	}
}

// join adds the POST to the evidence of its attempt, or to one of its own where no
// middleware is in use; the policy is then unknown's.
func (p *post) join(c *core, unknown func() *policy.Tool) {
	if p.evidence = evidenceFor(p); p.evidence == nil {
		p.evidence = newEvidence(p.envelope.method, unknown())
		p.evidence.hideEmail = c.opts.HideEmail
	}
	p.tool, p.round = p.evidence.tool, p.evidence.round()
	p.seen.ID, p.seen.Started, p.seen.Round = p.envelope.id, time.Now(), p.round
	p.evidence.add(p)
}

// toSamePeer reports whether two POSTs go to the same place.
func (p *post) toSamePeer(other *post) bool {
	if p.request == nil || other.request == nil {
		return p.peer == other.peer
	}
	return observe.URLOrigin(p.request.URL) == observe.URLOrigin(other.request.URL)
}

func (p *post) update(change func(*observe.Post)) {
	p.evidence.update(func() { change(&p.seen) })
}

// conclude records what the POST came to, what the operator's words make of it, and
// what it says about coming back.
func (p *post) conclude(v observe.Verdict) {
	var code int64
	if v.Error != nil {
		code = v.Error.Code
		v.Error.Data = bytes.Clone(v.Error.Data) // an error outlives the body
	}
	if !v.Outcome.Usable() {
		words := p.redactor()
		p.update(func(s *observe.Post) { s.Redactor = words })
	}
	if d, ok := p.tool.Declares(v.Outcome, p.status, code, v.Error != nil); ok {
		v.Delivery = d
	}
	p.heedMessage(&v)
	p.evidence.conclude(p, v, p.proof.replays())
}

func (p *post) deviate(d observe.Deviation) {
	p.update(func(s *observe.Post) {
		if !contains(s.Verdict.Deviations, d) {
			s.Verdict.Deviations = append(s.Verdict.Deviations, d)
		}
	})
}

// admit lets a further round of an attempt through, or holds it back like a call.
func (p *post) admit() error {
	if p.evidence.entry == nil || !p.evidence.continues(p) {
		return nil
	}
	refused := p.evidence.entry.round(p.ctx, p)
	if refused == nil {
		return nil
	}
	p.conclude(observe.Verdict{Outcome: refused.Outcome, Delivery: refused.Delivery, Reason: refused.Reason})
	p.update(func(s *observe.Post) { s.RetryAfter, s.HasRetryAfter = refused.says.wait, refused.says.hasWait })
	p.end()
	return p.err()
}

// waited notes what the POST had to wait for; it begins after that.
func (p *post) waited(why observe.WaitReason, d time.Duration) {
	if d > 0 {
		p.update(func(s *observe.Post) {
			s.Waits, s.Started = append(s.Waits, observe.Wait{For: why, Ms: milliseconds(d)}), time.Now()
		})
	}
}

// end releases the limits of the POST; nothing more will be seen of it.
func (p *post) end() { p.watch.stop() }

// broken judges an error of the connection: before the response, or while its body
// was read. outcome is what it is unless a context has ended.
func (p *post) broken(outcome observe.Outcome, reason string, err error, notSent bool) {
	v := observe.Verdict{Outcome: outcome, Delivery: observe.Unknown, Reason: reason}
	if notSent {
		v.Delivery = observe.NotSent
	}
	var limit *limitError
	switch ctx := p.ctx; {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		v.Outcome, v.Reason = observe.Timeout, "the deadline passed"
	case ctx.Err() != nil:
		v.Outcome, v.Reason = observe.Canceled, "the caller gave up"
	case errors.As(p.watch.cause(), &limit):
		v.Outcome, v.Reason = observe.Timeout, limit.Error()+" ran out"
	}
	p.conclude(v)
	p.update(func(s *observe.Post) { s.Cause, s.Limited = err, limit != nil })
	if limit != nil && !notSent && p.transport != nil {
		p.transport.cancel(p, limit)
	}
}

// err is the error for a POST without a usable answer.
func (p *post) err() *observe.Error {
	p.evidence.mu.Lock()
	defer p.evidence.mu.Unlock()
	return postError(&p.seen, p.tool)
}

func postError(s *observe.Post, tool *policy.Tool) *observe.Error {
	v := &s.Verdict
	return observe.NewError(observe.Error{
		Outcome:    v.Outcome,
		Delivery:   v.Delivery,
		Reason:     v.Reason,
		Tool:       tool.Name,
		Server:     tool.Server,
		Safety:     string(tool.Safety),
		Status:     s.Status,
		RPC:        v.Error,
		RetryAfter: s.RetryAfter,
		Location:   s.Location,
		Healed:     s.Healed,
		RepeatSafe: repeatSafe(v.Outcome, v.Delivery, tool, false),
		Redactor:   s.Redactor,
	}, s.Cause, nil)
}

// repeatSafe reports whether whoever called can send the call again without
// doubling an effect. stableKey says that the key is the caller's own: without it
// a repeat from above carries another key, which no server recognises.
func repeatSafe(o observe.Outcome, d observe.Delivery, tool *policy.Tool, stableKey bool) bool {
	if o == observe.Blocked {
		return false // it was held back for what a repeat could do
	}
	safety := tool.Safety
	if safety == policy.Keyed && !stableKey {
		safety = policy.Unsafe
	}
	if o == observe.SessionLost && d == observe.Refused && !safety.Harmless() {
		// A 404 can be written after the tool ran; the operator may know better.
		return tool.Retry.Healed
	}
	return safety.SafeRepeat(d)
}
