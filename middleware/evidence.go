package middleware

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// evidence collects what the Transport sees of one attempt. Attempt puts it into
// the context and closes it when the SDK returns; what comes later (trace hooks,
// the end of a body, the cancelled notification's POST) is ignored.
type evidence struct {
	method   string
	tool     *policy.Tool // rules for reading the answer; immutable
	keys     roundKeys
	params   *paramHeaders // in the place of the SDK's; nil leaves those
	given    any           // the arguments that they mirror
	entry    *entry        // what Admit let in; nil where that is not in use
	progress progress
	// attended says that an Attempt stands above, which waits where the server puts the
	// call off.
	attended bool
	asked    int // questions of the call before this attempt

	hideEmail bool

	mu     sync.Mutex
	closed bool
	unseen bool // a POST went by that could not be read
	posts  []*post
	waits  []observe.Wait // before the next POST
	open   int
	idle   chan struct{} // for settle: closed when open falls to zero
	answer []byte        // raw result of the last usable answer
}

type evidenceKey struct{}

func newEvidence(method string, tool *policy.Tool) *evidence {
	return &evidence{method: method, tool: tool}
}

func withEvidence(ctx context.Context, e *evidence) context.Context {
	return context.WithValue(ctx, evidenceKey{}, e)
}

// evidenceFor returns the evidence for a POST. The context also reaches the
// notifications/cancelled of a call that timed out, and on 2026-07-28 the handlers
// of input requests, with the calls that they make: those are not part of the call.
func evidenceFor(p *post) *evidence {
	e, _ := p.ctx.Value(evidenceKey{}).(*evidence)
	if e == nil || e.method != p.envelope.method || !e.owns(p) {
		return nil
	}
	return e
}

// owns reports whether a POST belongs to this attempt: it goes where the attempt's
// others went, calls the same tool, and after a question it carries an answer.
func (e *evidence) owns(p *post) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.method == methodCallTool && p.namesOther(e.tool.Name):
		return false
	case len(e.posts) == 0:
		return true
	}
	last := e.posts[len(e.posts)-1]
	if !last.toSamePeer(p) {
		return false
	}
	return !asked(&last.seen) || p.answersQuestion()
}

// namesOther reports whether the headers of a POST name another tool.
func (p *post) namesOther(tool string) bool {
	if p.request == nil {
		return false
	}
	name := p.request.Header.Get("Mcp-Name")
	return name != "" && name != tool && !strings.HasPrefix(name, "=?base64?")
}

// answersQuestion reports whether a request is a later round of a call (MCP
// 2026-07-28, multi round-trip requests).
func (p *post) answersQuestion() bool {
	body, err := p.body()
	if err != nil {
		return false
	}
	defer body.Close()
	raw, err := io.ReadAll(body)
	return err == nil && (bytes.Contains(raw, []byte(`"inputResponses"`)) || bytes.Contains(raw, []byte(`"requestState"`)))
}

// blind says that a request of this attempt may have gone by unseen: silence proves
// nothing from here on.
func blind(ctx context.Context) {
	if e, _ := ctx.Value(evidenceKey{}).(*evidence); e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.unseen = true
	}
}

// add opens a POST.
func (e *evidence) add(p *post) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	p.seen.Waits, e.waits = e.waits, nil
	e.posts = append(e.posts, p)
	e.open++
}

// waited notes a wait between two POSTs.
func (e *evidence) waited(why observe.WaitReason, d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waits = append(e.waits, observe.Wait{For: why, Ms: milliseconds(d)})
}

// update changes what is known of a POST, until the evidence is closed.
func (e *evidence) update(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		change()
	}
}

// respond notes the head of a POST's response.
func (e *evidence) respond(p *post, media string) {
	e.update(func() { p.seen.Status, p.seen.ContentType, p.seen.HTTPVersion = p.status, media, p.httpVersion })
}

// conclude sets what a POST came to. A second verdict does not replace the first.
func (e *evidence) conclude(p *post, v observe.Verdict, replays int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || p.seen.Verdict.Outcome != "" {
		return
	}
	if v.Outcome == observe.InputRequired && e.entry != nil {
		e.entry.answered()
	}
	p.seen.Replays, p.seen.Took = replays, time.Since(p.seen.Started)
	v.Deviations = append(p.seen.Verdict.Deviations, v.Deviations...)
	p.seen.Verdict = v
	if v.Outcome.Usable() {
		e.answer = v.Result
	}
	if e.open--; e.open == 0 && e.idle != nil {
		close(e.idle)
		e.idle = nil
	}
}

// settle waits until no POST is open, at most for d.
func (e *evidence) settle(d time.Duration) {
	e.mu.Lock()
	if e.open == 0 {
		e.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	e.idle = idle
	e.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}

// close ends the collection and returns what was seen, with the raw result of the
// last usable answer, and whether something went by unseen.
func (e *evidence) close() (posts []observe.Post, answer []byte, unseen bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	posts = make([]observe.Post, len(e.posts))
	for i, p := range e.posts {
		if p.seen.Verdict.Outcome == "" && p.supposed.Outcome != "" {
			p.supposed.Deviations = append(p.supposed.Deviations, p.seen.Verdict.Deviations...)
			p.seen.Verdict = p.supposed
		}
		posts[i] = p.seen
	}
	answer, e.answer = e.answer, nil
	return posts, answer, e.unseen
}

// expire takes back what POSTs count as whose bodies a deadline or a cancel has cut:
// that, then, is what ended them.
func (e *evidence) expire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.posts {
		if p.supposed.Outcome == observe.StreamIncomplete {
			p.supposed = observe.Verdict{}
		}
	}
}

// lastPost returns the last POST, for resuming at a later round.
func (e *evidence) lastPost() *post {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.posts) == 0 {
		return nil
	}
	return e.posts[len(e.posts)-1]
}
