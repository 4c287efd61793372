package middleware

import (
	"context"
	"sync"
	"time"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// evidence collects what the Transport sees of one attempt. Attempt puts it into
// the context and closes it when the SDK returns; what comes later (trace hooks,
// the end of a body, the cancelled notification's POST) is ignored.
type evidence struct {
	method string
	tool   *policy.Tool // rules for reading the answer; immutable
	header map[string]string

	mu     sync.Mutex
	closed bool
	posts  []*post
	open   int
	idle   chan struct{} // closed whenever open falls to zero, then replaced
	answer []byte        // raw result of the last usable answer
}

type evidenceKey struct{}

func newEvidence(method string, tool *policy.Tool) *evidence {
	return &evidence{method: method, tool: tool, idle: make(chan struct{})}
}

func withEvidence(ctx context.Context, e *evidence) context.Context {
	return context.WithValue(ctx, evidenceKey{}, e)
}

// evidenceFrom returns the evidence for POSTs of the given JSON-RPC method. The
// context also reaches the notifications/cancelled of a call that timed out, and
// on 2026-07-28 the handlers of input requests: those are not part of the call.
func evidenceFrom(ctx context.Context, method string) *evidence {
	e, _ := ctx.Value(evidenceKey{}).(*evidence)
	if e == nil || e.method != method {
		return nil
	}
	return e
}

// add opens a POST.
func (e *evidence) add(p *post) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.posts = append(e.posts, p)
	e.open++
}

// update changes what is known of a POST, until the evidence is closed.
func (e *evidence) update(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		change()
	}
}

// conclude sets what a POST came to. A second verdict does not replace the first.
func (e *evidence) conclude(p *post, v observe.Verdict) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || p.seen.Verdict.Outcome != "" {
		return
	}
	v.Deviations = append(p.seen.Verdict.Deviations, v.Deviations...)
	p.seen.Verdict = v
	if v.Outcome.Usable() {
		e.answer = v.Result
	}
	if e.open--; e.open == 0 {
		close(e.idle)
		e.idle = make(chan struct{})
	}
}

// settle waits until no POST is open, at most for d.
func (e *evidence) settle(d time.Duration) {
	e.mu.Lock()
	idle, open := e.idle, e.open
	e.mu.Unlock()
	if open == 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}

// close ends the collection and returns what was seen, with the raw result of the
// last usable answer.
func (e *evidence) close() ([]observe.Post, []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	posts := make([]observe.Post, len(e.posts))
	for i, p := range e.posts {
		posts[i] = p.seen
	}
	answer := e.answer
	e.answer = nil
	return posts, answer
}

// lastBody returns the body of the last POST, for resuming at a later round.
func (e *evidence) lastPost() *post {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.posts) == 0 {
		return nil
	}
	return e.posts[len(e.posts)-1]
}
